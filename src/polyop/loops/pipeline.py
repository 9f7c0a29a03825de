"""The compiler's passes, in order, and their runner.

Every pass maps a :class:`Program` to a Program and keeps what the kernel means. The runner can verify, print
and time the program after each of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import debug
from .analysis.polyhedra import session
from .ir.grammar import Kernel
from .ir.verify import unowned, violations
from .listing import listing
from .passes.array_privatisation import array_privatisation
from .passes.assume_sizes import assume_sizes
from .passes.bound_checks import bound_checks
from .passes.index_set_splitting import index_set_splitting
from .passes.initialisation import initialisation
from .passes.inline import inline
from .passes.interchange_fuse import interchange_fuse
from .passes.loop_distribution import loop_distribution
from .passes.pack_transposed import pack_transposed
from .passes.propagate_indices import propagate_indices
from .passes.reciprocals import reciprocals
from .passes.remove_empty_loops import remove_empty_loops
from .passes.scalar_replacement import scalar_replacement
from .passes.strip_gradient_marks import strip_gradient_marks, without_marks
from .passes.unroll import unroll
from .program import Note, Program
from .schedule.plan_loops import plan_loops
from .schedule.shift_and_peel import shift_and_peel


@dataclass(frozen=True)
class Pass:
    """One row of the pipeline: ``why`` is a sentence for the documents and ``--print-after``.

    The pass has the name of its file. One that is ``needed`` cannot be skipped.
    """

    run: Callable[[Program], Program]
    why: str
    needed: bool = False

    @property
    def name(self) -> str:
        """The name of the pass."""
        return self.run.__name__


PIPELINE = (
    Pass(strip_gradient_marks, "Only derivatives read the marks of gradients.", needed=True),
    Pass(propagate_indices, "Indices become affine expressions of loops and sizes."),
    Pass(remove_empty_loops, "Later passes know a loop by its statements: each loop needs one.", needed=True),
    Pass(unroll, "A short inner loop is written out: its control costs more than its body."),
    Pass(assume_sizes, "Proofs may rely on sizes that the call has checked.", needed=True),
    Pass(initialisation, "A buffer that may be read before it is written starts as zeros.", needed=True),
    Pass(inline, "A cheap temporary is computed again instead of loaded from memory."),
    Pass(loop_distribution, "A contraction that is alone in its loops can be tiled."),
    Pass(array_privatisation, "Iterations that share no temporary can run in parallel.", needed=True),
    Pass(interchange_fuse, "Memory is walked in order, and neighbouring loops share what they load."),
    Pass(pack_transposed, "A tensor that is read across its rows is copied once, transposed."),
    Pass(array_privatisation, "Fusion makes further temporaries private to a loop.", needed=True),
    Pass(scalar_replacement, "A sum stays in a register while its loop runs."),
    Pass(reciprocals, "One division serves all iterations of a loop."),
    Pass(index_set_splitting, "The inside of a loop runs without the conditions at its borders."),
    Pass(bound_checks, "An index is proved, checked once per call, or checked at each access.", needed=True),
    Pass(plan_loops, "Loops become threads, vectors, register tiles.", needed=True),
    Pass(shift_and_peel, "Neighbouring loops of threads run row by row together: shared rows stay in cache."),
)
"""All passes, in order."""

Watch = Callable[[Pass, Program, float], object]
"""Is given each pass, the program after it, and the seconds that it took."""


def schedule(kernel: Kernel, watch: Watch | None = None, passes: Sequence[Pass] = PIPELINE) -> Program:
    """Return the program after all passes.

    Raises ``AssertionError`` where a pass broke the program. Private buffers are always verified, at the end;
    the grammar is verified after each pass where POLYOP_STRICT is 1.
    """
    program, strict = Program(kernel), debug.is_strict()
    watchers = [watch] if watch is not None else []
    if debug.print_after():
        watchers.append(printer(debug.print_after(), lambda text: sys.stderr.write(f"{text}\n")))
    skipped = debug.skipped_passes()
    with session():
        for one in passes:
            if one.name in skipped and not one.needed:
                continue
            started = time.perf_counter()
            program = one.run(program)
            took = time.perf_counter() - started
            for each in watchers:
                each(one, program, took)
            if strict:
                _verify(one.name, violations(program.kernel))
        _ = program.kinds  # the CUDA emitter asks for them, after the session
    if program.before_privatisation is not None:
        _verify("the last pass", unowned(program.before_privatisation, program.kernel, program.owners))
    return program.without_isl()


def _verify(name: str, faults: Sequence[str]) -> None:
    if faults:
        raise AssertionError(f"after {name}: {'; '.join(faults)}")


def original(kernel: Kernel, why: str = "", fallback: str = "") -> Program:
    """Return the kernel in the author's order, on one thread: what is done when anything is in doubt."""
    note = Note(0, why, "fallback" if fallback else "debug")
    program = Program(without_marks(kernel), notes=(note,), checked=True, fallback=fallback)
    return program.without_isl()


def printer(names: str, write: Callable[[str], object]) -> Watch:
    """Return what writes the loops after the named passes ("all", or names separated by commas).

    A pass that changes neither loops nor plan is one line.
    """
    chosen = {name.strip() for name in names.split(",")}
    before = ""
    count = 0

    def watch(one: Pass, program: Program, seconds: float) -> None:
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
