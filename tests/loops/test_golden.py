"""Small kernels as texts: around each pass, for each target, and derived. A change shows as a difference.

``make golden`` writes the texts anew. They name lines of loop_samples/small.py.
"""

import functools
import pathlib
import re

import pytest

from loop_samples import convolutions, dense, elements, small, triangles
from loop_samples.programs import Program as Sample
from polyop.loops.derive.forms import adjoint, batched, derive, saving, tangent
from polyop.loops.derive.functional import functional
from polyop.loops.derive.pipelines import PIPELINES
from polyop.loops.emit.printer import source
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.printing import expression, shown
from polyop.loops.ir.schedule import Schedule
from polyop.loops.ir.types import is_real
from polyop.loops.listing import listing
from polyop.loops.pipeline import PIPELINE, schedule
from polyop.loops.program import Program
from polyop.loops.targets.table import TARGETS


def typed(sample):
    return parse(sample.function, [(dtype, len(axes)) for dtype, axes, _ in sample.rows], sample.attributes)


# passes


CHANGED = {
    "strip_gradient_marks": Sample(small.straight_through, "float32 n"),
    "propagate_indices": Sample(small.named_index, "float32 n"),
    "remove_empty_loops": Sample(small.around_nothing, "float32 n"),
    "unroll": Sample(small.three_channels, "float32 n 3"),
    "if_conversion": Sample(small.by_sign, "float32 n"),
    "residue_classes": Sample(convolutions.looked_for, "float32 c n, float32 o c p"),
    "assume_sizes": Sample(small.fifth, "float32 n"),
    "initialisation": Sample(small.partly_written, "float32 n"),
    "argmax_by_reductions": Sample(small.place_of_the_greatest, "float32 n"),
    "rescaled_sums": Sample(small.online_log_sum, "float32 n"),
    "inline": Sample(small.doubled_then_added, "float32 n"),
    "loop_distribution": Sample(small.attention, "float32 n m, float32 k m"),
    "array_privatisation": Sample(small.exponentials_of_a_row, "float32 n m"),
    "block_distribution": Sample(small.attention_row_by_row, "float32 n m, float32 k m"),
    "scatter_to_gather": Sample(convolutions.spread, "float32 c n, float32 o c p"),
    "pad_operands": Sample(convolutions.padded, "float32 c n, float32 o c p"),
    "apply_schedule": Sample(small.column_by_column, "float32 n m"),
    "interchange_fuse": Sample(small.column_by_column, "float32 n m"),
    "pack_transposed": Sample(small.window_weights, "float32 n o i, float32 n c k, float32 o c p"),
    "loop_tiling": Sample(small.transposed, "float32 n m"),
    "triangular_blocks": Sample(triangles.of_triangles, "float32 n n, float32 n n"),
    "scalar_replacement": Sample(small.row_sum, "float32 n m"),
    "predictive_commoning": Sample(small.sum_of_those_before, "float32 n m"),
    "reciprocals": Sample(small.divided_by_rows, "float32 n m, float32 n"),
    "tanh_by_exp": Sample(small.logistic, "float32 n"),
    "index_set_splitting": Sample(small.with_borders, "float32 n"),
    "bound_checks": Sample(small.gather_and_add, "float32 n, int64 m, float32 m"),
    "plan_loops": Sample(small.matmul, "float32 n k, float32 k m"),
    "shift_and_peel": Sample(small.blurred, "float32 n m"),
    "pack_shared": Sample(small.matmul, "float32 n k, float32 k m"),
    "pack_rows": Sample(dense.matmul_transposed, "float32 k n, float32 m k"),
    "whole_strips": Sample(small.matmul, "float32 n k, float32 k m"),
    "block_sums": Sample(small.matmul, "float32 n k, float32 k m"),
    "unroll_and_jam": Sample(dense.atax, "float32 n m, float32 m"),
    "coalesce": Sample(dense.channels, "float32 n m 3, float32 2 3 3 k"),
    "register_transpose": Sample(small.transposed, "float32 n m"),
    "interleave": Sample(small.row_sum, "float32 n m"),
    "hoist_quotients": Sample(convolutions.of_groups, "float32 c n, float32 o p"),
    "hoist_checks": Sample(elements.indirect, "float32 n m, int32 k"),
    "register_reuse": Sample(small.stencil, "float32 n"),
    "prefetch": Sample(small.add, "float32 n, float32 n"),
    "streaming_stores": Sample(small.add, "float32 n, float32 n"),
}
"""By pass: a program that it changes."""
STEPS = Schedule().tile("j", 16).interchange("j.outer", "i", "j.inner")
"""The schedule of the program of ``apply_schedule``."""
OF_GRADIENTS = ("reciprocals",)
"""Passes that change derived kernels only: they are shown on the gradient of the program."""


def test_every_pass_has_a_text():
    assert list(CHANGED) == list(dict.fromkeys(one.name for one in PIPELINE))


@pytest.mark.parametrize("name", CHANGED)
def test_passes(name, golden):
    kernel = typed(CHANGED[name])
    if name in OF_GRADIENTS:
        kernel = gradient(kernel)
    why, *stages = change(kernel, name)
    assert stages[0] != stages[1]
    changed = [k for k, pair in enumerate(zip(*stages, strict=True)) if k and pair[0] != pair[1]]
    parts = [f"# {name}: {why}"]
    for title, stage in zip(("Before", "After"), stages, strict=True):
        parts += [f"\n# {title}:\n\n{stage[0]}", *(f"# {fact}" for k in changed for fact in stage[k])]
    golden(f"loops/passes/{name}.txt", "\n".join(parts) + "\n")


def change(kernel, name):
    """Return the reason for a pass, and the program before and after it."""
    stages = [described(Program(kernel))]
    rows = []

    def watch(one, program, seconds):
        stages.append(described(program))
        rows.append((one.name, one.why, *stages[-2:]))

    schedule(kernel, watch=watch, steps=STEPS if name == "apply_schedule" else Schedule())
    return next(row[1:] for row in rows if row[0] == name)


def described(program):
    """Return the loops of a program, and the other results of the passes, a sentence each.

    It reads sets of isl, which the result of ``schedule`` no longer has.
    """
    return (listing(program), *(list(rule(program)) for rule in (starting, assumed, checked, planned, noted)))


def line(program, number):
    return f"`{program.kernel.source.get(number, '').strip()}`"


def sizes(text):
    """Return a text with sizes as they are in Python: isl's names are like ``v_x_2e_n0``.

    >>> sizes("v_x_2e_n0 >= 5")
    'x.shape[0] >= 5'
    """
    return re.sub(r"v_(\w+?)_2e_n(\d+)", r"\1.shape[\2]", text)


def starting(program):
    for buffer in program.kernel.buffers.values():
        if buffer.zeroed:
            yield f"{buffer.name} starts as zeros" + (
                f" where {expression(buffer.zeroed_if)}" if buffer.zeroed_if else ""
            )
        if buffer.first_read:
            yield f"{buffer.name} is read before it is written in {line(program, buffer.first_read)}"


def assumed(program):
    bounds = program.assumed
    if bounds is None:
        return
    for one in bounds.preconditions:
        yield f"the call is an error where {expression(one.condition)}, by {line(program, one.line)}"
    for one in bounds.sizes:
        condition = str(one).partition(":")[2].strip(" }")
        yield f"proofs may rely on {sizes(condition)}"


def checked(program):
    for one in program.bounds.preconditions:
        yield f"checked once per call: an error where {expression(one.condition)}, by {line(program, one.line)}"
    for (name, (index, number)), axes in program.bounds.dynamic.items():
        texts = [expression(index[axis]) for axis in sorted(axes)]
        yield f"checked at each access: index {', '.join(texts)} of {name} in {line(program, number)}"


def planned(program):
    for var, tile in sorted(program.plan.tiles.items()):
        packed = sorted(expression(load) for load in tile.to_pack)
        shared = sorted(expression(load) for load in tile.shared)
        yield (
            f"register tile of loops {tile.row} and {var}: all its rows load {', '.join(shared)};"
            f" packed into a panel: {', '.join(packed) or 'nothing'}"
        )
    for band in program.plan.bands:
        for member in band[1:]:
            rows = f"{member.behind} row{'s' * (member.behind != 1)}"
            yield f"loop {member.var} of the band is {rows} behind loop {band[0].var}"


def noted(program):
    for note in program.notes:
        yield f"note on {line(program, note.line)}: {note.text}"


# passes of derivations


DERIVING = {
    "rescaled_sums_of_derivations": ("backward", Sample(small.online_log_sum, "float32 n")),
    "rescaled_sums_of_forwards": ("saving", Sample(small.online_log_sum, "float32 n")),
    "inline_scalars": ("backward", Sample(small.named_sum, "float32 n, float32 n")),
    "scalars_to_memory": ("backward", Sample(small.running_sum, "float32 n")),
    "stop_shift_gradients": ("backward", Sample(small.online_softmax_so_far, "float32 n")),
    "save_winners": ("saving", Sample(small.greatest_of_pairs, "float32 n")),
    "keep_argmax_operands": ("backward", Sample(small.largest_square, "float32 n")),
    "to_be_recorded": ("backward", Sample(small.normalised, "float32 n m")),
    "checkpointing": ("checkpointed", Sample(small.recurrence, "float32 n, float32 1")),
    "reverse": ("backward", Sample(small.recurrence, "float32 n, float32 1")),
    "dead_zeros": ("backward", Sample(small.doubled_then_added, "float32 n")),
    "copy_propagation": ("backward", Sample(small.add, "float32 n, float32 n")),
    "first_stores_of_scalars": ("backward", Sample(small.twice_the_sum, "float32 n")),
    "forward_substitution": ("backward", Sample(small.twice_the_sum, "float32 n")),
    "loop_fission": ("backward", Sample(small.matmul, "float32 n k, float32 k m")),
    "split_clamped_stores": ("backward", Sample(small.held_back, "float32 n")),
    "first_stores": ("backward", Sample(small.add, "float32 n, float32 n")),
    "inline_adjoints": ("backward", Sample(small.softmax, "float32 n m")),
    "dead_inputs": ("backward", Sample(small.add, "float32 n, float32 n")),
    "return_temporaries": ("saving", Sample(small.normalised, "float32 n m")),
    "forward_mode": ("tangent", Sample(small.running_sum, "float32 n")),
    "dead_statements": ("tangent", Sample(small.matmul, "float32 n k, float32 k m")),
    "batch_loop": ("batched", Sample(small.row_sum, "float32 n m")),
}
"""By pass: a derived form that it belongs to, and a program that it changes."""


def test_every_pass_of_a_derivation_has_a_text():
    names = {one.name for table in PIPELINES.values() for one in table}
    others = {one.name for one in PIPELINE} | {"initialisation_of_saved"}  # it runs initialisation
    assert set(DERIVING) == names - others


@pytest.mark.parametrize("name", DERIVING)
def test_passes_of_derivations(name, golden):
    form, sample = DERIVING[name]
    kernel = typed(sample)
    stages, rows = [facts(Program(kernel))], []

    def watch(one, program, seconds):
        stages.append(facts(program))
        rows.append((one.name, one.why, *stages[-2:]))

    derive(kernel, form, watch=watch)
    why, before, after = next(row[1:] for row in rows if row[0] == name)
    assert before != after
    golden(
        f"loops/derivations/{name}.txt", f"# {name}: {why}\n\n# Before:\n\n{before}\n\n# After:\n\n{after}\n"
    )


def facts(program):
    """Return the loops of a derivation, and where the values that its gradient reads come from."""
    recording = getattr(program, "recording", None)
    told = sorted(set(recording.explain())) if recording is not None else []
    return "\n".join([listing(program), *(f"# {line(program, number)}: {text}" for number, text in told)])


# targets

SUFFIXES = {"cuda": "cu", "opencl": "cl"}

EMITTED = (
    Sample(small.add, "float32 n, float32 n"),
    Sample(small.softmax, "float32 n m"),
    Sample(small.matmul, "float32 n k, float32 k m"),
    Sample(small.stencil, "float32 n"),
    Sample(small.gather, "float32 n, int64 m"),
    Sample(small.running_sum, "float32 n"),
    Sample(small.column_sum, "float32 n m"),
    Sample(small.transposed, "float32 n m"),
)


@functools.cache
def scheduled(sample):
    return schedule(typed(sample))


@pytest.mark.parametrize("sample", EMITTED, ids=lambda row: row.function.__name__)
@pytest.mark.parametrize("target", TARGETS)
def test_targets(target, sample, golden):
    name = sample.function.__name__
    text = source(scheduled(sample), target, name)
    assert str(pathlib.Path(small.__file__).parent) not in text
    golden(f"loops/targets/{target}/{name}.{SUFFIXES.get(target, 'c')}", text)


# derived kernels


def gradient(kernel):
    return adjoint(kernel, [True] * len(kernel.outputs)).kernel


def gradient_in_segments(kernel):
    return adjoint(kernel, [True] * len(kernel.outputs), segments=True).kernel


def forward_mode(kernel):
    return tangent(kernel, [is_real(kernel, n) for n in kernel.parameters if n in kernel.buffers])


def batch_of_the_last(kernel):
    """Return the kernel over samples of its last tensor; all samples share the others."""
    return batched(kernel, [None] * (len(kernel.parameters) - 1) + [0])


def with_temporaries(kernel):
    return saving(kernel, "auto")


FORMS = {
    "gradient": gradient,
    "tangent": forward_mode,
    "batch": batch_of_the_last,
    "saving": with_temporaries,
    "segments": gradient_in_segments,
    "functional": functional,
}
USUAL = ("gradient", "tangent", "batch")
DERIVED = (
    (Sample(small.add, "float32 n, float32 n"), USUAL),
    (Sample(small.softmax, "float32 n m"), (*USUAL, "saving")),
    (Sample(small.matmul, "float32 n k, float32 k m"), USUAL),
    (Sample(small.stencil, "float32 n"), USUAL),
    (Sample(small.gather, "float32 n, int64 m"), USUAL),
    (Sample(small.running_sum, "float32 n"), USUAL),
    (Sample(small.recurrence, "float32 n, float32 1"), (*USUAL, "segments")),
    (Sample(small.normalised, "float32 n m"), (*USUAL, "saving")),
    (Sample(small.scaled_in_place, "float32 n, float32 1"), ("functional",)),
)
"""By program: its derived forms that have a golden text."""
PAIRS = [(sample, form) for sample, forms in DERIVED for form in forms]


@pytest.mark.parametrize(
    ("sample", "form"), PAIRS, ids=lambda row: row if isinstance(row, str) else row.function.__name__
)
def test_derived(sample, form, golden):
    golden(f"loops/derived/{sample.function.__name__}.{form}.txt", shown(FORMS[form](typed(sample))))


@pytest.mark.parametrize(("sample", "forms"), DERIVED, ids=lambda row: getattr(row, "name", ""))
def test_every_program_that_saves_has_a_text_of_it(sample, forms):
    assert (with_temporaries(functional(typed(sample))) is not None) == ("saving" in forms)
