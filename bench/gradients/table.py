"""A row of the tables of gradients, and data for output gradients and indices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from loops.data import spread


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gradient:
    """A loop kernel with one output, and the same computation in PyTorch and in JAX.

    ``make(dtype, **sizes)`` returns the inputs. ``torch`` and ``jax`` take tensors of their framework, which
    derives the gradient itself. ``inputs`` are the positions of those to differentiate; empty stands for
    all of floating dtype. ``written`` is the function of written.c that computes the gradient, if there is
    one. ``both_ways``: the bar of a call with its gradient, beside PyTorch.
    """

    name: str
    kernel: Callable[..., Any]
    make: Callable[..., tuple[Any, ...]]
    torch: Callable[..., Any]
    jax: Callable[..., Any]
    small: Mapping[str, int]
    bench: Mapping[str, int]
    dtype: str = "float32"
    inputs: tuple[int, ...] = ()
    written: str = ""
    both_ways: float | None = None

    def arguments(self, sizes: Mapping[str, int], dtype: str | None = None) -> tuple[Any, ...]:
        """Return new arrays with the same values each time."""
        return self.make(dtype or self.dtype, **sizes)

    def smooth(self, arguments: tuple[Any, ...]) -> tuple[int, ...]:
        """Return the positions of the inputs to differentiate."""
        return self.inputs or tuple(i for i, a in enumerate(arguments) if a.dtype.kind == "f")


def incoming(shape: Any, dtype: Any) -> Any:
    """Return the gradient of an output of this shape."""
    return spread(shape, dtype, -1.0, 1.0, which=7)


def scattered(count: int, extent: int) -> Any:
    """Return indices without order, some of them repeated."""
    return (np.arange(count) * 2654435761 // 128) % extent
