"""Run a table of passes; verify, print and time the program after each of them.

Every pass maps a program to a program of the same type. The compiler's passes (pipeline.py) and those that
derive gradients, tangents and batches (derive/pipelines.py) are such tables.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from . import debug
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
    program: AnyProgram, passes: Sequence[Pass[AnyProgram]], watch: Watch | None = None
) -> AnyProgram:
    """Return the program after all passes of a table, except those that POLYOP_SKIP_PASSES leaves out.

    Raises ``AssertionError`` if POLYOP_STRICT is 1 and a pass returned an invalid kernel.
    """
    strict, skipped = debug.is_strict(), debug.skipped_passes()
    watchers = [watch] if watch is not None else []
    if debug.print_after():
        watchers.append(printer(debug.print_after(), lambda text: sys.stderr.write(f"{text}\n")))
    for one in passes:
        if one.name in skipped and not one.needed:
            continue
        started = time.perf_counter()
        program = one.run(program)
        seconds = time.perf_counter() - started
        for each in watchers:
            each(one, program, seconds)
        if strict:
            verify(one.name, violations(program.kernel, unique_loops=one.unique_loops))
    return program


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
