# ruff: noqa: F821 - kernels, whose words are no names here
"""Loop kernels: elementwise, a reduction whose gradient is another kernel, a stencil, one in place."""

import numpy as np

import polyop


@polyop.kernel
def scaled_sine(x, a: float = 1.0):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = a * sin(x[i, j])
    return y


@polyop.kernel
def scaled_cosine(x, dy, a):
    dx = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            dx[i, j] = a * cos(x[i, j]) * dy[i, j]
    return dx


@polyop.kernel
def normalised(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / sqrt(total / x.shape[1] + 0.001)
    return y


@polyop.kernel
def normalised_gradient(x, dy):
    dx = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        dot = 0.0
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
            dot += x[i, j] * dy[i, j]
        scale = total / x.shape[1] + 0.001
        for j in range(x.shape[1]):
            dx[i, j] = (dy[i, j] - x[i, j] * dot / (x.shape[1] * scale)) / sqrt(scale)
    return dx


cosine = polyop.operator("contract::cosine(Tensor x, Tensor dy, float a) -> Tensor", scaled_cosine)
sine = polyop.operator(
    "contract::sine(Tensor x, float a=1.0) -> Tensor",
    scaled_sine,
    gradient=lambda x, a, out, dout: (cosine(x, dout, a), None),
    reference=lambda x, a: a * np.sin(x),
)
rms_gradient = polyop.operator("contract::rms_gradient(Tensor x, Tensor dy) -> Tensor", normalised_gradient)
rms = polyop.operator(
    "contract::rms(Tensor x) -> Tensor",
    normalised,
    gradient=lambda x, out, dout: (rms_gradient(x, dout),),
    reference=lambda x: x / np.sqrt((x * x).mean(1, keepdims=True) + 0.001),
)
x = np.linspace(-1, 2, 12).reshape(3, 4)
polyop_samples = {
    "contract::cosine": (x, x + 1, 0.5),
    "contract::sine": (x, 1.5),
    scaled_sine.name: (x, 1.5),
}
