"""Dropout, and stochastic rounding to bfloat16: random numbers in loop kernels."""

# ruff: noqa: F821 - the words of the loop language

import polyop


# [dropout]
@polyop.kernel(name="noise::dropout")
def dropout(x, key, rate: float = 0.5):
    """Set elements to zero with this probability, and scale the others."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if random(key, i, j) >= rate:
                y[i, j] = x[i, j] / (1.0 - rate)
    return y


# [/dropout]

STEP = 2.0**-8 + 2.0**-15  # more than half of the distance to the next bfloat16, and less than all of it


# [rounding]
@polyop.kernel(name="noise::stochastic_bfloat16")
def stochastic_bfloat16(x, key):
    """Round each number up or down, so that the mean of many roundings is the number."""
    y = output_tensor(x.shape, bfloat16)
    for i in range(x.shape[0]):
        near = float32(bfloat16(x[i]))
        far = float32(bfloat16(near + sign(x[i] - near) * abs(near) * STEP))  # the other neighbour
        y[i] = far if random(key, i) < (x[i] - near) / (far - near) else near
    return y


# [/rounding]
