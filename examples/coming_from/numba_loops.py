"""The code of docs/coming-from/numba.md: loops compiled by Numba, and the same loops in polyop."""

# ruff: noqa: F821 - the words of the loop language

import numpy as np

import polyop

# [theirs]
import math

import numba
import numpy as np


@numba.njit(parallel=True, fastmath=True)
def their_norm(x, scale):
    y = np.empty_like(x)
    for i in numba.prange(x.shape[0]):
        squares = 0.0
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        factor = 1.0 / math.sqrt(squares / x.shape[1] + 1e-6)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * factor * scale[j]
    return y


# [/theirs]

# [ours]
import math

import polyop


@polyop.kernel
def norm(x, scale):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):  # found to be parallel
        squares = 0.0
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        factor = 1.0 / math.sqrt(squares / x.shape[1] + 1e-6)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * factor * scale[j]
    return y


# [/ours]

random = np.random.default_rng(0)
x, scale = random.normal(size=(5, 8)), random.normal(size=8)
np.testing.assert_allclose(their_norm(x, scale), norm(x, scale), rtol=1e-10)

# [gradient]
y, pull = norm.vjp(x, scale)  # derived from the loops; torch's backward and jax.grad likewise
d_x, d_scale = pull(np.ones_like(y))
# [/gradient]
step = x + 1e-6 * (np.arange(40).reshape(5, 8) == 11)
np.testing.assert_allclose((norm(step, scale) - y).sum() / 1e-6, d_x[1, 3], rtol=1e-3)
print("both agree")
