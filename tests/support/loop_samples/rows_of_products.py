# ruff: noqa: F821 - kernels, whose words are no names here
"""Kernels of rows and products, for tests of passes that distribute loops; and their compiled operators."""

import functools

from polyop.loops.frontend.parse import parse
from polyop.loops.targets import isa


def scalar_between(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    for i in range(q.shape[0]):
        m = 0.0
        for j in range(k.shape[0]):
            m = max(m, k[j, 0] * q[i, 0])
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += (q[i, j] - m) * k[j, d]
    return y


def scalar_bound(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    z = output_tensor((q.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        n = i % 2 + 1
        z[i] = n
        for j in range(min(n, k.shape[0])):
            for d in range(k.shape[1]):
                y[i, d] += q[i, j] * k[j, d]
    return y, z


@functools.cache
def typed(function, dtype="float64"):
    return parse(function, [(dtype, 2), (dtype, 2)], {})


def compiled(batch, cases):
    """Return a function from a kernel and a dtype to its operator; threads are used for any size."""
    path = batch.build(batch.text([typed(*c) for c in cases], isa.available()[0]), "-DPOLYOP_GRAIN=1")

    @functools.cache
    def of(function, dtype):
        tensors = [(dtype, ["n", "c"], ""), (dtype, ["m", "d"], "")]
        return batch.bound(function, tensors, {}, path, cases.index((function, dtype)))

    return of
