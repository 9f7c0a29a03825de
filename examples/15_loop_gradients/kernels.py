"""Loop kernels whose gradients polyop derives; docs/guides/loop-gradients.md shows the derived kernels."""
# ruff: noqa: F821 - the words of the language

import math


# [stencil]
def burgers(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(1, a.shape[0] - 1):
        b[i] = a[i] * (a[i + 1] - a[i - 1])
    return b


# [/stencil]


# [norm]
def rms_norm(x, scale):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        squares = 0.0
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        factor = rsqrt(squares / x.shape[1] + 1e-6)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * factor * scale[j]
    return y


# [/norm]


# [scan]
def filtered(x, decay):
    y = output_tensor(x.shape, x.dtype)
    for b in range(x.shape[0]):
        state = 0.0
        for t in range(x.shape[1]):
            state = tanh(decay[t] * state + x[b, t])
            y[b, t] = state * state
    return y


# [/scan]


# [own]
def log_sum_exp(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        top = -math.inf
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            total += exp(x[i, j] - top)
        whole = top + log(total)
        y[i] = stop_gradient(whole)
        for j in range(x.shape[1]):
            y[i] += with_gradient(0.0, x[i, j], exp(x[i, j] - whole))
    return y


# [/own]


# [refused]
def doubled(x):
    for i in range(x.shape[0]):
        x[i] = x[i] * 2
    return x


# [/refused]
