"""The compiler's passes, in order.

Every pass maps a :class:`Program` to a Program and keeps what the kernel means.
"""

from __future__ import annotations

from collections.abc import Sequence

from .analysis.loop_names import loop_names
from .ir.grammar import Kernel
from .ir.note import Note
from .ir.schedule import NOTHING, Schedule
from .ir.stops import exit_flags, misplaced_exits
from .ir.verify import unowned
from .passes.apply_schedule import apply_schedule
from .passes.argmax_by_reductions import argmax_by_reductions
from .passes.array_privatisation import array_privatisation
from .passes.assume_sizes import assume_sizes
from .passes.block_distribution import block_distribution
from .passes.bound_checks import bound_checks
from .passes.if_conversion import if_conversion
from .passes.index_set_splitting import index_set_splitting
from .passes.initialisation import initialisation
from .passes.inline import inline
from .passes.interchange_fuse import interchange_fuse
from .passes.loop_distribution import loop_distribution
from .passes.loop_tiling import loop_tiling
from .passes.pack_transposed import pack_transposed
from .passes.pad_operands import pad_operands
from .passes.predictive_commoning import predictive_commoning
from .passes.propagate_indices import propagate_indices
from .passes.reciprocals import reciprocals
from .passes.remove_empty_loops import remove_empty_loops
from .passes.rescaled_sums import rescaled_sums
from .passes.residue_classes import residue_classes
from .passes.scalar_replacement import scalar_replacement
from .passes.scatter_to_gather import scatter_to_gather
from .passes.strip_gradient_marks import strip_gradient_marks, without_marks
from .passes.tanh_by_exp import tanh_by_exp
from .passes.triangular_blocks import triangular_blocks
from .passes.unroll import unroll
from .program import Program
from .runner import Pass, Watch, run_passes, verify
from .schedule.plan_loops import plan_loops
from .schedule.shift_and_peel import shift_and_peel
from .vectors.coalesce import coalesce
from .vectors.hoist_checks import hoist_checks
from .vectors.hoist_quotients import hoist_quotients
from .vectors.interleave import interleave
from .vectors.packing import pack_rows, pack_shared
from .vectors.prefetch import prefetch
from .vectors.register_reuse import register_reuse
from .vectors.register_transpose import register_transpose
from .vectors.streaming_stores import streaming_stores
from .vectors.sums_of_tiles import block_sums, whole_strips
from .vectors.unroll_and_jam import unroll_and_jam

PIPELINE: tuple[Pass[Program], ...] = (
    Pass(strip_gradient_marks, "Only derivatives read the marks of gradients.", needed=True),
    Pass(propagate_indices, "Indices become affine expressions of loops and sizes."),
    Pass(remove_empty_loops, "Later passes know a loop by its statements: each loop needs one.", needed=True),
    Pass(unroll, "A short inner loop is written out: its control costs more than its body."),
    Pass(if_conversion, "What both arms of a condition store is stored in any case, once."),
    Pass(residue_classes, "A sum over multiples of a step does not look at the other numbers."),
    Pass(assume_sizes, "Proofs may rely on sizes that the call has checked.", needed=True),
    Pass(initialisation, "A buffer that may be read before it is written starts as zeros.", needed=True),
    Pass(argmax_by_reductions, "A search for the greatest element is two reductions, which have lanes."),
    Pass(rescaled_sums, "Sums that a running maximum rescales become plain sums, which have lanes."),
    Pass(inline, "A cheap temporary is computed again instead of loaded from memory."),
    Pass(loop_distribution, "A contraction that is alone in its loops can be tiled."),
    Pass(array_privatisation, "Iterations that share no temporary can run in parallel.", needed=True),
    Pass(block_distribution, "A contraction of what an iteration keeps for itself is tiled block by block."),
    Pass(scatter_to_gather, "Each element collects what is added to it: iterations share nothing."),
    Pass(pad_operands, "A sum without conditions can be tiled: its operand has zeros around it."),
    Pass(apply_schedule, "The author's steps come before the compiler's own choices.", needed=True),
    Pass(interchange_fuse, "Memory is walked in order, and neighbouring loops share what they load."),
    Pass(pack_transposed, "A tensor that is read across its rows is copied once, transposed."),
    Pass(loop_tiling, "A transposition goes tile by tile: rows and columns stay in the cache."),
    Pass(triangular_blocks, "Lanes need one range: in a block of a triangle a sum has it, but at the edge."),
    Pass(array_privatisation, "Fusion makes further temporaries private to a loop.", needed=True),
    Pass(scalar_replacement, "A sum stays in a register while its loop runs."),
    Pass(predictive_commoning, "What the iteration before has stored is in a register."),
    Pass(reciprocals, "One division serves all iterations of a loop."),
    Pass(tanh_by_exp, "A sum of 1 and a hyperbolic tangent does without the polynomial of tanh."),
    Pass(index_set_splitting, "The inside of a loop runs without the conditions at its borders."),
    Pass(bound_checks, "An index is proved, checked once per call, or checked at each access.", needed=True),
    Pass(plan_loops, "Loops become threads, vectors, register tiles.", needed=True),
    Pass(shift_and_peel, "Neighbouring loops of threads run row by row together: shared rows stay in cache."),
    Pass(pack_shared, "What the rows of a tile share is packed in the order in which the tile reads it."),
    Pass(pack_rows, "What a tile reads down its columns is copied once, in the order of the sum."),
    Pass(whole_strips, "The last vectors of a tile run with the others, although they have fewer lanes."),
    Pass(block_sums, "A long sum runs in blocks: what is packed for one stays in the cache."),
    Pass(unroll_and_jam, "Several rows are added to a vector of sums, which is loaded once for them."),
    Pass(coalesce, "Two loops over neighbouring elements run as one: short rows fill vectors."),
    Pass(register_transpose, "Lanes that walk along their own rows load squares of elements."),
    Pass(interleave, "Several vectors at once: none waits for the result of the one before."),
    Pass(hoist_quotients, "What a loop divides without changing it is divided before the loop."),
    Pass(hoist_checks, "The index that selects a row is checked once for the row."),
    Pass(register_reuse, "A row that is read at several offsets is loaded once."),
    Pass(prefetch, "What a loop reads next is asked for before it is needed."),
    Pass(streaming_stores, "A result larger than the caches is written past them."),
)
"""All passes, in order."""
COPYING = ("scatter_to_gather", "pad_operands", "triangular_blocks", "index_set_splitting")
"""Passes that make several nests of one, or harder ones: isl then has more to look at."""
WITHOUT_COPIES = tuple(one for one in PIPELINE if one.name not in COPYING)
"""The passes for a kernel that takes isl beyond its quota otherwise."""


def schedule(
    kernel: Kernel,
    watch: Watch | None = None,
    passes: Sequence[Pass[Program]] = PIPELINE,
    steps: Schedule = NOTHING,
) -> Program:
    """Return the program after all passes; ``steps`` are the author's.

    Raises ``ScheduleError`` for a step that is not legal, and ``AssertionError`` where a pass broke the
    program. Private buffers and the exits of ``while`` loops are always verified, at the end; the grammar is
    verified after each pass where POLYOP_STRICT is 1.
    """
    program = run_passes(Program(kernel, schedule=steps, loops=loop_names(kernel, {})), passes, watch)
    _ = program.kinds  # the CUDA emitter reads them, when isl's values are gone
    verify("the last pass", misplaced_exits(program.kernel, exit_flags(kernel)))
    if program.before_privatisation is not None:
        verify("the last pass", unowned(program.before_privatisation, program.kernel, program.owners))
    return program.without_isl()


def original(kernel: Kernel, why: str = "", fallback: str = "") -> Program:
    """Return the kernel in the author's order, on one thread: what is done when anything is in doubt."""
    note = Note(0, why, "fallback" if fallback else "debug")
    program = Program(without_marks(kernel), notes=(note,), checked=True, fallback=fallback)
    return program.without_isl()
