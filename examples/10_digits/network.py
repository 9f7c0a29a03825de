"""A network for handwritten digits with three custom operators; the same code for every framework."""
# ruff: noqa: F821 - output_tensor and sqrt are words of the loop kernels' language

import pathlib

import numpy as np
from sklearn.datasets import load_digits

import polyop

HERE = pathlib.Path(__file__).parent


# [normalisation]
@polyop.kernel
def normalise(x):  # its gradient is derived from the loops
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        squares = 0.0
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / sqrt(squares / x.shape[1] + 1e-5)
    return y


# [/normalisation]

# [activation]
softsign_gradient = polyop.operator(
    "digits::softsign_gradient(Tensor x, Tensor dy) -> Tensor",
    f"{HERE / 'activation.c'}:softsign_gradient",
    batch="elementwise",
)
softsign = polyop.operator(
    "digits::softsign(Tensor x) -> Tensor",
    f"{HERE / 'activation.c'}:softsign",
    gradient=lambda x, out, dout: (softsign_gradient(x, dout),),
    batch="elementwise",
)
# [/activation]

# [loss]
cross_entropy = polyop.CustomOpBuilder("digits_loss", [HERE / "loss.cpp"], backend="CPU").load().cross_entropy
# [/loss]

HIDDEN, CLASSES, BATCH, RATE, STEPS = 32, 10, 128, 0.5, 150


def data():
    """Return images (1797, 64) in 0 to 1, one-hot labels (1797, 10), in float32."""
    digits = load_digits()
    return (digits.data / 16).astype(np.float32), np.eye(CLASSES, dtype=np.float32)[digits.target]


def start():
    """Return the first weights and biases: the same in every framework."""
    rng = np.random.default_rng(0)
    sizes = [(64, HIDDEN), (HIDDEN, CLASSES)]
    weights = [rng.normal(0, 1 / np.sqrt(a), (a, b)).astype(np.float32) for a, b in sizes]
    return [weights[0], np.zeros(HIDDEN, np.float32), weights[1], np.zeros(CLASSES, np.float32)]


def batches():
    """Yield the images and labels of each step."""
    images, labels = data()
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        chosen = rng.choice(len(images), BATCH, replace=False)
        yield images[chosen], labels[chosen]


# [network]
def logits(parameters, x):
    """Return the scores of each class; the tensors are of any framework."""
    w1, b1, w2, b2 = parameters
    return softsign(normalise(x @ w1 + b1)) @ w2 + b2


def loss(parameters, x, labels):
    """Return the mean cross entropy."""
    return cross_entropy(logits(parameters, x), labels)


# [/network]
