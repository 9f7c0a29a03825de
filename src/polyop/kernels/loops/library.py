"""The library of a typed kernel: shipped with its module, found in the build cache, or made and kept there.

A process that finds its kernels built imports neither the passes nor isl: see ``make``.
"""

from __future__ import annotations

import functools
import os
import warnings
from typing import NamedTuple

from ...core.errors import BuildError, FallbackWarning
from . import isa, shipped
from .ir import Kernel

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
CUDA, CUDA_FLAGS = "cuda", ("-fwrapv",)
"""The name of GPUs among instruction sets; what nvcc's host compiler is told."""


class Options(NamedTuple):
    """How a kernel is compiled: for which instruction set, with libm's functions, with indices checked."""

    isa: str
    precise: bool = False
    checked: bool = False


def language_of(options: Options) -> str:
    """Return the language that a kernel is printed in."""
    return "cuda" if options.isa == CUDA else "c"


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
        _say_once(
            "clang makes all parts of a portable library of loop kernels for the baseline; gcc does not"
        )
    return (*FLAGS, *isa.flags(options.isa))


def exported(kernel: Kernel) -> str:
    """Return what the library calls the kernel: a name that C and its headers have no other use for."""
    return f"loop_{kernel.name}"


def compiled(kernel: Kernel, options: Options) -> str:
    """Return the library of a kernel: shipped with its module, else of the cache, else built now.

    One that is built although others of the function were shipped gives ``FallbackWarning``, once.
    Raises ``BuildError``, which says what was shipped.
    """
    from ..build import compilers, hashes, lookup

    look = _shipped(kernel, options)
    if look.path:
        return look.path
    language = language_of(options)
    try:
        compiler = compilers.find(language)
    except BuildError as problem:
        rule = look.why or "needs a compiler: it was not compiled ahead of time"
        raise BuildError(f"loop kernel {kernel.name}", rule, where=kernel.file, hint=str(problem)) from None
    if look.why and not look.asked:
        _say_once(f"loop kernel {kernel.name} of {kernel.file} is compiled here: {look.why}")
    architectures: list[str] = []
    if language == "cuda":
        from ..build.cuda import architecture_flags

        architectures = architecture_flags(compiler, None)
    request = {
        "loops": hashes.text_digest(repr((kernel, options))),
        "passes": passes(),
        "compiler": compiler.identity,
        "flags": flags_of(compiler.family, options),
        "architectures": architectures,
    }
    found = lookup.ready(request)
    if found is not None:
        return found
    from .make import make

    return make(kernel, options, request)


def told(kernel: Kernel, options: Options) -> tuple[list[str], list[tuple[int, str]]]:
    """Return where a kernel's library is from, and what became of its loops (line, text).

    The first is empty where nothing of the function was shipped. For a shipped library the passes
    are not run: what they decided is in its index.
    """
    look = _shipped(kernel, options)
    if look.path:
        row = look.row
        how = "the same" if row["passes"] == passes() else "other"
        origin = f"shipped: {look.path}, compiled ahead of time for {', '.join(row['told'])}, by {how} passes"
        notes = row["told"].get(options.isa) or next(iter(row["told"].values()))
        return [origin], [(line, text) for line, text in notes]
    from .make import arranged

    origin = f"compiled here: {look.why}"
    return [origin] if look.why else [], list(arranged(kernel, options).told(options.isa))


def _shipped(kernel: Kernel, options: Options) -> shipped.Look:
    device = CUDA if options.isa == CUDA else "cpu"
    return shipped.find(kernel, precise=options.precise, checked=options.checked, device=device)


_said: set[str] = set()


def _say_once(text: str) -> None:
    if text not in _said:
        _said.add(text)
        warnings.warn(FallbackWarning(text), stacklevel=3)


def remarks(path: str, name: str, kind: str) -> list[str]:
    """Return what the compiler wrote into a kernel's library for its author.

    ``kind`` is "warnings" (reads before any write) or "fallback" (why the author's order was kept).
    """
    from ... import _core
    from ..library import open_library

    library = open_library(path)
    texts = (f"{function}_{kind}" for function in (name, f"{name}__{isa.family()[-1]}"))
    address = next(filter(None, (_core.find_symbol(library, text) for text in texts)), 0)
    if not address:
        return []
    import ctypes

    return ctypes.string_at(address).decode().splitlines()


@functools.cache
def passes() -> str:
    """Return what changes when the compiler's own text does."""
    from ..build import facts, hashes

    here = os.path.dirname(__file__)  # noqa: PTH120 - pathlib is slow to import
    found = (f"{folder}/{name}" for folder, _, names in os.walk(here) for name in names)
    files = sorted(path for path in found if path.endswith(".py"))
    return facts.of_files("loop passes", files, lambda: hashes.digest_of(files))
