"""How a loop kernel is compiled: for which instruction set, and what the compiler is told."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from ...core.errors import FallbackWarning
from ..ir.grammar import Kernel
from ..targets import isa
from ..targets.table import TARGETS

FLAGS = (
    "-O2",
    "-std=gnu11",
    "-fwrapv",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
)
"""The text has vectors already: -O3 took longer, and changed the speed of none of 23 by over 8 %.
Integers wrap, as NumPy's do; nothing is assumed about NaN, infinities or the order of sums."""
GCC_FLAGS = ("--param=iv-max-considered-uses=50",)
"""Addresses of more accesses in a loop, as in the tile of a contraction, are not all weighed against one
another: a tenth less time for convolutions, no slower code."""
CUDA_FLAGS = ("-fwrapv",)
"""What nvcc's host compiler is told."""


class Options(NamedTuple):
    """How a kernel is compiled: for which instruction set, with libm's functions, with indices checked."""

    isa: str
    precise: bool = False
    checked: bool = False


def language_of(options: Options) -> str:
    """Return the language that a kernel is printed in."""
    return "c" if options.isa == isa.PORTABLE else TARGETS[options.isa].language


def flags_of(family: str, options: Options) -> tuple[str, ...]:
    """Return what a compiler of this family is told.

    gcc finds the instruction set in the text; clang does not, and makes a portable library's files all alike:
    that gives ``FallbackWarning``, once.

    >>> flags_of("clang", Options("avx2"))[-1]
    '-mbmi2'
    """
    if family == "nvcc":
        return CUDA_FLAGS
    if family == "gcc":
        return (*FLAGS, *GCC_FLAGS)
    if options.isa == isa.PORTABLE and len(isa.family()) > 1:
        warn_once(
            "clang makes all parts of a portable library of loop kernels for the baseline; gcc does not"
        )
    return (*FLAGS, *(() if options.isa == isa.PORTABLE else TARGETS[options.isa].flags))


def exported(kernel: Kernel) -> str:
    """Return what the library calls the kernel: a name that C and its headers have no other use for."""
    return f"loop_{kernel.name}"


_said: set[str] = set()


def warn_once(text: str) -> None:
    """Give a ``FallbackWarning``, unless the same one was given before."""
    if text not in _said:
        _said.add(text)
        warnings.warn(FallbackWarning(text), stacklevel=3)
