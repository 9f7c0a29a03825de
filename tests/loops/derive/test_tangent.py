# ruff: noqa: F821 - programs in the language, whose words are no names here
"""Forward mode, against differences and against reverse mode: all programs of the table, then edges."""

import numpy as np
import pytest

from polyop.core.errors import GradientError
from polyop.loops.derive.forms import adjoint, tangent
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import Store, statements
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations

STEP = 1e-6


def _moved(helpers, arrays, seed=5):
    random = np.random.default_rng(seed)
    return [random.normal(size=a.shape) if helpers.real(a) else None for a in arrays]


def _tangents(helpers, program, arrays, along):
    kernel = tangent(helpers.typed(program, arrays), [t is not None for t in along])
    assert violations(kernel) == []
    return interpret(kernel, helpers.given(kernel, [*arrays, *along]), program.attributes)


@pytest.mark.slow(16)
@pytest.mark.parametrize("shift", [0, 1])
def test_tangents_are_the_directions_that_outputs_move_in(helpers, smooth, shift):
    arrays = helpers.arrays(smooth, helpers.sizes(smooth, shift))
    along = _moved(helpers, arrays)
    kernel = helpers.typed(smooth, arrays)

    def shifted(by):
        moved = [a if t is None else a + by * t for a, t in zip(arrays, along, strict=True)]
        return interpret(kernel, moved, smooth.attributes)

    for got, high, low in zip(
        _tangents(helpers, smooth, arrays, along), shifted(STEP), shifted(-STEP), strict=True
    ):
        if high.dtype == np.float64:
            expected = (high - low) / (2 * STEP)
            assert got.shape == high.shape
            np.testing.assert_allclose(
                got, expected, rtol=1e-6, atol=1e-6 * (1 + np.abs(expected).max(initial=0))
            )


@pytest.mark.slow(10)
def test_forward_and_reverse_mode_are_each_others_transpose(helpers, smooth):
    """<J v, w> = <v, J^T w>."""
    arrays = helpers.arrays(smooth, helpers.sizes(smooth), seed=2)
    along = _moved(helpers, arrays)
    kernel = helpers.typed(smooth, arrays)
    outputs = interpret(kernel, arrays, smooth.attributes)
    grads = [
        None if g is None else g.astype(o.dtype)
        for g, o in zip(_moved(helpers, outputs, seed=6), outputs, strict=True)
    ]
    pushed = _tangents(helpers, smooth, arrays, along)
    back = adjoint(kernel, [g is not None for g in grads]).kernel
    handed = [o if g is None else g for o, g in zip(outputs, grads, strict=True)]
    pulled = interpret(back, helpers.given(back, [*arrays, *outputs, *handed]), smooth.attributes)
    left = sum((t * g).sum() for t, g in zip(pushed, grads, strict=True) if g is not None)
    right = sum((t * g).sum() for t, g in zip(along, pulled, strict=True) if t is not None)
    rough = (
        1e-9 if all(g is None or g.dtype == np.float64 for g in grads) else 1e-2
    )  # a cast to bfloat16 among them
    assert left == pytest.approx(right, rel=rough, abs=rough)


@pytest.mark.slow(10)
def test_a_tensor_without_a_tangent_stands_still(helpers, smooth):
    """An absent tangent gives the same numbers as one of zeros."""
    arrays = helpers.arrays(smooth, helpers.sizes(smooth))
    along = _moved(helpers, arrays)
    first = next(k for k, t in enumerate(along) if t is not None)
    absent, zero = list(along), list(along)
    absent[first], zero[first] = None, np.zeros_like(along[first])
    results = [_tangents(helpers, smooth, arrays, row) for row in (absent, zero)]
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def linear(x, w):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i] += w[j] * x[i, j]
    return y


def largest(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i, 0]
        for j in range(1, x.shape[1]):
            y[i] = max(y[i], x[i, j])
    return y


def largest_of_sums(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = -100.0
        for j in range(x.shape[1]):
            y[i] = max(y[i], x[i, j] + x[i, 0])
    return y


def smallest(x):
    y = output_tensor((1,), x.dtype)
    y[0] = 9.0
    for i in range(x.shape[0]):
        y[0] = min(y[0], x[i, 0])
    return y


def between(a, b):
    y = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        y[i] = max(a[i], b[i])
    return y


def product(x):
    y = output_tensor((1,), x.dtype)
    y[0] = 1.0
    for i in range(x.shape[0]):
        y[0] = y[0] * x[i, 0]
    return y


def doubled(x):
    for i in range(x.shape[0]):
        x[i] = x[i] * 2
    return x


def test_a_linear_kernel_computes_no_value_beside_its_tangent():
    kernel = parse(linear, [("float32", 2), ("float32", 1)], {})
    made = tangent(kernel, [True, False])
    assert {s.buffer for s in statements(made.body) if isinstance(s, Store)} == {"t_y"}
    assert set(made.buffers) == {"x", "w", "t_x", "t_w", "t_y"}
    assert made.buffers["x"].absent  # neither read nor asked for its sizes: t_x has them
    assert made.buffers["t_w"].absent


def _pushed(function, *pairs):
    arrays, along = ([np.asarray(row, float) for row in column] for column in zip(*pairs, strict=True))
    kernel = tangent(parse(function, [("float64", a.ndim) for a in arrays], {}), [True] * len(arrays))
    return interpret(kernel, _given(kernel, [*arrays, *along]))[0].tolist()


def _given(kernel, arrays):
    names = [n for n in kernel.parameters if n in kernel.buffers]
    return [a if kernel.buffers[n].shape else np.zeros((), bool) for n, a in zip(names, arrays, strict=True)]


@pytest.mark.parametrize(
    ("function", "value", "along", "expected"),
    [
        (largest, [[2, 2, 2]], [[1, 10, 100]], [100]),
        (largest, [[2, 2, 1]], [[1, 10, 100]], [10]),
        (largest, [[3, 2, 1]], [[1, 10, 100]], [1]),
        (largest, [[7]], [[5]], [5]),
        (largest_of_sums, [[2, 2, 1]], [[1, 10, 100]], [11]),
        (smallest, [[2], [1], [1], [3]], [[1], [2], [3], [4]], [3]),
        (smallest, [[10]], [[1]], [0]),
        (smallest, [[9]], [[1]], [1]),
        (product, [[2], [3], [0]], [[1], [1], [1]], [6]),
        (product, [[0], [3], [0]], [[1], [1], [1]], [0]),
    ],
)
def test_ties_and_zeros(function, value, along, expected):
    """The last of equal elements of a max or min over a loop; products without division."""
    assert _pushed(function, (value, along)) == expected


def test_equal_operands_of_max_belong_to_the_first():
    assert _pushed(between, ([1, 2, 3], [10, 20, 30]), ([1, 3, 2], [7, 8, 9])) == [10, 8, 30]


def test_a_search_is_done_where_it_is_exact():
    """A max over plain elements has no order to keep; of computed values each step is compared."""
    names = [
        {
            s.name
            for s in statements(tangent(parse(f, [("float32", 2)], {}), [True]).body)
            if hasattr(s, "name")
        }
        for f in (largest, largest_of_sums)
    ]
    assert names == [{"last"}, set()]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_tangents_have_the_dtype_of_their_outputs(dtype):
    made = tangent(parse(linear, [(dtype, 2), (dtype, 1)], {}), [True, True])
    assert {made.buffers[n].dtype for n in ("t_x", "t_w", "t_y")} == {dtype}


def test_whole_numbers_have_no_tangent(programs):
    """Of an output of whole numbers there is one element that says nothing."""
    row = next(p for p in programs.PROGRAMS if p.function.__name__ == "argmax")
    kernel = parse(row.function, [("float32", 2)], {})
    made = tangent(kernel, [True])
    names = dict(zip(kernel.outputs, made.outputs, strict=True))
    for name, moved in names.items():
        whole = kernel.buffers[name].dtype.startswith("int")
        assert (made.buffers[moved].shape == kernel.buffers[name].shape) != whole


def test_writing_an_input_is_refused_with_the_line():
    kernel = parse(doubled, [("float32", 1)], {})
    with pytest.raises(
        GradientError, match=r"(?s)doubled.*it writes its input x in place.*return a new tensor.*"
    ) as caught:
        tangent(kernel, [True])
    assert "test_tangent.py:" in str(caught.value)


def test_a_tangent_is_derived_again(helpers):
    """The tangent of a tangent, and its gradient, against differences of the tangent."""

    def cubed(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] * x[i] * x[i]
        return y

    x, v, w = np.array([1.0, 2, 3]), np.array([1.0, 1, 2]), np.array([2.0, 0, 1])
    once = tangent(parse(cubed, [("float64", 1)], {}), [True])
    twice = tangent(once, [True, False])
    assert interpret(twice, helpers.given(twice, [x, v, w, None]))[0].tolist() == (6 * x * v * w).tolist()
    back = adjoint(once, [True]).kernel
    pulled = interpret(back, helpers.given(back, [x, v, x, w]))
    assert pulled[0].tolist() == (6 * x * v * w).tolist()
    assert pulled[1].tolist() == (3 * x * x * w).tolist()
