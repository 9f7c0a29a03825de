# ruff: noqa: F821 - kernels, whose words are no names here
"""Additions that become loops over elements: errors stay errors, and what is not reached is not touched."""

import itertools

import numpy as np
import pytest

from polyop.core.errors import KernelError
from polyop.loops.derive.forms import adjoint
from polyop.loops.derive.functional import functional
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.schedule import Schedule
from polyop.loops.ir.verify import violations
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa

SCATTER = """
def f(x, w, y):
    s = int64(w[0]) if w.shape[0] > 0 else int64(0)
    for i in range(x.shape[0]):
        for p in range(w.shape[0]):
            {}
    return y
"""
PLAIN, STRIDED = "y[i + p] += x[i] * w[p]", "y[2 * i + p] += x[i] * w[p]"
STENCIL = SCATTER.split("    for i", maxsplit=1)[0] + (
    "    for i in range(1, x.shape[0] - 1):\n        y[i - 1] += x[i]\n        y[i] += x[i] * 2\n"
    "        y[i + 1] += 3\n    return y\n"
)
INSIDE = {  # sizes of x, w and y
    "plain": (SCATTER.format(PLAIN), (5, 3, 7)),
    "no taps": (SCATTER.format(PLAIN), (5, 0, 2)),
    "no taps, no elements": (SCATTER.format(PLAIN), (5, 0, 0)),
    "no image": (SCATTER.format(PLAIN), (0, 5, 1)),
    "strided, no taps": (SCATTER.format(STRIDED), (5, 0, 2)),
    "strided, one tap": (SCATTER.format(STRIDED), (5, 1, 9)),
    "steps wider than the taps": (SCATTER.format("y[5 * i + 2 * p] += x[i] * w[p]"), (4, 2, 18)),
    "from data, nothing added": (SCATTER.format(f"if x[i] > 5: {PLAIN}"), (5, 3, 6)),
    "from the end": (SCATTER.format("y[i + p - 2] += x[i] * w[p]"), (5, 3, 5)),
    "shift from data": (SCATTER.format("y[i + p + s] += x[i] * w[p]"), (5, 3, 20)),
    "backwards": (SCATTER.format("y[i + w.shape[0] - 1 - p] += x[i] * w[p]"), (5, 3, 7)),
    "stencil, empty": (STENCIL, (1, 1, 0)),
    "stencil": (STENCIL, (6, 1, 6)),
}
OUTSIDE = {
    "from data": (SCATTER.format(f"if x[i] > 0: {PLAIN}"), (5, 3, 6)),
    "from data, strided": (SCATTER.format(f"if x[i] > 0: {STRIDED}"), (5, 3, 10)),
    "plain": (SCATTER.format(PLAIN), (5, 3, 6)),
    "condition wider than the tensor": (
        SCATTER.format("if 0 <= i + p - 1 < y.shape[0] + 1: y[i + p - 1] += x[i] * w[p]"),
        (5, 3, 5),
    ),
}

ROWS = """
def f(x, y):
    for k in range(x.shape[0]):
        for i in range(x.shape[1]):
            {}
    return y
"""
KEPT = {  # additions under conditions on a row, which stays
    "one": "if 0 <= 2 * k - 1 < y.shape[0] and i + 1 < y.shape[1]: y[2 * k - 1, i + 1] += x[k, i]",
    "taps": "for p in range(3):\n                if 2 <= 2 * k < y.shape[0] and 0 <= i + p - 1 < y.shape[1]:\n"
    "                    y[2 * k, i + p - 1] += x[k, i]",
    "nested": "if 2 * k < y.shape[0]:\n                for p in range(2):\n"
    "                    if i + p < y.shape[1]: y[2 * k, i + p] += x[k, i]",
    "several": "if 2 * k < y.shape[0] and i + 1 < y.shape[1]: y[2 * k, i + 1] += x[k, i]\n"
    "            if 2 * k < y.shape[0] and i < y.shape[1]: y[2 * k, i] += 2",
    "of both": "if 2 * k + i < y.shape[0] and i + 1 < y.shape[1]: y[2 * k, i + 1] += x[k, i]\n"
    "            if 2 * k + i < y.shape[0] and i < y.shape[1]: y[2 * k, i] += 2",
    "neither": "for p in range(2):\n                if not (2 * k >= y.shape[0] or i + p >= y.shape[1]):\n"
    "                    y[2 * k, i + p] += x[k, i]",
    "not in common": "if 2 * k < y.shape[0] and i + 1 < y.shape[1]: y[2 * k, i + 1] += x[k, i]\n"
    "            if 1 < 2 * k < y.shape[0] and i < y.shape[1]: y[2 * k, i] += 2",
}
POOL = """
def f(x):
    y = output_tensor((max(0, x.shape[0] // 3 + 1), max(0, x.shape[1] - 1)), x.dtype)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for p in range(5):
                for q in range(2):
                    if 0 <= 3 * i + p - 1 < x.shape[0]:
                        y[i, j] += x[3 * i + p - 1, j + q]
    return y
"""


def typed(source, generate, dtype="float32"):
    return parse(generate.function_of(source), [(dtype, 1)] * 3, {})


def numbers(sizes):
    draw = np.random.default_rng(5)
    return [draw.integers(1, 4, size).astype("float32") for size in sizes]


@pytest.mark.parametrize("case", INSIDE)
def test_elements_are_those_of_the_loops(case, generate):
    source, sizes = INSIDE[case]
    kernel, arrays = typed(source, generate), numbers(sizes)
    (expected,), (result,) = interpret(kernel, arrays), interpret(schedule(kernel).kernel, arrays)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "int8", "uint32"])
def test_sums_have_the_dtype_of_what_is_added(dtype, generate):
    program = schedule(typed(SCATTER.format(PLAIN), generate, dtype))
    assert [note for note in program.notes if note.kind == "scatter_to_gather"]
    assert violations(program.kernel) == []


def test_loops_that_a_schedule_names_stay(generate):
    program = schedule(typed(SCATTER.format(STRIDED), generate), steps=Schedule().interchange("p", "i"))
    assert [str(step) for step in program.applied] == ['interchange("p", "i")']


@pytest.mark.slow
@pytest.mark.parametrize("target", isa.available())
def test_compiled(target, generate, batch):
    every = [*INSIDE.values(), *OUTSIDE.values()]
    path = batch.build(batch.text([typed(s, generate) for s, _ in every], target), "-DPOLYOP_GRAIN=1")
    for place, (source, sizes) in enumerate(every):
        run = batch.bound(generate.function_of(source), [("float32", 1)] * 3, {}, path, place)
        for threads in (1, 3):
            with batch.threads(threads):
                if place >= len(INSIDE):
                    with pytest.raises(KernelError, match=f"of y, which has size {sizes[2]}"):
                        run(*numbers(sizes))
                    continue
                expected = interpret(typed(source, generate), numbers(sizes))
                np.testing.assert_array_equal(run(*numbers(sizes))[0], expected[0])


@pytest.mark.parametrize("case", KEPT)
def test_conditions_on_what_stays_are_kept(case, generate):
    kernel = parse(generate.function_of(ROWS.format(KEPT[case])), [("float32", 2)] * 2, {})
    scheduled = schedule(kernel).kernel
    for rows, height, width in ((2, 3, 4), (4, 3, 5), (3, 5, 3), (3, 1, 1), (5, 0, 2), (1, 4, 4)):
        arrays = [np.arange(rows * 3.0).reshape(rows, 3), np.ones((height, width))]
        arrays = [a.astype("float32") for a in arrays]
        expected = interpret(kernel, arrays)[0]
        np.testing.assert_array_equal(interpret(scheduled, arrays)[0], expected, err_msg=f"{height} {width}")


def test_a_gradient_reaches_no_row_beyond_the_image(generate):
    kernel = functional(parse(generate.function_of(POOL), [("float64", 2)], {}))
    derived = adjoint(kernel, [True]).kernel
    for rows in (1, 2, 3, 4, 5, 8):
        x = np.zeros((rows, 3))
        d_y = np.arange(1.0, 1 + 2 * (rows // 3 + 1)).reshape(-1, 2)
        expected = np.zeros_like(x)
        for i, p in itertools.product(range(len(d_y)), range(5)):
            if 0 <= 3 * i + p - 1 < rows:
                expected[3 * i + p - 1] += [d_y[i, 0], d_y[i].sum(), d_y[i, 1]]
        given = {"x": x, "y": np.zeros_like(d_y)}
        tensors = [n for n in derived.parameters if n in derived.buffers]
        arrays = [given.get(n, d_y) for n in tensors]
        arrays = [
            a if derived.buffers[n].shape else np.zeros((), bool)
            for n, a in zip(tensors, arrays, strict=True)
        ]
        for one in (derived, schedule(derived).kernel):
            np.testing.assert_array_equal(interpret(one, arrays)[0], expected, err_msg=f"{rows}")


def windows(x):
    y = output_tensor((max(x.shape[0] - 2, 0),), x.dtype)
    for i in range(y.shape[0]):
        s = 0.0
        for p in range(3):
            s += x[i + p]
        y[i] = s
    return y


def spread(x):
    y = np.zeros((x.shape[0],), x.dtype)
    for i in range(max(x.shape[0] - 2, 0)):
        for p in range(3):
            y[i + p] += x[i]
    return y


@pytest.mark.parametrize("function", [windows, spread])
def test_a_tensor_smaller_than_the_window(function):
    """One loop has no iterations, and the ends of the other reach beyond the tensor."""
    kernel, notes = parse(function, [("float64", 1)], {}), ()
    if function is windows:
        made = adjoint(kernel, [True])
        kernel, notes = made.kernel, made.notes
    program = schedule(kernel)
    assert "scatter_to_gather" in {note.kind for note in (*notes, *program.notes)}
    for n in range(5):
        given = {"x": np.arange(1.0, n + 1), "y": np.ones(max(n - 2, 0))}
        tensors = [name for name in kernel.parameters if name in kernel.buffers]
        arrays = [given.get(name, given["y"]) for name in tensors]
        arrays = [
            a if kernel.buffers[name].shape else np.zeros((), bool)
            for name, a in zip(tensors, arrays, strict=True)
        ]
        for one in (kernel, program.kernel):
            (result,) = interpret(one, arrays)
            assert result.shape == (n,)
            assert result.any() == (n > 2)


def test_a_shift_that_is_an_axis_too(generate):
    """The gradient of x adds to x[i + c, c]: the shift c of one axis is another axis of its own."""
    text = """
def f(x, w):
    y = output_tensor((x.shape[0] - w.shape[0] + 1, x.shape[2]), x.dtype)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for c in range(w.shape[0]):
                y[i, j] += x[i + c, c, j] * w[c]
    return y
"""
    derived = adjoint(parse(generate.function_of(text), [("float64", 3), ("float64", 1)], {}), [True]).kernel
    for rows, window, columns in ((4, 2, 3), (6, 3, 5), (3, 3, 1), (9, 1, 2)):
        w, d_y = (
            np.arange(1.0, 1 + window),
            np.arange(1.0, 1 + (rows - window + 1) * columns).reshape(-1, columns),
        )
        x, expected = np.ones((rows, window, columns)), np.zeros((rows, window, columns))
        for i, c in itertools.product(range(len(d_y)), range(window)):
            expected[i + c, c] += d_y[i] * w[c]
        given = {"x": x, "w": w, "y": d_y}
        tensors = [n for n in derived.parameters if n in derived.buffers]
        arrays = [given.get(n, d_y) if derived.buffers[n].shape else np.zeros((), bool) for n in tensors]
        for one in (derived, schedule(derived).kernel):
            np.testing.assert_array_equal(interpret(one, arrays)[0], expected, err_msg=f"{rows} {window}")


AROUND = {  # windows whose indices count from the end, in whole or for some attributes
    "one": "y[i] = x[i] * x[i - 1]",
    "by an attribute": "y[i] = x[i] * x[i - k]",
    "two terms": "y[i] = x[i - 2] * x[i] + x[i - k] * x[i]",
    "a loop of its own": "for p in range(3):\n            y[i] += x[i - p] * x[i] * (p + 1)",
}


@pytest.mark.parametrize("case", AROUND)
@pytest.mark.parametrize("k", [-1, 0, 1, 2])
def test_a_gradient_reaches_elements_that_are_counted_from_the_end(case, k, generate):
    text = "def f(x, k: int):\n    y = output_tensor(x.shape, x.dtype)\n    for i in range(%s):\n        %s\n    return y\n"
    function = generate.function_of(text % ("x.shape[0] - 1", AROUND[case]))
    derived = adjoint(parse(function, [("float64", 1)], {"k": int}), [True]).kernel
    x, d_y = np.arange(1.0, 7), np.arange(2.0, 14, 2)
    forward, step = parse(function, [("float64", 1)], {"k": int}), 1e-5
    slopes = []
    for row in np.eye(len(x)) * step:
        above, below = (interpret(forward, [x + by], {"k": k})[0] for by in (row, -row))
        slopes.append(((above - below) / (2 * step) * d_y).sum())
    given = {"x": x, "y": interpret(forward, [x], {"k": k})[0]}
    tensors = [n for n in derived.parameters if n in derived.buffers]
    arrays = [given.get(n, d_y) if derived.buffers[n].shape else np.zeros((), bool) for n in tensors]
    for one in (derived, schedule(derived).kernel):
        np.testing.assert_allclose(interpret(one, arrays, {"k": k})[0], slopes, rtol=1e-6)
