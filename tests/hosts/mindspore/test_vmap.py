"""``ms.vmap``: one call for all items by the operator's batch rule, or one call per item, in both modes.

Python kernels count their calls, as each call of one is a call of the operator.
"""
# ruff: noqa: F821 - the words of the loop language

import math

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor

import polyop

RNG = np.random.default_rng(3)
CALLS = []


def counted(function):
    def kernel(*arrays):
        CALLS.append(function.__name__)
        return function(*arrays)

    return kernel


def _scaled(x, a):
    return (x * a).astype(x.dtype)


def _linear(x, w):
    return x @ w


def _sorted(x):
    return np.sort(x, -1)


def _plus(x, y):
    return x + y


def _both(x):
    return x + 1, np.sum(x, -1)


def _all(x):
    return np.sort(x, None)


SCALED = polyop.operator(
    "ms_vmap::scaled(Tensor x, float a=2.0) -> Tensor",
    counted(_scaled),
    infer="x",
    gradient=lambda x, a, out, dout: (a * dout, None),
    batch="elementwise",
)
LINEAR = polyop.operator(
    "ms_vmap::linear(Tensor x, Tensor w) -> Tensor",
    counted(_linear),
    dims="b i, i o -> b o",
    parallel="b o",
    sum="i",
)
SORTED = polyop.operator("ms_vmap::sorted(Tensor x) -> Tensor", counted(_sorted), dims="... n -> ... n")
PLUS = polyop.operator(
    "ms_vmap::plus(Tensor x, Tensor y) -> Tensor",
    counted(_plus),
    infer=lambda x, y: polyop.Spec(np.broadcast_shapes(x.shape, y.shape), x.dtype, x.device),
    batch="elementwise",
)
BOTH = polyop.operator(
    "ms_vmap::both(Tensor x) -> (Tensor, Tensor)", counted(_both), dims="... n -> ... n, ..."
)


def _add(x, y):
    x += y


ADD = polyop.operator("ms_vmap::add_(Tensor(a!) x, Tensor y) -> ()", counted(_add), batch="elementwise")


def sort_batch(dims, inputs):
    (x,), (dim,) = inputs, dims
    xp = polyop.array_namespace(x)
    rows = xp.moveaxis(x, dim, 0)
    return SORTED(xp.reshape(rows, (rows.shape[0], -1))), 0


ALL = polyop.operator("ms_vmap::all(Tensor x) -> Tensor", counted(_all), dims="m n -> m*n", batch=sort_batch)
PLAIN = polyop.operator("ms_vmap::plain(Tensor x) -> Tensor", counted(lambda x: 3 * x), infer="x")


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def data(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def scaled(x):
    return SCALED(x, 3.0)


def linear(x, w):
    return LINEAR(x, w)


def plus(x, y):
    return PLUS(x, y)


def sorted_rows(x):
    return SORTED(x)


def sorted_all(x):
    return ALL(x)


def both(x):
    return BOTH(x)


def plain(x):
    return PLAIN(x)


# function, arrays, in_axes, calls of its kernel
ONE_CALL = {
    "elementwise": (scaled, (data(4, 2, 3),), 0),
    "elementwise, the last axis": (scaled, (data(2, 3, 4),), -1),
    "broadcasting": (plus, (data(4, 2, 3), data(4, 3)), (0, 0)),
    "a shared tensor": (plus, (data(4, 3), data(2, 3)), (0, None)),
    "dims, ...": (sorted_rows, (data(2, 4, 3),), 1),
    "dims, a parallel dimension": (linear, (data(4, 2, 3), data(3, 5)), (0, None)),
    "dims, the other one": (linear, (data(2, 3), data(3, 4, 5)), (None, 1)),
    "an author's rule": (sorted_all, (data(2, 4, 3),), 1),
    "two outputs": (both, (data(2, 4),), 1),
}


def expected(function, arrays, axes, out_axes=0):
    axes = axes if isinstance(axes, tuple) else (axes,) * len(arrays)
    size = next(x.shape[a] for x, a in zip(arrays, axes, strict=True) if a is not None)
    rows = []
    for k in range(size):
        items = (x if a is None else np.take(x, k, a) for x, a in zip(arrays, axes, strict=True))
        result = function(*(Tensor(np.ascontiguousarray(item)) for item in items))
        rows.append([r.asnumpy() for r in (result if isinstance(result, tuple) else (result,))])
    return [np.stack(column, out_axes) for column in zip(*rows, strict=True)]


def check(batched, arrays, wanted):
    result = batched(*map(Tensor, arrays))
    for one, other in zip(result if isinstance(result, tuple) else (result,), wanted, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other, rtol=1e-5)


@pytest.mark.parametrize("name", ONE_CALL)
def test_one_call_for_all_items(name, context):
    function, arrays, axes = ONE_CALL[name]
    wanted = expected(function, arrays, axes)
    CALLS.clear()
    check(ms.vmap(function, in_axes=axes), arrays, wanted)
    assert len(CALLS) == 1


@pytest.mark.parametrize("out_axes", [0, 1, -1])
def test_out_axes(out_axes, context):
    x = data(4, 2, 3)
    wanted = expected(scaled, (x,), 0, out_axes)
    check(ms.vmap(scaled, out_axes=out_axes), (x,), wanted)


def test_vmap_of_vmap(context):
    x, w = data(5, 4, 2, 3), data(3, 6)
    axes = (0, None)
    check(ms.vmap(ms.vmap(linear, in_axes=axes), in_axes=axes), (x, w), [x @ w])
    assert len(CALLS) == 1


@pytest.mark.filterwarnings("ignore:ms_vmap.*one call per sample")
@pytest.mark.parametrize(("axis", "calls"), [(0, 1), (1, 4)])
def test_an_operator_that_writes_its_argument(axis, calls, context):
    """One call where no axis must be moved: MindSpore would lose the write."""

    def call(x, y):
        ADD(x, y)
        return x * 1

    x, y = data(4, 4), data(4, 4)
    written = Tensor(x.copy())
    check(ms.vmap(call, in_axes=(axis, 0)), (x, y), [np.moveaxis(x, axis, 0) + y])
    ms.vmap(call, in_axes=(axis, 0))(written, Tensor(y))
    np.testing.assert_array_equal(written.asnumpy(), x + np.moveaxis(y, 0, axis))
    assert len(CALLS) == 2 * calls


def test_vmap_inside_jit():
    x = data(4, 3)

    @ms.jit
    def call(x):
        return ms.vmap(scaled)(x) + 1

    check(call, (x,), [3 * x + 1])
    assert CALLS == ["_scaled"]


def test_no_item_is_batched(context):
    x, y = data(3), data(4, 3)

    def call(x, y):
        return SCALED(x, 2.0) + y

    check(ms.vmap(call, in_axes=(None, 0)), (x, y), [2 * x + y])
    assert len(CALLS) == 1


def test_gradients_of_items_and_of_a_batch(context):
    x = data(4, 3)

    def loss(x):
        return (SCALED(x, 3.0) * x).sum()

    def total(x):
        return ms.vmap(loss)(x).sum()

    check(ms.vmap(ms.grad(loss)), (x,), [6 * x])
    check(ms.grad(total), (x,), [6 * x])


def test_a_loop_kernel_and_its_gradient(context):
    @polyop.kernel
    def scan(x):
        y = output_tensor(x.shape, x.dtype)
        total = 0.0
        for i in range(x.shape[0]):
            total = total * 0.5 + x[i] * x[i]
            y[i] = total
        return y

    def call(x):
        return scan(x)

    def loss(x):
        return scan(x).sum()

    def total(x):
        return ms.vmap(loss)(x).sum()

    x = data(4, 5)
    check(ms.vmap(call), (x,), expected(call, (x,), 0))
    each = np.stack([ms.grad(loss)(Tensor(row)).asnumpy() for row in x])
    check(ms.vmap(ms.grad(loss)), (x,), [each])
    check(ms.grad(total), (x,), [each])


def test_a_library_written_in_c(library_file, context):
    """A kernel without Python is launched on all items at once too."""
    add = polyop.operator(
        f"ms_vmap::add_{context}(Tensor x, Tensor y) -> Tensor",
        f"{library_file}:CustomAdd",
        infer="x",
        batch="elementwise",
    )

    def call(x, y):
        return add(x, y)

    x, y = data(4, 3), data(4, 3)
    check(ms.vmap(call), (x, y), [x + y])


@pytest.mark.filterwarnings("ignore:ms_vmap.*one call per sample")
def test_without_a_rule_each_item_is_a_call(context):
    x = data(4, 3)
    check(ms.vmap(plain), (x,), [3 * x])
    assert len(CALLS) == 4


def test_a_rule_that_cannot_run_while_mindspore_compiles(context):
    op = polyop.operator(
        f"ms_vmap::hard_{context}(Tensor x) -> Tensor",
        counted(lambda x: x + 1),
        infer="x",
        batch=lambda dims, inputs: (inputs[0].clip(0), dims[0]),  # a method of some other framework
    )

    def hard(x):
        return op(x)

    x = data(4, 3)
    with pytest.warns(polyop.FallbackWarning, match="hard_.*: the batch rule cannot run while"):
        check(ms.vmap(hard), (x,), [x + 1])
    assert len(CALLS) == 4


def doubled_where_zero(dims, xs):
    return SCALED(xs[0], 1.0) + 10.0 * SCALED(xs[0] == 0, 1.0), dims[0]


def at_most_infinity(dims, xs):
    return SCALED(xs[0], 1.0) - SCALED(xs[0], 1.0) + math.inf, dims[0]


def branches(dims, xs):
    return (xs[0] * 100.0 if xs[0] > 1e9 else xs[0]), dims[0]


@pytest.mark.parametrize(("rule", "expected"), [
    (doubled_where_zero, lambda x: x + 10 * (x == 0)),
    (at_most_infinity, lambda x: x + np.inf),
    (branches, lambda x: x),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*branches.*the batch rule cannot run while:polyop.FallbackWarning")
def test_what_a_rule_asks_of_a_tensor(rule, expected, context):
    name = f"ms_vmap::{rule.__name__}_{context}"
    op = polyop.operator(f"{name}(Tensor x) -> Tensor", counted(expected), infer="x", batch=rule)

    def call(x):
        return op(x)

    x = np.float32([[0, 1], [2, 0], [3, 4]])
    check(ms.vmap(call), (x,), [expected(x)])


def test_a_wrong_rule(context):
    wrong = polyop.operator(
        f"ms_vmap::wrong_{context}(Tensor x) -> Tensor",
        lambda x: x,
        infer="x",
        batch=lambda dims, xs: (SORTED(xs[0]), 1),
    )

    def call(x):
        return wrong(x)

    with pytest.raises(polyop.core.errors.GradientError, match="dimension 1, where batch= says the batch is"):
        ms.vmap(call)(Tensor(data(4, 3)))
