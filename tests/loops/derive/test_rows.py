# ruff: noqa: F821 - kernels, whose words are no names here
"""Kernels for tensors in rows: on the dense tensor they compute what the author's compute on the part of it."""

import numpy as np
import pytest

from polyop.loops.derive.rows import Rows, in_rows
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations


def weigh(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * w[j] + x.shape[1]
    return y


def smooth(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1] - 1):
            y[i, j] = x[i, j - 1] + x[i, j] + x[i, j + 1]
    return y


def heads(x):
    total = allocate((x.shape[0],), x.dtype)
    y = output_tensor((x.shape[0], x.shape[1]), x.dtype)
    for h in range(x.shape[0]):
        for s in range(x.shape[1]):
            for d in range(x.shape[2]):
                total[h] += x[h, s, d]
                y[h, s] += x[h, s, d] * x.shape[2]
    for h in range(x.shape[0]):
        y[h, 0] = total[h]
    return y


CASES = {  # kernel, sizes of the dense tensor, which part of it, how that lies
    "columns": (weigh, (4, 7), lambda x: x[:, :5], Rows((0, 1), (False, True))),
    "all columns": (weigh, (4, 7), lambda x: x, Rows((0, 1), (False, False))),
    "a stencil": (smooth, (3, 8), lambda x: x[:, :6], Rows((0, 1), (False, True))),
    "no columns": (smooth, (3, 8), lambda x: x[:, :0], Rows((0, 1), (False, True))),
    "another order": (heads, (4, 3, 5), lambda x: x.transpose(1, 0, 2), Rows((1, 0, 2), (False,) * 3)),
    "gaps": (
        heads,
        (4, 3, 5),
        lambda x: x[:, :2, :4].transpose(1, 0, 2),
        Rows((1, 0, 2), (False, True, True)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_values(case):
    function, shape, part, rows = CASES[case]
    dense = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    x = part(dense)
    others = [np.linspace(0, 1, x.shape[1])] if function is weigh else []
    kernel = parse(function, [("float64", array.ndim) for array in (x, *others)], {})
    variant, sizes = in_rows(kernel, {"x": rows})
    assert violations(variant) == []
    attributes = {name: x.shape[axis] for (_, axis), name in sizes.items()}
    assert len(attributes) == sum(rows.has_gap)
    (ours,) = interpret(variant, [dense, *others], attributes)
    np.testing.assert_array_equal(ours, interpret(kernel, [x, *others])[0])


def test_both_tensors():
    kernel = parse(added, [("float64", 2)] * 2, {})
    rows = Rows((0, 1), (False, True))
    variant, sizes = in_rows(kernel, {"a": rows, "b": rows})
    a, b = np.arange(12.0).reshape(3, 4), np.arange(15.0).reshape(3, 5)
    attributes = dict.fromkeys(sizes.values(), 2)
    (ours,) = interpret(variant, [a, b], attributes)
    np.testing.assert_array_equal(ours, a[:, :2] + b[:, :2])


def added(a, b):
    y = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[i, j] = a[i, j] + b[i, j]
    return y
