"""Symbols, which stand for tensors while a rule is recorded: the spec of what is computed from them."""

import operator

import numpy as np
import pytest

from polyop.core.dtypes import dtype
from polyop.core.spec import Spec
from polyop.hosts.mindspore.symbols import Symbol, record, result_spec

HUGE = 1 << 40  # no memory has a matrix of this size


def symbols(*rows):
    with record(None) as recording:
        return [Symbol(recording, f"a{i}", Spec(s, dtype(d), "cpu")) for i, (s, d) in enumerate(rows)]


@pytest.mark.parametrize(
    ("function", "rows", "keywords", "shape"),
    [
        (np.matmul, [((HUGE, 7), "float32"), ((7, HUGE), "float32")], {}, (HUGE, HUGE)),
        (np.matmul, [((5, HUGE, 3), "float64"), ((3, 1), "float64")], {}, (5, HUGE, 1)),
        (np.exp, [((HUGE, HUGE), "float32")], {}, (HUGE, HUGE)),
        (operator.mul, [((HUGE, 1), "float32"), ((HUGE + 1,), "float32")], {}, (HUGE, HUGE + 1)),
        (np.sum, [((HUGE, 2, HUGE), "float32")], {"axis": (1,), "keepdims": True}, (HUGE, 1, HUGE)),
        (np.where, [((HUGE, 3), "bool"), ((HUGE, 3), "float16"), ((), "float16")], {}, (HUGE, 3)),
        (np.reshape, [((HUGE, 6), "float32")], None, (HUGE * 2, 3)),
        (np.sum, [((0, 4), "float32")], {"axis": 1}, (0,)),
    ],
)
def test_no_result_is_computed_at_its_size(function, rows, keywords, shape):
    values = symbols(*rows)
    if keywords is None:  # the new shape is no tensor
        values, keywords = [*values, shape], {}
    found = result_spec(function, values, keywords)
    assert found.shape == shape
    assert found.dtype.name == rows[-1][1]


def test_a_constant_array_keeps_the_sizes():
    (x,) = symbols(((1024,), "float32"))
    assert result_spec(np.add, [x, np.ones((3, 1024), np.float32)]).shape == (3, 1024)
