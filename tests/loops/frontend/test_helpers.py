# ruff: noqa: F821 - kernels, whose words are no names here
"""Helpers that write into tensors, in any place of an expression: each kernel beside plain Python.

What an expression has read before such a call has the value from before it, and what is read later the one after.
"""

import numpy as np
import pytest

import polyop
from polyop.loops.frontend.parse import parse
from polyop.loops.frontend.plain import plain
from polyop.loops.ir.interpret import interpret

pytestmark = pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")


def push(y, k, v):
    y[k] += v
    return y[k]


def push_twice(y, k, v):
    push(y, k, v)
    return push(y, k, 0) * 2


def add(y, k, v):
    y[k] += v


def square(v):
    return v * v


def get(y, k):
    return y[k]


def first_above(x, v):
    for i in range(x.shape[0]):
        if x[i] >= v:
            return i
    return 0


def both(y, k):
    y[k] += 1
    return y[k], y[k] * 2


def nested(y, k):
    add(y, k, square(push(y, k, get(y, 0) + push(y, 0, 2))))
    return get(y, k) + push(y, k, 1)


def arguments_of_a_statement(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        add(y, i, square(square(x[i])) + push(y, 0, x[i]))
        add(v=push(y, i, 1), y=y, k=first_above(x, push(y, 0, 1)))
    return y


def operands(x):
    y = output_tensor(x.shape, x.dtype)
    y[1] = y[0] + push_twice(y, 0, x[0]) + y[0]
    y[2] = get(y, 0) * push(y, 0, 1) - get(y, 0)
    y[0] = max(y[0], push(y, 0, 2), y[0]) + min(push(y, 0, v=push(y, 1, v=3)), y[1])
    return y


def targets(x):
    y = output_tensor(x.shape, x.dtype)
    y[0] += push(y, 0, x[1])
    y[first_above(x, push(y, 1, 1))] -= push(y, 1, x[2]) + push(y, 0, y[1])
    y[first_above(x, push(y, 0, 1))] = y[0] + push(y, 0, 5)
    y[int(push(y, 2, 0)) % 3] = push(y, 2, 1)
    s = y[0]
    s += push(y, 0, 1) + s
    y[3] = s
    return y


def conditions(x):
    y = output_tensor(x.shape, x.dtype)
    if 0 < push(y, 1, 1) < push(y, 2, 1) < push(y, 0, 100):
        y[1] = 50
    if (x[0] > 100 and push(y, 0, 1) > 0) or push(y, 1, 2) > 0:
        y[3] += push(y, 2, 1) if push(y, 2, 3) > 2 else push(y, 0, 9)
    elif push(y, 3, 7) > 0:
        y[0] = -1
    return y


def several_results(x):
    y = output_tensor(x.shape, x.dtype)
    a, b = both(y, 1)
    c, d = y[1], push(y, 1, 7)
    y[2] += a * b + c + d
    return y


def loops(x):
    y = output_tensor(x.shape, x.dtype)
    n = 0
    while push(y, 0, 1) < 4 and n < 10:
        n += 1
        add(y, 1, push(y, 2, push(y, 1, x[1])))
    for k in range(int(push(y, 0, 1)) - 3):
        y[2] += k
    return y


def rows(x):
    y = output_tensor((2, x.shape[0]), x.dtype)
    row = y[1]
    row[0] = y[1, 0] + push(y[1], 0, 4) + row[0]
    y[0, :] = row[:] * push(row, 1, 3) + row
    y[1] = x[:] * 2 + push(row, 0, 3) + y[1]
    y[0, 0:2] += push(row, 1, x[0])
    return y


def deeply(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(1, x.shape[0]):
        v = x[i] + nested(y, i) - nested(y, 0)
        add(y=y, v=push(y, i, v), k=first_above(x, y[0]))
    return y


X = np.array([1.0, 2.0, 3.0, 5.0])
KERNELS = (
    arguments_of_a_statement, operands, targets, conditions, several_results, loops, rows, deeply,
)  # fmt: skip


@pytest.mark.parametrize("function", KERNELS)
def test_helpers_run_in_the_order_of_python(function):
    operator = polyop.kernel(function, name=f"helpers::{function.__name__}")
    for dtype in ("float64", "float32", "int64"):
        x = X.astype(dtype)
        expected = plain(function)(x)
        (interpreted,) = interpret(parse(function, [(dtype, 1)], {}), [x])
        for result in (interpreted, operator(x)):
            np.testing.assert_allclose(result, expected, rtol=1e-5 if dtype == "float32" else 1e-12)


def test_gradients_see_what_was_read_before_a_write():
    torch = pytest.importorskip("torch", reason="gradients are compared with finite differences by PyTorch")

    def product(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] * y[0] + push(y, 0, square(x[i])) * y[0]
        return y

    operator = polyop.kernel(product, name="helpers::product")
    assert torch.autograd.gradcheck(operator, (torch.tensor(X, requires_grad=True),))
