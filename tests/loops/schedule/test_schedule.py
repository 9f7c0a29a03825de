# ruff: noqa: F821 - kernels, whose words are no names here
"""The author's schedule: each step keeps the values, or is refused with the accesses that forbid it."""

import inspect
import pickle
import re

import numpy as np
import pytest

import polyop
from polyop import Schedule
from polyop.core.errors import ArgumentTypeError, ArgumentValueError, GradientError, ScheduleError
from polyop.kernels.loop.kernel import LoopKernel
from polyop.loops.derive.forms import derive
from polyop.loops.emit.printer import source
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.schedule import STEPS
from polyop.loops.ir.verify import violations
from polyop.loops.pipeline import schedule
from polyop.loops.schedule.chosen import chosen
from polyop.loops.targets import isa

S = Schedule()


def doubled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 2
    return y


def scan(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + (y[i, j - 1] if j > 0 else 0)
    return y


def skewed(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if i > 0 and j + 1 < x.shape[1]:
                y[i, j] = y[i - 1, j + 1] + x[i, j]
    return y


def two(x):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 2
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            z[i, j] = y[i, j] + 1
    return y, z


def below(x):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 2
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            z[i, j] = y[x.shape[0] - 1 - i, j]
    return y, z


def product(x):
    c = output_tensor((x.shape[0], x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            c[i, j] = 0
            for r in range(x.shape[1]):
                c[i, j] += x[i, r] * x[j, r]
    return c


def column_sums(x):
    y = output_tensor((x.shape[1],), x.dtype)
    for j in range(x.shape[1]):
        y[j] = 0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j] += x[i, j]
    return y


def under_a_parabola(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(min(i * i, x.shape[1])):
            y[i, j] = x[i, j]
    return y


def triangle(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(i, x.shape[1]):
            y[i, j] = x[i, j]
    return y


def rows(x):
    y = output_tensor(x.shape, x.dtype)
    t = allocate((x.shape[1],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t[j] = x[i, j] * x[i, j]
        for j in range(x.shape[1]):
            y[i, j] = t[j] + t[x.shape[1] - 1 - j]
    return y


def inlined(x):
    y = output_tensor(x.shape, x.dtype)
    t = allocate(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t[i, j] = x[i, j] + 1
    for p in range(x.shape[0]):
        for q in range(x.shape[1]):
            y[p, q] = t[p, q] * 2
    return y


def three(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = 0
            for k in range(3):
                y[i, j] += x[i, j] * k
    return y


def until(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] < 0:
                break
            y[i, j] = x[i, j]
    return y


def in_order(x):
    y = output_tensor(x.shape, x.dtype)
    for i in serial(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] - 1
    return y


def picked(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[int(x[i, 0]) % x.shape[0], j] += x[i, j]
    return y


BLOCKS = S.tile("i", 4).tile("j", 8)
LEGAL = [
    (doubled, S.parallel("j")),
    (doubled, S.vectorize("i")),
    (doubled, S.interchange("j", "i")),
    (doubled, S.interchange("j", "i").parallel("i").vectorize("i")),
    (doubled, S.tile("i", 4)),
    (doubled, S.tile("j", 5).parallel("j.outer").vectorize("j.inner")),
    (doubled, BLOCKS.interchange("i.outer", "j.outer", "i.inner", "j.inner").parallel("i.outer")),
    (doubled, BLOCKS.interchange("j.outer", "i.outer", "j.inner", "i.inner").vectorize("i.inner")),
    (doubled, S.tile("i", 8).tile("i.inner", 2).unroll("i.inner.inner", 2)),
    (doubled, S.unroll("i", 4).parallel("i").vectorize("j")),
    (doubled, S.unroll("j", 3)),
    (scan, S.interchange("j", "i")),
    (scan, S.unroll("j", 3).parallel("i")),
    (scan, S.tile("j", 4).vectorize("i")),
    (skewed, S.unroll("i", 2)),
    (two, S.fuse("i", "i#2")),
    (two, S.fuse("i", "i#2").fuse("j", "j#2").parallel("j#2")),
    (two, S.parallel("i#2").vectorize("j#2")),
    (two, S.tile("i", 4).tile("i#2", 4).fuse("i.outer", "i#2.outer").parallel("i.outer")),
    (below, S.interchange("j", "i").interchange("j#2", "i#2").fuse("j", "j#2").parallel("j")),
    (product, S.tile("r", 4).parallel("j")),
    (product, S.unroll("r", 4).vectorize("j")),
    (product, S.vectorize("r").parallel("i")),
    (column_sums, S.interchange("j#2", "i").parallel("j#2")),
    (column_sums, S.parallel("i")),
    (triangle, S.tile("j", 4).parallel("i")),
    (triangle, S.unroll("j", 4)),
    (triangle, S.interchange("j", "i").parallel("j")),
    (rows, S.unroll("i", 3)),
    (rows, S.tile("i", 3).parallel("i.outer")),
    (rows, S.parallel("i").vectorize("j#2")),
    (inlined, S.tile("i", 4)),
    (inlined, S.parallel("j").parallel("q")),
    (three, S.unroll("k", 3).tile("j", 4)),
    (three, S.tile("j", 4).unroll("k", 2)),
    (three, S.unroll("k", 1)),
    (until, S.tile("i", 4)),
    (in_order, S.parallel("i")),
    (picked, S.parallel("i")),
]
SHAPES = [(0, 0), (1, 1), (2, 3), (3, 2), (7, 9), (17, 33), (40, 8)]


def typed(function, dtype="float32"):
    return parse(function, [(dtype, 2)], {})


def ids(rows):
    return [f"{row[0].__name__}-{k}" for k, row in enumerate(rows)]


@pytest.mark.slow(1)
@pytest.mark.parametrize(("function", "steps"), LEGAL, ids=ids(LEGAL))
def test_a_step_keeps_the_values(function, steps):
    kernel, stages = typed(function), []
    schedule(kernel, watch=lambda one, program, _: stages.append((one.name, program.kernel)), steps=steps)
    for shape in SHAPES:
        x = np.random.default_rng([*shape]).integers(0, 4, shape).astype(np.float32)
        expected = interpret(kernel, [x], {})
        for name, changed in stages:
            assert violations(changed) == [], name
            for one, other in zip(expected, interpret(changed, [x], {}), strict=True):
                np.testing.assert_array_equal(other, one, err_msg=f"{name} {shape}")


@pytest.fixture(scope="session")
def compiled(batch):
    """Each row of LEGAL compiled, in one library."""
    programs = [schedule(typed(function), steps=steps) for function, steps in LEGAL]
    library = batch.build(batch.text(programs, isa.available()[0]), "-DPOLYOP_GRAIN=1")
    return [batch.bound(row[0], [("float32", [], "")], {}, library, k) for k, row in enumerate(LEGAL)]


@pytest.mark.slow(8)
@pytest.mark.parametrize("number", range(len(LEGAL)), ids=ids(LEGAL))
def test_compiled_it_gives_what_python_gives(number, compiled, batch):
    python = polyop.kernel(LEGAL[number][0]).python
    for shape in SHAPES:
        x = np.random.default_rng([*shape]).integers(0, 4, shape).astype(np.float32)
        expected = python(x)
        for threads in (1, 3):
            with batch.threads(threads):
                results = compiled[number](x)
            for one, other in zip(expected if len(results) > 1 else [expected], results, strict=True):
                np.testing.assert_array_equal(other, one, err_msg=f"{shape} on {threads} threads")


CARRIED = "iterations of the loop {} depend on each other: they share y"
ILLEGAL = [  # function, schedule, what the error says, the texts of the lines of the two accesses
    (scan, S.parallel("j"), CARRIED.format("j"), ["y[i, j] = x[i, j] + (y[i, j - 1] if j > 0 else 0)"] * 2),
    (scan, S.vectorize("j"), CARRIED.format("j"), ["y[i, j] = x[i, j] + (y[i, j - 1] if j > 0 else 0)"] * 2),
    (skewed, S.interchange("j", "i"), "the order of two accesses to y would change", ["y[i, j] = y[i"] * 2),
    (
        below,
        S.fuse("i", "i#2"),
        "the order of two accesses to y would change",
        ["y[i, j] = x", "z[i, j] = y"],
    ),
    (
        under_a_parabola,
        S.interchange("j", "i"),
        "the range of j follows from a loop that would be inside it",
        ["for j"],
    ),
    (two, S.fuse("i", "j#2"), "the loops i and j#2 have different ranges", ["for j"]),
    (two, S.fuse("j", "j#2"), "the loops j and j#2 are not neighbours", ["for j"]),
    (two, S.fuse("i", "i#2").interchange("i", "i#2"), "they were fused", ["for i"]),
    (two, S.interchange("i", "i#2"), "the loops are not directly inside one another", ["for i"]),
    (product, S.interchange("r", "j"), "beside a loop in j there is more", ["for j"]),
    (doubled, S.parallel("q"), "there is no loop q", []),
    (doubled, S.tile("i", 4).parallel("i"), "there is no loop i any more: it was tiled", []),
    (three, S.unroll("k", 3).vectorize("k"), "the loop k is not there", []),
    (three, S.unroll("k", 3).unroll("k", 3), "the loop k is not there", []),
    (three, S.unroll("k", 4), "the loop k has 3 iterations", ["for k"]),
    (until, S.tile("j", 4), "the loop j may end early", ["for j"]),
    (until, S.vectorize("i"), "an inner loop ends at another iteration", ["for i"]),
    (doubled, S.parallel("i").parallel("j"), "one loop of a nest has this role", ["for i"]),
    (doubled, S.vectorize("i").vectorize("j"), "one loop of a nest has this role", ["for i"]),
    (doubled, S.parallel("j").vectorize("i"), "whose role excludes that", ["for i"]),
    (column_sums, S.vectorize("i"), "it reduces into a tensor", ["for i"]),
]


@pytest.mark.parametrize(("function", "steps", "words", "lines"), ILLEGAL, ids=ids(ILLEGAL))
def test_a_step_that_is_not_legal_is_refused(function, steps, words, lines):
    op = polyop.kernel(schedule=steps)(function)
    with pytest.raises(ScheduleError, match=re.escape(words)) as caught:
        op(np.ones((3, 3), np.float32))
    text = str(caught.value)
    assert f"loop kernel {function.__name__}: the step {steps.steps[-1].word}(" in text
    texts, first = inspect.getsourcelines(function)
    places = [(int(n), line) for n, line in re.findall(rf"{re.escape(__file__)}:(\d+).*\n    (.*)", text)]
    assert len(places) == len(lines)
    for (number, shown), expected in zip(places, lines, strict=True):
        assert shown.startswith(expected)
        assert texts[number - first].strip() == shown


def test_an_unknown_loop_lists_those_that_there_are():
    with pytest.raises(ScheduleError, match="the loops are i, j, i#2, j#2"):
        polyop.kernel(schedule=S.tile("k", 4))(two)(np.ones((3, 3), np.float32))


WRONG = [
    (lambda: S.tile(1, 4), ArgumentTypeError, "Schedule.tile: names a loop by its variable"),
    (lambda: S.tile("i", 4.0), ArgumentTypeError, "takes a number of iterations"),
    (lambda: S.unroll("i", 65), ArgumentValueError, "from 1 to 64"),
    (lambda: S.tile("i", 0), ArgumentValueError, "takes a number of iterations from 1"),
    (lambda: S.interchange("i"), ArgumentValueError, "takes the names of 2 loops or more"),
    (lambda: S.fuse("i", "i"), ArgumentValueError, "each once"),
    (lambda: polyop.kernel(schedule="tile"), ArgumentTypeError, "must be a polyop.Schedule"),
    (lambda: polyop.kernel(derived_schedules=S), ArgumentTypeError, "must be a dict of polyop.Schedule"),
    (lambda: polyop.kernel(derived_schedules={"grad": S}), ArgumentValueError, "must be derived kernels"),
]


@pytest.mark.parametrize(("call", "kind", "words"), WRONG)
def test_arguments_of_a_wrong_kind(call, kind, words):
    with pytest.raises(kind, match=re.escape(words)):
        call()


def test_a_schedule_is_a_value_whose_text_gives_it_back():
    steps = S.tile("i", 32).interchange("i.outer", "j", "i.inner").fuse("k", "k#2").unroll("r", 4)
    steps = steps.parallel("j").vectorize("i.inner").deterministic()
    assert {step.word for step in steps.steps} == STEPS.keys()
    again = eval(repr(steps), {"polyop": polyop})
    assert again == steps
    assert hash(again) == hash(steps)
    assert pickle.loads(pickle.dumps(steps)) == steps
    assert S == Schedule() != steps
    assert not S
    assert steps


def test_a_schedule_belongs_to_the_code_and_to_the_digest_of_an_operator():
    plain, tiled = LoopKernel(doubled), LoopKernel(doubled, schedule=S.tile("i", 2))
    assert plain.options != tiled.options
    assert {*plain.content()} < {*tiled.content()}
    for kernel in (plain, tiled):
        assert kernel.on("cuda").schedule == kernel.schedule
        kernel.typed([SPEC], {})
    assert plain.source() != tiled.source()
    paths = [kernel.library(kernel.typed([SPEC], {})).path for kernel in (plain, tiled)]
    assert paths[0] != paths[1]


SPEC = polyop.Spec((4, 4), polyop.dtype("float32"))
scheduled = polyop.kernel(schedule=S.tile("i", 2).parallel("i.outer"))(doubled)


def test_a_pickled_operator_has_its_schedule():
    again = pickle.loads(pickle.dumps(scheduled))
    assert again.operator.kernels[0].schedule == S.tile("i", 2).parallel("i.outer")


def test_a_schedule_comes_before_the_hint_of_the_text():
    assert not schedule(typed(in_order)).plan.threads & {"i"}
    assert "i" in schedule(typed(in_order), steps=S.parallel("i")).plan.threads


def test_explain_prints_what_was_chosen(capsys):
    from polyop.call.explain import explain

    text = explain(polyop.kernel(two), (SPEC,), {})
    assert 'polyop.Schedule().fuse("i", "i#2").fuse("j", "j#2").parallel("i").vectorize("j")' in text


@pytest.mark.slow(7)
def test_what_was_chosen_yields_the_same_code(program):
    tensors = [(dtype, len(axes)) for dtype, axes, _ in program.rows]
    kernel = parse(program.function, tensors, program.attributes)
    first = schedule(kernel)
    steps = chosen(first)
    second = schedule(kernel, steps=steps)
    assert chosen(second) == steps
    name = isa.available()[0]
    assert source(second, name, "f") == source(first, name, "f"), steps


@pytest.mark.slow(36)
@pytest.mark.parametrize(("function", "steps"), LEGAL, ids=ids(LEGAL))
def test_what_a_schedule_became_yields_the_same_code(function, steps):
    first = schedule(typed(function), steps=steps)
    second = schedule(typed(function), steps=chosen(first))
    name = isa.available()[0]
    assert source(second, name, "f") == source(first, name, "f"), chosen(first)


def squares(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * x[i, j]
    return y


def test_derived_kernels_take_schedules_of_their_own():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    steps = {"backward": S.tile("i", 2).parallel("j"), "backward__batched": S.vectorize("j")}
    op = polyop.kernel(derived_schedules=steps)(squares)
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    op(x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())
    backward = op.operator.gradient.kernel
    assert backward.schedule == steps["backward"]
    assert dict(backward.derived_schedules) == {"batched": steps["backward__batched"]}
    assert not op.operator.kernels[0].schedule
    refused = polyop.kernel(derived_schedules={"backward": S.parallel("q")})(squares)
    with pytest.raises(ScheduleError, match=r"loop kernel squares(__backward)?: the step parallel"):
        refused(x).sum().backward()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["backward", "tangent", "batched", "saving"])
def test_what_was_chosen_for_a_derived_kernel_yields_the_same_code(form, programs):
    for program in programs.PROGRAMS[::8]:
        tensors = [(dtype, len(axes)) for dtype, axes, _ in program.rows]
        try:
            kernel = derive(parse(program.function, tensors, program.attributes), form)
        except GradientError:
            continue
        if kernel is None:
            continue
        first = schedule(kernel)
        second = schedule(kernel, steps=chosen(first))
        name = isa.available()[0]
        assert source(second, name, "f") == source(first, name, "f"), program.name
