"""The network that moves: a language model of state space layers, as one writes it in PyTorch.

The layer is that of Mamba (Gu and Dao, 2023). PyTorch lacks its scan, so it is a loop over the positions.
"""

import math

import torch
from torch import nn
from torch.nn import functional

LETTERS, WIDTH, STATE, RANK, TAPS = 11, 8, 4, 2, 4


def causal_convolution(x, weight, bias):
    """Filter each feature by its past; x is (..., time, features), the weight (features, 1, taps)."""
    padded = functional.pad(x.transpose(-1, -2), (weight.shape[-1] - 1, 0))
    return functional.conv1d(padded, weight, bias, groups=len(weight)).transpose(-1, -2)


def selective_scan(x, step, a, b, c, skip):
    """Return c h + skip x, where h = exp(step a) h + step b x from position to position."""
    h, rows = x.new_zeros(*x.shape[:-2], *a.shape), []
    for t in range(x.shape[-2]):
        now = step[..., t, :, None]
        h = (now * a).exp() * h + now * b[..., t, None, :] * x[..., t, :, None]
        rows.append((h * c[..., t, None, :]).sum(-1))
    return torch.stack(rows, -2) + skip * x


class Mixer(nn.Module):
    """One layer, with parameters of its own beside its linear layers."""

    convolve, scan = staticmethod(causal_convolution), staticmethod(selective_scan)

    def __init__(self):
        super().__init__()
        inner = 2 * WIDTH
        self.norm = nn.LayerNorm(WIDTH)
        self.in_proj = nn.Linear(WIDTH, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, TAPS, groups=inner)
        self.x_proj = nn.Linear(inner, RANK + 2 * STATE, bias=False)
        self.dt_proj = nn.Linear(RANK, inner)
        self.log_a = nn.Parameter(torch.arange(1.0, STATE + 1).log().repeat(inner, 1))
        self.skip = nn.Parameter(torch.ones(inner))
        self.out_proj = nn.Linear(inner, WIDTH, bias=False)

    def forward(self, x):
        """Return x plus what the layer makes of it."""
        hidden, gate = self.in_proj(self.norm(x)).chunk(2, -1)
        hidden = functional.silu(self.convolve(hidden, self.conv.weight, self.conv.bias))
        step, b, c = self.x_proj(hidden).split([RANK, STATE, STATE], -1)
        step = functional.softplus(self.dt_proj(step))
        y = self.scan(hidden, step, -self.log_a.exp(), b, c, self.skip)
        return x + self.out_proj(y * functional.silu(gate))


class Network(nn.Module):
    """The scores of the next letter at each position of (..., time) letters."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(LETTERS, WIDTH)
        self.layers = nn.ModuleList([Mixer(), Mixer()])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, LETTERS)

    def forward(self, letters):
        """Return (..., time, LETTERS)."""
        x = self.embedding(letters)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def data():
    """Return eight sentences, whose letters follow a rule, and the next letters."""
    start = torch.arange(8)[:, None]
    letters = (start + torch.arange(13) ** 2) % LETTERS
    return (letters[:, :-1],), letters[:, 1:]


def loss(scores, following):
    """Return the mean cross entropy of the next letters."""
    return functional.cross_entropy(scores.reshape(-1, LETTERS), following.reshape(-1))


RATE = 0.1 / math.sqrt(WIDTH)
