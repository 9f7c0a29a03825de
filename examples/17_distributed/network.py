"""A network around a C kernel, a loop kernel and a Python function; and how it is trained."""
# ruff: noqa: F821 - output_tensor and rsqrt are words of the loop kernels' language

import pathlib

import numpy as np
import torch

import polyop

SOURCE = pathlib.Path(__file__).with_name("gated.c")
WIDTH, HIDDEN, BATCH, STEPS = 16, 32, 24, 5

# [operators]
gated_gradient = polyop.operator(
    "recipes::gated_gradient(Tensor gate, Tensor value, Tensor dy) -> (Tensor, Tensor)",
    f"{SOURCE}:gated_gradient",
    dtypes=["float32"],
    dims="..., ..., ... -> ..., ...",
    parallel="...",
)
gated = polyop.operator(
    "recipes::gated(Tensor gate, Tensor value) -> Tensor",
    f"{SOURCE}:gated",
    dtypes=["float32"],
    dims="..., ... -> ...",
    parallel="...",
    gradient=lambda gate, value, out, dout: gated_gradient(gate, value, dout),
)


@polyop.kernel  # its gradient is derived
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


unit_rows = polyop.operator(
    "recipes::unit_rows(Tensor w) -> Tensor",
    lambda w: w / np.sqrt((w * w).sum(-1, keepdims=True)),
    dims="... n -> ... n",
    gradient=lambda w, out, dout: (
        (dout - out * (out * dout).sum(-1, keepdims=True)) / (w * w).sum(-1, keepdims=True) ** 0.5,
    ),
)
# [/operators]


class Norm(torch.nn.Module):
    """The loop kernel and its scale."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return rms_norm(x, self.scale)


class GatedLayer(torch.nn.Module):
    """The C kernel between linear layers."""

    def __init__(self):
        super().__init__()
        self.gate = torch.nn.Linear(WIDTH, HIDDEN)
        self.value = torch.nn.Linear(WIDTH, HIDDEN)
        self.down = torch.nn.Linear(HIDDEN, WIDTH)

    def forward(self, x):
        return self.down(gated(self.gate(x), self.value(x)))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Norm()
        self.gated = GatedLayer()

    def forward(self, x):
        return x + self.gated(self.norm(x))


class Head(torch.nn.Module):
    """A layer whose weight a Python function reads."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, WIDTH))

    def forward(self, x):
        return x @ unit_rows(self.weight).T


def network():
    """Return the network; its parameters are the same in every process."""
    torch.manual_seed(0)
    return torch.nn.Sequential(Block(), Block(), Head())


def batch():
    """Return the inputs and targets of the whole batch."""
    rng = np.random.default_rng(0)
    return [torch.tensor(rng.standard_normal((BATCH, n)), dtype=torch.float32) for n in (WIDTH, 4)]


def train(model, x, y, mean=lambda loss: loss):
    """Return the loss of each step; ``mean`` is over the processes."""
    optimiser, losses = torch.optim.SGD(model.parameters(), 0.1), []
    for _ in range(STEPS):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(mean(loss.detach()).item())
    return losses
