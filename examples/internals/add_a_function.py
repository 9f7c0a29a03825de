"""Add a function to the language of loop kernels: a row, in a copy of the table of words."""

# ruff: noqa: F821 - the words of loop kernels

import math

import numpy as np

import polyop
from polyop.loops.frontend import language
from polyop.loops.frontend.composed import Composed
from polyop.loops.ir.operate import operate, where


# [row]
def expansion(x):
    turned = x * math.pi
    return where(operate("==", x, 0), 1.0, operate("sin", turned) / turned)


SINC = Composed("sinc", expansion, np.sinc)
# [/row]
language.WORDS["sinc"] = language.of_composed(SINC)


# [kernel]
@polyop.kernel
def wave(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 2 * sinc(x[i])
    return y


x = np.array([0.0, 0.5, -1.25])
print(wave(x), 2 * np.sinc(x))
# [/kernel]

# [gradient]
_, pull = wave.vjp(x)
(slope,) = pull(np.ones(3))
step = 1e-6
np.testing.assert_allclose(slope, (wave(x + step) - wave(x - step)) / (2 * step), atol=1e-8)
print(slope)
# [/gradient]
