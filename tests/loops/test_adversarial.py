# ruff: noqa: F821, SIM102 - kernels, whose words are no names here
"""Kernels that were once compiled wrongly or slowly: each gives the results of plain Python, or its error."""

import numpy as np
import pytest

import polyop
from polyop import Custom, kernel
from polyop.core.errors import KernelError
from polyop.core.spec import Spec
from polyop.kernels.loop.kernel import LoopKernel

R = np.random.default_rng(7)


def ragged(a, b, d):
    y = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(d[i]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            y[i, j] = s
    return y


def hill(a, b):
    y = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(min(i, a.shape[0] - i)):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            y[i, j] = s
    return y


def sum_beside_a_temporary(x):
    n = x.shape[0]
    t = allocate((n,), x.dtype)
    y = output_tensor((n + 1,), x.dtype)
    s = 0.0
    for i in range(n):
        t[i] = x[i] * 2
        s += x[i]
    y[0] = s
    for i in range(n):
        y[i + 1] = t[i]
    return y


def operand_after_its_sum(a, c):
    t = allocate((c.shape[0],), a.dtype)
    y = output_tensor((a.shape[0], c.shape[0]), a.dtype)
    for j in range(c.shape[0]):
        t[j] = c[j] * 2
    for i in range(a.shape[0]):
        for j in range(c.shape[0]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * t[j]
            y[i, j] = s + t[j]
    return y


def wrapping_target(x):
    y = output_tensor((256,), x.dtype)
    for i in range(x.shape[0]):
        y[uint8(i)] += x[i]
    return y


def wrapping_condition(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if uint8(i) >= 10:
            y[i] = x[i]
    return y


def narrow_bound(x, k):
    y = output_tensor(x.shape, x.dtype)
    lim = k[0]
    for i in range(x.shape[0]):
        if i < lim * 4:
            y[i] = x[i]
    return y


def mirrored(c):
    y = output_tensor(c.shape, c.dtype)
    for i in range(c.shape[0]):
        y[i] = c[i]
    for i in range(1, c.shape[0]):
        y[i] = y[-i] + 1
    return y


def from_the_end(x):
    n = x.shape[0]
    y = output_tensor(x.shape, x.dtype)
    w = output_tensor(x.shape, x.dtype)
    for i in range(n):
        y[i - n] = x[i]
    for i in range(n):
        w[i] = y[n - 1 - i]
    return y, w


def sum_over_itself(x):
    n = x.shape[0]
    y = output_tensor(x.shape, x.dtype)
    for i in range(n):
        y[i] = x[i]
    for k in range(1, n + 1):
        y[0] += y[-k]
    return y


def causal(w, b):
    y = output_tensor((w.shape[0], b.shape[1]), w.dtype)
    for i in range(w.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(w.shape[1]):
                s += w[i, k] * (b[k - 3, j] if k >= 3 else 0.0)
            y[i, j] = s
    return y


def band(a, b, c):
    y = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(i, b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j] * c[k, j - i]
            y[i, j] = s
    return y


def names_of_temporaries(x):
    t = allocate(x.shape, x.dtype)
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t[i] = x[i] * 2
    for i in range(x.shape[0]):
        t_1 = x[i] * 100.0
        y[i] = t[i] + t_1
        y[i] += t_1
    return y


def under_a_mask(x, k):
    y = output_tensor(x.shape, x.dtype)
    for j in range(x.shape[0]):
        if x[j] > 0:
            y[j] = x[k[0]]
    return y


def nothing_left(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i - i] + x[(i + 1) - i]
    return y


def half(x):
    t = allocate(x.shape, x.dtype)
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t[i] = x[i] * x[i]
        y[i] = t[i] / x[i]
    return y


def windows(x):
    y = output_tensor((x.shape[0] // 2, x.shape[1] // 2), x.dtype)
    for i in range(x.shape[0] // 2):
        for j in range(x.shape[1] // 2):
            v = x[2 * i, 2 * j]
            for a in range(2):
                for b in range(2):
                    v = max(v, x[2 * i + a, 2 * j + b])
            y[i, j] = v
    return y


def padded(x, w):
    y = output_tensor(x.shape, x.dtype)
    for t in range(x.shape[0]):
        s = 0.0
        for q in range(w.shape[0]):
            p = t + q - 1
            if p >= 0 and p < x.shape[0]:
                s += x[p] * w[q]
        y[t] = s
    return y


def split_at_what_the_row_counts(x):
    """The cost of a loop is known before it runs, and k is not."""
    y = output_tensor((x.shape[0], x.shape[1]), x.dtype)
    for i in range(x.shape[0]):
        k = 0
        for j in range(x.shape[1]):
            if x[i, j] > 0:
                k = (k + 1) % x.shape[1]
        for j in range(x.shape[1]):
            if j < k:
                y[i, j] = x[i, j] * 2
            else:
                y[i, j] = x[i, 0]
    return y


def f(*sizes):
    return R.standard_normal(sizes)


CASES = [
    (ragged, lambda: (f(50, 13), f(13, 50), R.integers(0, 50, 50).astype(np.int64))),
    (hill, lambda: (f(70, 9), f(9, 70))),
    (sum_beside_a_temporary, lambda: (np.arange(5.0),)),
    (operand_after_its_sum, lambda: (f(20, 7), f(70))),
    (wrapping_target, lambda: (np.ones(3000),)),
    (wrapping_condition, lambda: (f(300),)),
    (narrow_bound, lambda: (f(400), np.array([80], np.uint8))),
    (mirrored, lambda: (np.zeros(100),)),
    (from_the_end, lambda: (f(100),)),
    (sum_over_itself, lambda: (np.arange(1.0, 9.0),)),
    (causal, lambda: (f(20, 9), f(9, 70))),
    (band, lambda: (f(40, 9), f(9, 70), f(9, 70))),
    (names_of_temporaries, lambda: (f(20),)),
    (under_a_mask, lambda: (-np.ones(64), np.array([77]))),
    (nothing_left, lambda: (f(20),)),
    (half, lambda: (np.full(3, 300, np.float16),)),
    (windows, lambda: (f(9, 40),)),
    (split_at_what_the_row_counts, lambda: (f(50, 40),)),
    (padded, lambda: (f(70), f(3))),
    (padded, lambda: (f(2), f(5))),
]


@pytest.mark.slow(3)
@pytest.mark.parametrize(("function", "make"), CASES, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")
def test_equals_its_plain_run(function, make):
    arrays = make()
    with np.errstate(all="ignore"):
        expected = kernel(function).python(*arrays)
    got = Custom(function, func_type="hybrid")(*arrays)
    for one, other in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def reads_first(x, p):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x[i + p] > 0:
            if i + p < x.shape[0]:
                y[i] = 1.0
    return y


def private(x):
    t = allocate((1,), x.dtype)
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t[i] = x[i]
        y[i] = t[i]
    return y


def unread(x):
    t = allocate(x.shape, x.dtype)
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t[i] = x[i + 1]
    for i in range(x.shape[0] - 1):
        y[i] = t[i]
    return y


def named_as_a_size(x, x_n0):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x_n0):
        y[i] = x[i] + x_n0
    return y


@pytest.mark.parametrize(
    ("function", "attributes"),
    [
        (reads_first, {"p": 3}),
        (reads_first, {"p": 10**9}),
        (private, {}),
        (unread, {}),
        (named_as_a_size, {"x_n0": 10**8}),
    ],
)
def test_an_index_outside_is_an_error_and_touches_nothing(function, attributes):
    x = np.ones(6)
    with pytest.raises(IndexError):
        kernel(function).python(x, *attributes.values())
    info = polyop.CustomRegOp().input(0, "x").output(0, "y")
    for name in attributes:
        info = info.attr(name, "required", "int")
    op = Custom(function, func_type="hybrid", reg_info=info.target("CPU").get_op_info())
    with pytest.raises(KernelError, match=r"line \d+: (an )?index"):
        op(x, *attributes.values())


def test_serial_keeps_its_order_beside_a_neighbour():
    def both(x):
        y = output_tensor(x.shape, x.dtype)
        z = output_tensor((1,), x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] * 2
        s = float32(0.0)
        for j in serial(x.shape[0]):
            s += x[j]
        z[0] = s
        return y, z

    x = R.random(100_003).astype(np.float32)
    assert Custom(both, func_type="hybrid")(x)[1] == kernel(both).python(x)[1]


def test_a_refused_registration_is_not_kept():
    def add(x, eps):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] + eps
        return y

    def registered(name):
        return (
            polyop.CustomRegOp()
            .input(0, "x")
            .output(0, "y")
            .attr(name, "required", "float")
            .target("CPU")
            .get_op_info()
        )

    with pytest.raises(polyop.PolyopError, match="epsilon"):
        Custom(add, func_type="hybrid", reg_info=registered("epsilon"))
    op = Custom(add, func_type="hybrid", reg_info=registered("eps"))
    assert op(np.zeros(1), 2.0) == 2.0


def picked(x, which):
    y = output_tensor((which.shape[0], x.shape[1]), x.dtype)
    for i in range(which.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[which[i], j]
    return y


def picked_in_order(x, which):
    y = output_tensor((which.shape[0], x.shape[1]), x.dtype)
    for i in range(which.shape[0]):
        total = x[0, 0]
        for j in serial(x.shape[1]):
            total = x[which[i], j] - total
        y[i, 0] = total
    return y


@pytest.mark.parametrize("columns", [1, 16, 37])
def test_rows_that_an_index_picks(columns):
    op, x = Custom(kernel(picked), func_type="hybrid"), R.standard_normal((6, columns)).astype(np.float32)
    which = np.array([5, -1, 0, 3, 3, -6, 2], np.int32)
    np.testing.assert_array_equal(op(x, which), x[which])
    for wrong in (6, -7, 2**31 - 1):
        with pytest.raises(KernelError, match=f"index {wrong} is outside dimension 0 of x, which has size 6"):
            op(x, np.append(which, np.int32(wrong)))


def test_explain_names_rows_that_are_checked_once():
    x, which = Spec((6, 4), polyop.dtype("float32")), Spec((3,), polyop.dtype("int32"))
    lines = LoopKernel(picked).explain((x, which), {})
    assert "        x: dimension 0 is checked once for each row" in lines
    lines = LoopKernel(picked_in_order).explain((x, which), {})
    assert "        x: dimension 0 is checked at each access" in lines


def test_a_row_without_elements_may_not_exist():
    op = Custom(kernel(picked), func_type="hybrid")
    assert op(np.zeros((2, 0), np.float32), np.array([9], np.int32)).shape == (1, 0)


def last_in_column(x, z):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i, 1] + z[i, x.shape[1] - 2] + x[i, x.shape[1] - 1]
    return y


def test_a_constant_index_makes_later_checks_unnecessary():
    op = Custom(kernel(last_in_column), func_type="hybrid")
    x, z = R.standard_normal((3, 4)), R.standard_normal((3, 3))
    np.testing.assert_array_equal(op(x, z), x[:, 1] + z[:, 2] + x[:, 3])
    assert "polyop_inside" not in op.source(x, z)
    with pytest.raises(KernelError, match="leaves dimension 1 of x, which has size 1"):
        op(x[:, :1].copy(), z)
    with pytest.raises(KernelError, match="leaves dimension 1 of z, which has size 2"):
        op(x, z[:, :2].copy())


def next_where_flagged(flags, x):
    y = output_tensor((x.shape[0],), x.dtype)
    for s in range(x.shape[0]):
        y[s] = 0.0
        for i in range(x.shape[1]):
            if flags[i, s] == flags[0, s]:
                y[s] += x[s, i + 1]
    return y


@pytest.mark.parametrize("rows", [1, 3, 8, 13])
def test_an_index_that_all_lanes_share_is_checked_for_lanes_whose_condition_holds(rows):
    """The lanes beyond the last row are no rows: their condition may hold for an index outside."""
    flags, x = np.ones((5, rows), "float32"), R.normal(size=(rows, 5)).astype("float32")
    flags[-1] = 2.0
    op = kernel(next_where_flagged)
    np.testing.assert_allclose(op(flags, x), x[:, 1:].sum(1), rtol=1e-6)
    flags[-1, rows // 2] = 1.0
    with pytest.raises(KernelError, match="index 5 is outside dimension 1 of x, which has size 5"):
        op(flags, x)
