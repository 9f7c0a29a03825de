"""Tensors and calls for the table of corresponding functions."""

import torch

INF = float("inf")
NAN = float("nan")


def f(*shape, low=-2.0, high=2.0):
    """Return numbers between two others."""
    return torch.rand(shape, generator=SEED) * (high - low) + low


def i(*shape, low=0, high=5, dtype=torch.int64):
    return torch.randint(low, high, shape, generator=SEED).to(dtype)


def b(*shape):
    return torch.rand(shape, generator=SEED) > 0.5


def c(*shape):
    return torch.complex(f(*shape), f(*shape))


def distinct(*shape):
    """Return numbers of which no two are equal, in any order."""
    n = int(torch.tensor(shape).prod())
    return (torch.randperm(n, generator=SEED).reshape(shape) - n / 2.0) / 3


def call(*args, **keywords):
    return args, keywords


SEED = torch.Generator().manual_seed(0)
X = f(2, 3, 4)
POSITIVE = f(2, 3, low=0.2, high=3.0)
UNIT = f(2, 3, low=-0.9, high=0.9)
SPECIAL = torch.tensor([1.0, -2.5, INF, -INF, NAN, 0.0])
IMAGE = f(2, 4, 6, 6)
PICTURE = f(1, 2, 4, 6)
