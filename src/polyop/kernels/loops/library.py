"""The library of a typed kernel: found in the build cache, or made and kept there.

A process that finds its kernels built imports neither the passes nor isl: see ``make``.
"""

from __future__ import annotations

import functools
import os
from typing import NamedTuple

from . import isa
from .ir import Kernel

FLAGS = (
    "-std=gnu11",
    "-fwrapv",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
)
"""Integers wrap, as NumPy's do; nothing is assumed about NaN, infinities or the order of sums."""
CUDA, CUDA_FLAGS = "cuda", ("-fwrapv",)
"""The name of GPUs among instruction sets; what nvcc's host compiler is told."""


class Options(NamedTuple):
    """How a kernel is compiled: for which instruction set, with libm's functions, with indices checked."""

    isa: str
    precise: bool = False
    checked: bool = False


def language_of(options: Options) -> tuple[str, tuple[str, ...]]:
    """Return the language that a kernel is printed in, and the compiler's flags."""
    return ("cuda", CUDA_FLAGS) if options.isa == CUDA else ("c", FLAGS)


def exported(kernel: Kernel) -> str:
    """Return what the library calls the kernel: a name that C and its headers have no other use for."""
    return f"loop_{kernel.name}"


def compiled(kernel: Kernel, options: Options) -> str:
    """Return the library of a kernel, built when the cache has none. Raises ``BuildError``."""
    from ..build import compilers, hashes, lookup

    language, flags = language_of(options)
    compiler = compilers.find(language)
    architectures: list[str] = []
    if language == "cuda":
        from ..build.cuda import architecture_flags

        architectures = architecture_flags(compiler, None)
    request = {
        "loops": hashes.text_digest(repr((kernel, options))),
        "passes": _passes(),
        "compiler": compiler.identity,
        "flags": flags,
        "architectures": architectures,
    }
    found = lookup.ready(request)
    if found is not None:
        return found
    from .make import make

    return make(kernel, options, request)


def remarks(path: str, name: str, kind: str) -> list[str]:
    """Return what the compiler wrote into a kernel's library for its author.

    ``kind`` is "warnings" (reads before any write) or "fallback" (why the author's order was kept).
    """
    from ... import _core
    from ..library import open_library

    library = open_library(path, built=True)
    texts = (f"{function}_{kind}" for function in (name, f"{name}__{isa.family()[-1]}"))
    address = next(filter(None, (_core.find_symbol(library, text) for text in texts)), 0)
    if not address:
        return []
    import ctypes

    return ctypes.string_at(address).decode().splitlines()


@functools.cache
def _passes() -> str:
    """Return what changes when the compiler's own text does."""
    from ..build import facts, hashes

    here = os.path.dirname(__file__)  # noqa: PTH120 - pathlib is slow to import
    found = (f"{folder}/{name}" for folder, _, names in os.walk(here) for name in names)
    files = sorted(path for path in found if path.endswith(".py"))
    return facts.of_files("loop passes", files, lambda: hashes.digest_of(files))
