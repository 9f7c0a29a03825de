"""Operators without outputs in a graph."""

import mindspore as ms
import numpy as np
from mindspore import Tensor

import polyop

X = np.array([1.0, 0.0, 3.0], np.float32)
SEEN = []
LOG = polyop.operator("ms_silent::log(Tensor x) -> ()", lambda x: SEEN.append(float(x.sum())))


def test_it_runs_in_order():
    @ms.jit
    def call(x):
        LOG(x)
        y = x * 2
        LOG(y)
        return y

    SEEN.clear()
    assert call(Tensor(X)).asnumpy().tolist() == [2, 0, 6]
    assert call(Tensor(X + 1)).asnumpy().tolist() == [4, 2, 8]
    assert SEEN == [4, 8, 7, 14]


def test_a_gradient_passes_by_it():
    @ms.jit
    def call(x):
        LOG(x)
        return (x * x).sum()

    assert ms.grad(call)(Tensor(X)).asnumpy().tolist() == [2, 0, 6]
