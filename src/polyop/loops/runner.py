"""Run a table of passes; verify, print and time the program after each of them.

Every pass maps a program to a program of the same type. The compiler's passes (pipeline.py) and those that
derive gradients, tangents and batches (derive/pipelines.py) are such tables.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from ..core.errors import FallbackWarning, PolyopError
from . import debug
from .ir.note import Note
from .ir.stops import exit_flags, misplaced_exits
from .ir.verify import violations
from .listing import listing
from .program import AnyProgram, Program


@dataclass(frozen=True)
class Pass(Generic[AnyProgram]):
    """One row of a table: ``why`` is a sentence for the documents and ``--print-after``.

    The pass has the name of its function. One that is ``needed`` cannot be skipped.
    """

    run: Callable[[AnyProgram], AnyProgram]
    why: str
    needed: bool = False
    unique_loops: bool = True
    """Whether each loop has its own name after the pass; otherwise neighbouring loops may share one."""

    @property
    def name(self) -> str:
        """The name of the pass."""
        return self.run.__name__


Watch = Callable[[Pass[Any], Program, float], object]
"""A function that is called after each pass, with the pass, the program, and the seconds that it took."""


def run_passes(
    program: AnyProgram,
    passes: Sequence[Pass[AnyProgram]],
    watch: Watch | None = None,
    *,
    is_derivation: bool = False,
) -> AnyProgram:
    """Return the program after all passes of a table, except those that POLYOP_SKIP_PASSES leaves out.

    ``is_derivation``: there is no author's order to fall back to, so a pass that is not needed is left out
    where it has a bug, with a note and a ``FallbackWarning``. Raises ``AssertionError`` if POLYOP_STRICT is 1
    and a pass returned an invalid kernel, and what passes raise otherwise.
    """
    strict, skipped = debug.is_strict(), debug.skipped_passes()
    watchers = [watch] if watch is not None else []
    if debug.print_after():
        watchers.append(printer(debug.print_after(), lambda text: sys.stderr.write(f"{text}\n")))
    for one in passes:
        if one.name in skipped and not one.needed:
            continue
        started, exits = time.perf_counter(), exit_flags(program.kernel) if strict else frozenset()
        try:
            program = one.run(program)
        except Exception as problem:
            if strict or one.needed or not is_derivation or not _is_bug(problem):
                raise
            program = _left_out(program, one, problem)
        seconds = time.perf_counter() - started
        for each in watchers:
            each(one, program, seconds)
        if strict:
            faults = violations(program.kernel, unique_loops=one.unique_loops)
            verify(one.name, faults or misplaced_exits(program.kernel, exits))
    return program


def _is_bug(problem: Exception) -> bool:
    """Whether an exception of a pass is neither an error of the kernel's author nor a limit of isl."""
    import islpy

    return not isinstance(problem, (PolyopError, islpy.Error))


def _left_out(program: AnyProgram, one: Pass[AnyProgram], problem: Exception) -> AnyProgram:
    """Return a program that a pass has not changed, and say so."""
    why = f"{type(problem).__name__}: {' '.join(str(problem).split())}"
    text = f"its derivation leaves out {one.name}: {why}; POLYOP_STRICT=1 raises it"
    warnings.warn(FallbackWarning(f"{program.kernel.name}: {text}"), stacklevel=2)
    return program.with_(Note(min(program.kernel.source, default=0), text, "fallback"))


def verify(name: str, faults: Sequence[str]) -> None:
    """Raise ``AssertionError`` if there are faults after the pass ``name``."""
    if faults:
        raise AssertionError(f"after {name}: {'; '.join(faults)}")


def printer(names: str, write: Callable[[str], object]) -> Watch:
    """Return a watch that writes the loops after the named passes ("all", or names separated by commas).

    For a pass that changes neither loops nor plan it writes one line.
    """
    chosen = {name.strip() for name in names.split(",")}
    before = ""
    count = 0

    def watch(one: Pass[Any], program: Program, seconds: float) -> None:
        nonlocal before, count
        del seconds
        count += 1
        text = listing(program)
        if "all" in chosen or one.name in chosen:
            if text == before:
                write(f"# pass {count}, {one.name}: no change")
            else:
                write(f"\n# pass {count}, {one.name}: {one.why}\n{text}\n")
        before = text

    return watch
