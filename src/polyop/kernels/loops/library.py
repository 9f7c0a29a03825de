"""From a typed kernel to a library in the build cache."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from . import isa
from .compile import Scheduled, original, schedule
from .emit.choose import choosing
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


@dataclass(frozen=True)
class Options:
    """How a kernel is compiled: for which instruction set, with libm's functions, with indices checked."""

    isa: str
    precise: bool = False
    checked: bool = False


def arranged(kernel: Kernel, options: Options) -> Scheduled:
    """Return the kernel scheduled; where that fails the author's own order, with ``fallback`` saying so."""
    if options.checked:
        return original(kernel, "debug: loops stay in the author's order, and every index is checked")
    try:
        return schedule(kernel)
    except Exception as problem:  # noqa: BLE001 - whatever a pass stumbles over, the plain order is right
        text = (
            f"{kernel.name}: loops stay in the author's order, on one thread and with every index checked: "
            f"{type(problem).__name__}: {problem}"
        )
        return original(kernel, text, fallback=text)


def sources(kernel: Kernel, options: Options) -> list[str]:
    """Return the files of a kernel: one, or one for each instruction set and one that chooses.

    They are in C, and in CUDA for the instruction set "cuda".
    """
    found = arranged(kernel, options)

    def text(name: str, function: str) -> str:
        whole = found.source(name, function, precise=options.precise, checked=found.checked)
        if not found.fallback:
            return whole
        linkage = 'extern "C" ' if name == CUDA else ""
        return f"{whole}{linkage}const char {function}_fallback[] = {json.dumps(found.fallback)};\n"

    if options.isa != isa.PORTABLE:
        return [text(options.isa, exported(kernel))]
    names = isa.family()
    if len(names) == 1:
        return [text(names[0], exported(kernel))]
    return [*(text(name, f"{exported(kernel)}__{name}") for name in names), choosing(exported(kernel), names)]


def exported(kernel: Kernel) -> str:
    """Return what the library calls the kernel: a name that C and its headers have no other use for."""
    return f"loop_{kernel.name}"


def compiled(kernel: Kernel, options: Options) -> Path:
    """Return the library of a kernel, built when the cache has none. Raises ``BuildError``."""
    from ..build import compilers, cuda
    from ..build.cache import Cache, Made

    cache = Cache()
    language, flags = ("cuda", CUDA_FLAGS) if options.isa == CUDA else ("c", FLAGS)
    compiler = compilers.find(language)
    request = {
        "loops": hashlib.sha256(repr((kernel, options)).encode()).hexdigest(),
        "passes": _passes(),
        "compiler": compiler.identity,
        "flags": flags,
        "architectures": cuda.architecture_flags(compiler, None) if language == "cuda" else [],
    }

    def make(work: Path) -> Made:
        from ..build.compile import Refused, make_library
        from ..build.options import BuildOptions
        from ..build.plan import make_plan
        from ..build.run import failed
        from ..build.sources import gather, keep

        files = [keep(text, language) for text in sources(kernel, options)]
        plan = make_plan(gather(files, None, language, ()), BuildOptions.of(flags=flags), kernel.name)
        try:
            return make_library(plan, work, kernel.name, cache)
        except Refused as refused:
            raise failed(
                kernel.name, f"is a loop kernel whose {language.upper()} cannot be compiled", refused.finished
            ) from None

    return cache.get(request, [kernel.file], make).path


def remarks(path: Path, name: str, kind: str) -> list[str]:
    """Return what the compiler wrote into a kernel's library for its author.

    ``kind`` is "warnings" (reads before any write) or "fallback" (why the author's order was kept).
    """
    import ctypes

    from ... import _core
    from ..library import open_library

    library = open_library(path, built=True)
    texts = (f"{function}_{kind}" for function in (name, f"{name}__{isa.family()[-1]}"))
    address = next(filter(None, (_core.find_symbol(library, text) for text in texts)), 0)
    return ctypes.string_at(address).decode().splitlines() if address else []


@functools.cache
def _passes() -> str:
    """Return what changes when the compiler's own text does."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
