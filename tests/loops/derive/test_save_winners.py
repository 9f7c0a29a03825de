# ruff: noqa: F821 - the words of the language
"""The winner of a maximum that the forward saves gets the gradient that a search in the backward gives it."""

import math

import jax
import numpy as np
import pytest
import torch

from polyop import Custom, kernel
from polyop.loops.derive.forms import derive
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import For, statements


def max_pool(x, window: int = 3, stride: int = 2):
    rows = (x.shape[0] - window) // stride + 1
    columns = (x.shape[1] - window) // stride + 1
    y = output_tensor((rows, columns), x.dtype)
    for i, j in grid((rows, columns)):
        largest = -math.inf
        for p in range(window):
            for q in range(window):
                largest = max(largest, x[i * stride + p, j * stride + q])
        y[i, j] = largest
    return y


def padded_pool(x, window: int = 3, stride: int = 2):
    y = output_tensor((x.shape[0] // stride + 1, x.shape[1] // stride + 1), x.dtype)
    for i, j in grid(y.shape):
        largest = -math.inf
        for p in range(window):
            for q in range(window):
                h, v = i * stride - 1 + p, j * stride - 1 + q
                if 0 <= h < x.shape[0] and 0 <= v < x.shape[1]:
                    largest = max(largest, x[h, v])
        y[i, j] = largest
    return y


def within_a_triangle(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        least = x[i, 0]
        for j in range(x.shape[1]):
            if j <= i:
                least = min(least, x[i, j])
        y[i] = least
    return y


def wide_pool(x):
    y = output_tensor((x.shape[0] - 5, x.shape[1] // 2 - 2), x.dtype)
    for i in range(x.shape[0] - 5):
        for j in range(x.shape[1] // 2 - 2):
            y[i, j] = x[i, 2 * j]
            for p in range(6):
                for q in range(2):
                    y[i, j] = min(y[i, j], x[i + p, 2 * j + q])
    return y


def by_hand(x):
    y = output_tensor((x.shape[0] // 2, x.shape[1] // 2), x.dtype)
    for i in range(x.shape[0] // 2):
        for j in range(x.shape[1] // 2):
            top = x[2 * i, 2 * j] * 0.5
            top = max(top, x[2 * i, 2 * j])
            top = max(top, x[2 * i + 1, 2 * j])
            top = max(top, x[2 * i + 1, 2 * j + 1])
            y[i, j] = top * top
    return y


def of_a_row(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i, 0]
        for j in range(1, x.shape[1]):
            y[i] = max(y[i], x[i, j])
    return y


def of_all(x):
    y = output_tensor((1,), x.dtype)
    y[0] = -math.inf
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[0] = max(y[0], x[i, j])
    return y


def with_its_index(x):
    y = output_tensor((x.shape[0],), x.dtype)
    at = output_tensor((x.shape[0],), "int64")
    for i in range(x.shape[0]):
        best = x[i, 0]
        place = 0
        for j in range(1, x.shape[1]):
            if x[i, j] > best:
                best = x[i, j]
                place = j
        y[i] = best * 3
        at[i] = place
    return y, at


def by_index(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        best = 0
        for j in range(1, x.shape[1]):
            if x[i, j] < x[i, best]:
                best = j
        y[i] = x[i, best]
    return y


def under_a_condition(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        if x[i, 0] > 0:
            top = x[i, 1]
            for j in range(2, i + 2):
                top = max(top, x[i, j])
            y[i] = top * x[i, 0]
        else:
            y[i] = x[i, 0]
    return y


KERNELS = [
    max_pool,
    padded_pool,
    within_a_triangle,
    wide_pool,
    by_hand,
    of_a_row,
    of_all,
    with_its_index,
    by_index,
    under_a_condition,
]


KINDS = ("different", "equal", "with NaN", "infinite")


def table(kind):
    random = np.random.default_rng(1)
    if kind == "different":
        return random.permutation(13 * 15).reshape(13, 15).astype("float64") - 90
    values = random.integers(-2, 3, (13, 15)).astype("float64")
    if kind == "with NaN":
        values[random.random((13, 15)) < 0.1] = np.nan
    if kind == "infinite":
        values[values == 2] = np.inf
        values[:, :4] = -np.inf
    return values


def derivatives(op, x, *, again):
    """Return the result, its gradient, and with ``again`` the gradient of that one's square."""
    tensor = torch.tensor(x, requires_grad=True)
    result = op(tensor)
    y = result[0] if isinstance(result, tuple) else result
    weight = torch.arange(1, y.numel() + 1, dtype=y.dtype).reshape(y.shape)
    (first,) = torch.autograd.grad(y, tensor, weight, create_graph=again)
    second = torch.autograd.grad((first * first).sum(), tensor) if again and first.requires_grad else ()
    return y.detach(), first.detach(), *second


def check_that_the_gradient_is_that_of_the_search(function, dtype, *, again=False):
    saving = Custom(function, func_type="hybrid")
    searching = Custom(kernel(function, compile_attrs={"tape": "none"}), func_type="hybrid")
    for kind in KINDS:
        x = table(kind).astype(dtype)
        twice = again and kind != "with NaN"
        for one, other in zip(
            derivatives(saving, x, again=twice), derivatives(searching, x, again=twice), strict=True
        ):
            torch.testing.assert_close(
                one, other, rtol=0, atol=0, equal_nan=True, msg=f"{kind}: {one} {other}"
            )


@pytest.mark.slow(1)
@pytest.mark.parametrize("function", KERNELS)
def test_the_gradient_is_that_of_the_search(function):
    check_that_the_gradient_is_that_of_the_search(function, "float32")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("function", KERNELS)
def test_second_derivatives_too(function, dtype):
    check_that_the_gradient_is_that_of_the_search(function, dtype, again=True)


@pytest.mark.parametrize("function", KERNELS)
def test_the_forward_saves_it_and_the_backward_does_not_search(function):
    form = derive(parse(function, [("float32", 2)], {}), "saving")
    winners = [n for n in form.outputs if n.endswith(("_winner", "_winner_2", "best"))]
    assert len(winners) == 1
    loops = [s for s in statements(derive(form, "backward").body) if isinstance(s, For)]
    assert len(loops) <= len(form.buffers[form.outputs[0]].shape) + 1


@pytest.mark.slow(1)
@pytest.mark.parametrize(("function", "wide"), [(max_pool, False), (by_index, False), (by_index, True)])
def test_jax_saves_what_it_can_hold(function, wide):
    """The index of an element is an int64: without 64-bit types it is computed again."""
    x = table("equal").astype("float64" if wide else "float32")
    op = Custom(function, func_type="hybrid")
    tensor = torch.tensor(x, requires_grad=True)
    op(tensor).sum().backward()
    with jax.enable_x64(wide):
        gradient = jax.jit(jax.grad(lambda x: op(x).sum()))(x)
    np.testing.assert_array_equal(gradient, tensor.grad)
