"""Derived gradients of loop kernels: printed, compared with finite differences, and one refused."""

from pathlib import Path

import numpy as np
from kernels import burgers, doubled, filtered, log_sum_exp, rms_norm

import polyop

HERE = Path(__file__).parent
rng = np.random.default_rng(0)


def differences(op, inputs, weight, step=1e-6):
    """Return the gradients of ``sum(weight * op(*inputs))`` by central differences."""
    gradients = []
    for x in inputs:
        grad = np.zeros_like(x)
        for index in np.ndindex(x.shape):
            value = x[index]
            sums = []
            for moved in (value + step, value - step):
                x[index] = moved
                sums.append(np.sum(weight * op(*inputs)))
            x[index] = value
            grad[index] = (sums[0] - sums[1]) / (2 * step)
        gradients.append(grad)
    return gradients


def show(name, function, *inputs):
    """Compare a derived gradient with differences, and print its loops."""
    # [use]
    op = polyop.kernel(function)
    y, pull = op.vjp(*inputs)
    weight = rng.standard_normal(y.shape)
    gradients = pull(weight)
    print(op.gradient.loops(*inputs))
    # [/use]
    for one, other in zip(gradients, differences(op, inputs, weight), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)
    print(f"{name}: equal to finite differences\n")


show("stencil", burgers, rng.standard_normal(9))
show("norm", rms_norm, rng.standard_normal((3, 5)), rng.standard_normal(5))
show("scan", filtered, rng.standard_normal((3, 5)), rng.standard_normal(5))
show("own", log_sum_exp, rng.standard_normal((3, 5)))

# [asked]
op = polyop.kernel(filtered)
print(op.gradient.source(np.ones((3, 5)), np.ones(5)).count("\n"), "lines of C")
# [/asked]

op = polyop.kernel(doubled)
try:
    op.vjp(np.ones(3))
except polyop.PolyopError as problem:
    print(problem)
else:
    raise AssertionError
