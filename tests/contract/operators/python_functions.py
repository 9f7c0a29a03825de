"""Kernels that are Python functions over NumPy arrays; one is MindSpore's pyfunc."""

import numpy as np

import polyop

softplus = polyop.operator(
    "contract::softplus(Tensor x, float sharpness=1.0) -> Tensor",
    lambda x, sharpness: np.log1p(np.exp(sharpness * x)) / sharpness,
    infer="x",
    gradient=lambda x, sharpness, out, dout: (dout * (1 - 2.718281828459045 ** (-sharpness * out)), None),
    batch="elementwise",
)


def _split(x):
    return np.maximum(x, 0), np.minimum(x, 0)


split = polyop.operator(
    "contract::split(Tensor x) -> (Tensor, Tensor)",
    _split,
    infer=lambda x: (x, x),
    gradient=lambda x, outs, douts: (douts[0] * (x > 0) + douts[1] * (x <= 0),),
    batch="elementwise",
)
polyop_samples = {"contract::softplus": (np.linspace(-1, 2, 12).reshape(3, 4), 2.0)}
