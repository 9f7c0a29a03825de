"""Get the library of a typed kernel: shipped with its module, from the build cache, or built now.

A process whose kernels are all built imports neither the passes nor isl: only ``make`` does.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from ...core.errors import BuildError, PolyopError
from .. import debug
from ..ir.grammar import Kernel
from ..targets import isa
from ..targets.table import TARGETS
from . import shipped
from .options import Options, exported, flags_of, language_of, warn_once

if TYPE_CHECKING:
    from ...build.compilers import Compiler
    from ..program import Program
    from ..runner import Watch


def compiled(kernel: Kernel, options: Options) -> str:
    """Return the path of a kernel's library: shipped with its module, else in the cache, else built now.

    Gives a ``FallbackWarning``, once, if it is built although libraries of the function were shipped. Raises
    ``BuildError``; if libraries were shipped, it says why none of them fits.
    """
    from ...build import compilers, lookup

    search = _search(kernel, options)
    if search.path:
        return search.path
    language = language_of(options)
    try:
        compiler = compilers.find(language)
    except BuildError as problem:
        rule = search.why or "needs a compiler: it was not compiled ahead of time"
        raise BuildError(f"loop kernel {kernel.name}", rule, where=kernel.file, hint=str(problem)) from None
    if search.why and not search.requested:
        warn_once(f"loop kernel {kernel.name} of {kernel.file} is compiled here: {search.why}")
    request = _request(kernel, options, compiler)
    path = lookup.cached_path(request)
    if path is not None:
        return path
    from .make import make

    return make(kernel, options, request)


def _request(kernel: Kernel, options: Options, compiler: Compiler) -> dict[str, Any]:
    """Return what the build cache knows a library by."""
    from ...binary import hashes

    architectures: list[str] = []
    if language_of(options) == "cuda":
        from ...build.cuda import architecture_flags

        architectures = architecture_flags(compiler, None)
    return {
        "loops": hashes.text_digest(repr((kernel, options))),
        "passes": compiler_digest(),
        "skipped": debug.skipped_passes(),
        "strict": debug.is_strict(),  # no library that is a fallback because of a bug
        "compiler": compiler.identity,
        "flags": flags_of(compiler.family, options),
        "architectures": architectures,
    }


def schedule_or_original(kernel: Kernel, options: Options, watch: Watch | None = None) -> Program:
    """Return the program that a call runs: scheduled, or in the author's order, with ``fallback``.

    A library that is built already says whether a compiler refused the text of the scheduled program.
    ``watch`` is given the program after each pass. Raises ``ScheduleError`` for a step that is not legal.
    """
    from ..pipeline import original
    from .make import sources, with_fallback

    def printed(program: Program) -> Program:
        sources(kernel, options, program)
        return program

    if why := _recorded_fallback(kernel, options):
        return original(kernel, why, fallback=why)
    return with_fallback(kernel, options, printed, watch)


def source_text(kernel: Kernel, options: Options) -> str:
    """Return the text that is compiled for a call."""
    from .make import sources

    return "\n".join(sources(kernel, options, schedule_or_original(kernel, options)))


def _recorded_fallback(kernel: Kernel, options: Options) -> str:
    """Return why a library in the build cache is in the author's order; "" if it is not, or there is none."""
    from ...build import compilers, lookup

    try:
        path = lookup.cached_path(_request(kernel, options, compilers.find(language_of(options))))
        return "\n".join(remarks(path, exported(kernel), "fallback")) if path else ""
    except PolyopError:  # no compiler, or a library that cannot be opened here: nothing is known
        return ""


def origin_and_notes(kernel: Kernel, options: Options) -> tuple[list[str], list[tuple[int, str]]]:
    """Return where a kernel's library is from, and the notes of the passes as (line, text).

    The first is empty if no library of the function was shipped. For a shipped library the passes are not
    run: their notes are in its index.
    """
    search = _search(kernel, options)
    if search.path:
        row = search.row
        how = "the same" if row["passes"] == compiler_digest() else "other"
        origin = (
            f"shipped: {search.path}, compiled ahead of time for {', '.join(row['told'])}, by {how} passes"
        )
        rows = row["told"].get(options.isa) or next(iter(row["told"].values()))
        return [origin], [(line, text) for line, text in rows]
    from ..emit.printer import notes as notes_of

    origin = f"compiled here: {search.why}"
    program = schedule_or_original(kernel, options)
    notes = [(note.line, note.text) for note in notes_of(program, options.isa)]
    return [origin] if search.why else [], notes


def _search(kernel: Kernel, options: Options) -> shipped.Search:
    device = options.isa if options.isa in TARGETS and TARGETS[options.isa].is_device else "cpu"
    return shipped.find(
        kernel,
        precise=options.precise,
        checked=options.checked,
        device=device,
        schedule=options.schedule,
    )


def remarks(path: str, name: str, kind: str) -> list[str]:
    """Return the messages to the author that the compiler wrote into a kernel's library.

    ``kind`` is "warnings" (elements that are read before they are written) or "fallback" (why the loops
    stay in the author's order).
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
def compiler_digest() -> str:
    """Return a digest of the loop compiler's own source files."""
    from ...binary import hashes
    from ...build import facts

    here = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - pathlib is slow to import
    paths = (f"{folder}/{name}" for folder, _, names in os.walk(here) for name in names)
    files = sorted(path for path in paths if path.endswith(".py"))
    return facts.cached("loop passes", files, lambda: hashes.digest_of(files))
