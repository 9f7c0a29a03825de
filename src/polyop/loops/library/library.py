"""The library of a typed kernel: shipped with its module, found in the build cache, or made and kept there.

A process that finds its kernels built imports neither the passes nor isl: see ``make``.
"""

from __future__ import annotations

import functools
import os

from ...core.errors import BuildError
from .. import debug
from ..ir.grammar import Kernel
from ..targets import isa
from ..targets.cuda import CUDA
from . import shipped
from .options import Options, flags_of, language_of, warn_once


def compiled(kernel: Kernel, options: Options) -> str:
    """Return the library of a kernel: shipped with its module, else of the cache, else built now.

    One that is built although others of the function were shipped gives ``FallbackWarning``, once.
    Raises ``BuildError``, which says what was shipped.
    """
    from ...binary import hashes
    from ...build import compilers, lookup

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
        warn_once(f"loop kernel {kernel.name} of {kernel.file} is compiled here: {look.why}")
    architectures: list[str] = []
    if language == "cuda":
        from ...build.cuda import architecture_flags

        architectures = architecture_flags(compiler, None)
    request = {
        "loops": hashes.text_digest(repr((kernel, options))),
        "passes": passes(),
        "skipped": debug.skipped_passes(),
        "compiler": compiler.identity,
        "flags": flags_of(compiler.family, options),
        "architectures": architectures,
    }
    found = lookup.cached_path(request)
    if found is not None:
        return found
    from .make import make

    return make(kernel, options, request)


def origin_and_notes(kernel: Kernel, options: Options) -> tuple[list[str], list[tuple[int, str]]]:
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
    from ..emit.printer import notes as notes_of
    from .make import arranged

    origin = f"compiled here: {look.why}"
    found = [(note.line, note.text) for note in notes_of(arranged(kernel, options), options.isa)]
    return [origin] if look.why else [], found


def _shipped(kernel: Kernel, options: Options) -> shipped.Look:
    device = CUDA.name if options.isa == CUDA.name else "cpu"
    return shipped.find(kernel, precise=options.precise, checked=options.checked, device=device)


def remarks(path: str, name: str, kind: str) -> list[str]:
    """Return what the compiler wrote into a kernel's library for its author.

    ``kind`` is "warnings" (reads before any write) or "fallback" (why the author's order was kept).
    """
    from ... import _core
    from ...binary.open import open_library

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
    from ...binary import hashes
    from ...build import facts

    here = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - pathlib is slow to import
    found = (f"{folder}/{name}" for folder, _, names in os.walk(here) for name in names)
    files = sorted(path for path in found if path.endswith(".py"))
    return facts.cached("loop passes", files, lambda: hashes.digest_of(files))
