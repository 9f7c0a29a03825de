"""Add gradient rules: one that an author writes, and one that polyop derives from loops."""

# ruff: noqa: F821 - the words of loop kernels

import numpy as np

import polyop
from polyop.call.uses import used_by_rule
from polyop.core.errors import GradientError


# [author]
def cube(x):
    return x**3


def cube_gradient(x, out, dout):
    return (3.0 * x * x * dout,)  # one gradient, or None, per input


op = polyop.operator("rules::cube(Tensor x) -> Tensor", cube, infer="x", gradient=cube_gradient)

x = np.array([1.0, 2.0])
out, pull = op.vjp(x)
print(out, pull(np.ones(2))[0])
# [/author]
np.testing.assert_array_equal(pull(np.ones(2))[0], [3.0, 12.0])

# [uses]
print(used_by_rule(cube_gradient, 1))
# [/uses]
assert not used_by_rule(cube_gradient, 1).outputs

# [wrong]
bad = polyop.operator("rules::bad(Tensor x) -> Tensor", cube, infer="x", gradient=lambda x, out, dout: dout)
try:
    bad.vjp(x)[1](np.ones(2))
except GradientError as problem:
    print(str(problem).splitlines()[0].partition(" (")[0])
# [/wrong]


# [derived]
@polyop.kernel
def cube_loops(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i] * x[i]
    return y


print(cube_loops.gradient.backward.name)
print(cube_loops.gradient.loops(x))
# [/derived]
np.testing.assert_array_equal(cube_loops.vjp(x)[1](np.ones(2))[0], [3.0, 12.0])

# [won]
mine = polyop.operator("rules::cube_mine(Tensor x) -> Tensor", cube_loops, gradient=cube_gradient)
print(mine.gradient is cube_gradient, mine.operator.jvp, type(mine.operator.batch).__name__)
# [/won]
assert mine.gradient is cube_gradient
