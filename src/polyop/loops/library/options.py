"""Options of a loop kernel, and the flags that its compiler gets."""

from __future__ import annotations

import os
import warnings
from typing import NamedTuple

from ...core.errors import FallbackWarning, UninitialisedWarning
from ..ir.grammar import Kernel
from ..ir.schedule import NOTHING, Schedule
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
"""-O2, as the text has vectors already: -O3 took longer to compile, and changed no kernel of 23 by over 8 %.
Integers wrap, as in NumPy. The compiler may assume nothing about NaN, infinities or the order of sums."""
GCC_FLAGS = ("--param=iv-max-considered-uses=50",)
"""Beyond 50 accesses in a loop, as in the tile of a contraction, gcc does not compare all ways to form their
addresses: convolutions compile in a tenth less time, and run as fast."""
HOST_FLAGS = ("-fwrapv",)
"""Flags of the compiler of a host's text, which launches a device's kernels."""
UNFUSED = {"gcc": ("-ffp-contract=off",), "clang": ("-ffp-contract=off",), "nvcc": ("--fmad=false",)}
"""Where a row has the same bits in any batch, the text alone says what is fused (fused.h of the headers). A
compiler that may fuse a product and a sum does it in whole vectors, say, and not in their remainder."""


class Options(NamedTuple):
    """The instruction set; whether libm's functions are called (``precise``), and every index is checked.

    ``schedule`` are the author's steps; where every index is checked, loops stay in the author's order.
    """

    isa: str
    precise: bool = False
    checked: bool = False
    schedule: Schedule = NOTHING


def language_of(options: Options) -> str:
    """Return the language of a kernel's text: "c", "c++", "cuda", or "hip" where only HIP has a compiler."""
    language = "c" if options.isa == isa.PORTABLE else TARGETS[options.isa].language
    if language != "cuda":
        return language
    from ...build.compilers import program_path

    is_amd = not os.environ.get("CUDACXX") and program_path("cuda") is None
    return "hip" if is_amd and program_path("hip") is not None else "cuda"


def flags_of(family: str, options: Options) -> tuple[str, ...]:
    """Return the flags for a compiler of this family.

    gcc reads the instruction set from pragmas in the text. clang does not, so it compiles all parts of a
    portable library for the baseline; that gives a ``FallbackWarning``, once.

    >>> flags_of("clang", Options("avx2"))[-1]
    '-mbmi2'
    """
    unfused = UNFUSED[family] if options.schedule.is_deterministic else ()
    if language_of(options) != "c":
        return (*HOST_FLAGS, *unfused)
    if family == "gcc":
        return (*FLAGS, *GCC_FLAGS, *unfused)
    if options.isa == isa.PORTABLE and len(isa.family()) > 1:
        warn_once(
            "clang makes all parts of a portable library of loop kernels for the baseline; gcc does not"
        )
    return (*FLAGS, *unfused, *(() if options.isa == isa.PORTABLE else TARGETS[options.isa].flags))


def exported(kernel: Kernel) -> str:
    """Return the symbol of a kernel in its library; the prefix avoids the names of C and its headers."""
    return f"loop_{kernel.name}"


_given_warnings: set[str] = set()


def warn_once(text: str) -> None:
    """Give a ``FallbackWarning``, unless this process has given the same one."""
    if text not in _given_warnings:
        _given_warnings.add(text)
        warnings.warn(FallbackWarning(text), stacklevel=3)


def warn_at_line(text: str) -> None:
    """Warn of a read before any write, once for each line: it may be compiled for several dtypes."""
    if text not in _given_warnings:
        _given_warnings.add(text)
        place, _, said = text.partition(": ")
        file, _, line = place.rpartition(":")
        warnings.warn_explicit(said, UninitialisedWarning, file, int(line))
