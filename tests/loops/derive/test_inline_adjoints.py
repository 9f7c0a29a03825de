# ruff: noqa: F821 - kernels, whose words are no names here
"""A store that one statement reads goes into that statement, and the kernel means the same to the last bit."""

import warnings

import numpy as np
import pytest

from polyop import Custom
from polyop.loops.derive.derivation import Derivation
from polyop.loops.derive.inline_adjoints import inlined
from polyop.loops.derive.pipelines import NORMAL_FORM
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import Store, statements
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations
from polyop.loops.runner import run_passes


def plain(a, b):
    y = output_tensor(a.shape, a.dtype)
    t = allocate(a.shape, a.dtype)
    for i in range(a.shape[0]):
        t[i] = a[i] * b[0]
    for i in range(a.shape[0]):
        y[i] = t[i] + b[i]
    return y


def updated(a, b):
    y = output_tensor(a.shape, a.dtype)
    t = allocate(a.shape, a.dtype)
    for i in range(a.shape[0]):
        t[i] = a[i] * b[0]
    for i in range(a.shape[0]):
        t[i] += b[i] * a[i]
        y[i] = t[i] * b[i]
    return y


def largest(a, b):
    y = output_tensor(a.shape, a.dtype)
    t = allocate(a.shape, a.dtype)
    for i in range(a.shape[0]):
        t[i] = a[i]
    for i in range(a.shape[0]):
        t[i] = max(t[i], b[i])
        y[i] = t[i] - b[0]
    return y


def shifted(a, b):
    y = output_tensor(a.shape, a.dtype)
    t = allocate((a.shape[0] + 1,), a.dtype)
    for i in range(a.shape[0]):
        t[i + 1] = a[i]
    for i in range(a.shape[0]):
        y[i] = b[i]
    for i in range(1, a.shape[0]):
        y[i] = t[i] + b[i]
    return y


def behind(a, b):
    y = output_tensor(a.shape, a.dtype)
    t = allocate(a.shape, a.dtype)
    for i in range(a.shape[0]):
        t[i] = a[i] - b[i]
        y[i] = b[i]
    for i in range(1, a.shape[0]):
        y[i] = t[i - 1] * b[i]
    return y


def turned(a, b):
    y = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    t = allocate((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            t[i, j] = a[i] * b[j]
    for j in range(b.shape[0]):
        for i in range(a.shape[0]):
            y[i, j] = t[i, j] + a[j]
    return y


def renamed(a, b):
    y = output_tensor(a.shape, a.dtype)
    t = allocate(a.shape, a.dtype)
    for i in range(a.shape[0]):
        t[i] = a[i]
    for i in range(a.shape[0]):
        s = t[i]
        y[i] = s * s + b[i]
    return y


def an_output(a, b):
    y = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        y[i] = a[i] * 3
    for i in range(a.shape[0]):
        y[i] += b[i]
    return y


GONE = [plain, updated, largest, behind, turned, renamed, an_output]


def part_of_an_output(a, b):
    y = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        y[i] = a[i] * 3
    for i in range(1, a.shape[0]):
        y[i] += b[i]
    return y


def read_twice(a, b):
    y = output_tensor(a.shape, a.dtype)
    t = allocate(a.shape, a.dtype)
    for i in range(a.shape[0]):
        t[i] = a[i] * b[i]
    for i in range(a.shape[0]):
        y[i] = exp(t[i])
    for i in range(a.shape[0]):
        y[i] += t[i] * b[i]
    return y


def a_factor_that_changes(a, b):
    y = output_tensor(a.shape, a.dtype)
    t = allocate(a.shape, a.dtype)
    s = allocate((1,), a.dtype)
    s[0] = b[0]
    for i in range(a.shape[0]):
        t[i] = a[i] * s[0]
    s[0] = b[0] * b[0]
    for i in range(a.shape[0]):
        y[i] = t[i] + s[0]
    return y


def a_part_is_never_stored(a, b):
    y = output_tensor(a.shape, a.dtype)
    t = allocate(a.shape, a.dtype)
    for i in range(1, a.shape[0]):
        t[i] = a[i] * 2
    for i in range(a.shape[0]):
        y[i] = t[i] + b[i]
    return y


def a_condition(a, b):
    y = output_tensor(a.shape, a.dtype)
    t = allocate(a.shape, a.dtype)
    for i in range(a.shape[0]):
        if a[i] > 0:
            t[i] = a[i]
    for i in range(a.shape[0]):
        y[i] = t[i] + b[i]
    return y


def much_work(a, b):
    y = output_tensor(a.shape, a.dtype)
    t = allocate(a.shape, a.dtype)
    for i in range(a.shape[0]):
        t[i] = exp(a[i])
    for i in range(a.shape[0]):
        y[i] = t[i] + b[i]
    return y


def again_and_again(a, b):
    y = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    t = allocate(a.shape, a.dtype)
    for i in range(a.shape[0]):
        t[i] = a[i] * b[0]
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            y[i, j] = t[i] + b[j]
    return y


def a_sum(a, b):
    y = output_tensor(a.shape, a.dtype)
    t = allocate((1,), a.dtype)
    t[0] = b[0]
    for i in range(a.shape[0]):
        t[0] += a[i]
        y[i] = t[0]
    return y


def the_diagonal(a, b):
    y = output_tensor(a.shape, a.dtype)
    t = allocate((a.shape[0], a.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        t[i, i] = a[i] * 2
    for i in range(a.shape[0]):
        y[i] = t[i, i] + b[i]
    return y


def beyond(a, b):
    y = output_tensor(b.shape, a.dtype)
    t = allocate((a.shape[0] // 2,), a.dtype)
    for i in range(a.shape[0] // 2):
        t[i] = a[i]
    for i in range(b.shape[0]):
        y[i] = t[i] + b[i]
    return y


def picked(a, b):
    y = output_tensor(a.shape, a.dtype)
    t = allocate(a.shape, a.dtype)
    for i in range(a.shape[0]):
        t[i] = a[i] * 2
    for i in range(a.shape[0]):
        y[i] = t[a.shape[0] - 1 - int64(abs(b[i]) * 0)] + b[i]
    return y


KEPT = [
    shifted,
    part_of_an_output,
    read_twice,
    a_factor_that_changes,
    a_part_is_never_stored,
    a_condition,
    much_work,
    again_and_again,
    a_sum,
    the_diagonal,
    beyond,
    picked,
]


def changed(function, dtype):
    typed = parse(function, [(dtype, 1), (dtype, 1)], {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        derivation = run_passes(Derivation(typed), NORMAL_FORM)
        before = derivation.kernel
        names = [n for n, b in before.buffers.items() if b.role in ("local", "output")]
        after = inlined(before, derivation.session, names)
    return before, after


def stores(kernel):
    return sum(isinstance(s, Store) for s in statements(kernel.body))


@pytest.mark.slow(10)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("function", [*GONE, *KEPT])
def test_the_kernel_means_the_same(function, dtype):
    before, after = changed(function, dtype)
    assert violations(after) == []
    for n in range(6):
        random = np.random.default_rng(n)
        arrays = [random.standard_normal(n).astype(dtype) for _ in range(2)]
        try:
            expected = interpret(before, arrays, {})
        except IndexError:
            continue
        for one, other in zip(interpret(after, arrays, {}), expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("function", GONE)
def test_a_store_goes_where_it_is_read(function):
    before, after = changed(function, "float64")
    assert stores(after) < stores(before)


@pytest.mark.parametrize("function", KEPT)
def test_a_store_stays_where_more_depends_on_it(function):
    before, after = changed(function, "float64")
    assert stores(after) == stores(before)


def test_going_back_through_a_softmax_needs_no_row_of_its_own(cases):
    softmax, (x,), _ = cases["softmax"]
    assert "d_y_now" not in Custom(softmax, func_type="hybrid").gradient.loops(x)
