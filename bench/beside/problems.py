"""The six problems: inputs, and what is computed, as plain NumPy in float64.

Every framework's file has a function of each name. The values are compared with these, and the gradients with
central differences of these, so no framework is the judge of another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

EPSILON = 1e-5
SOFTENING = 0.01
TOLERANCE = 1e-3
STEP = 1e-6
"""The step of central differences; their error is about 1e-9 of the gradient in float64."""

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Problem:
    """A function of arrays, for instance ``rms_norm(x, gain)``, and the inputs that it is tried with.

    ``shapes``: the shapes of the inputs, for sizes by name; ``ranges``: the numbers that they hold. ``small``
    is for all elements of the gradient, ``timed`` for times and one directional derivative.
    """

    name: str
    title: str
    compute: Callable[..., np.ndarray]
    shapes: Callable[..., Sequence[tuple[int, ...]]]
    ranges: Sequence[tuple[float, float]]
    small: dict[str, int] = field(default_factory=dict)
    timed: dict[str, int] = field(default_factory=dict)

    def inputs(self, size: str) -> Arrays:
        """Return the inputs in float32, the same in every process."""
        random = np.random.default_rng(7)
        shapes = self.shapes(**getattr(self, size))
        return tuple(
            random.uniform(low, high, shape).astype(np.float32)
            for shape, (low, high) in zip(shapes, self.ranges, strict=True)
        )

    def value(self, inputs: Sequence[Any]) -> np.ndarray:
        """Return the result in float64."""
        return self.compute(*(np.asarray(x, np.float64) for x in inputs))

    def cotangent(self, size: str) -> np.ndarray:
        """Return weights of the result's elements: the gradient is that of the weighted sum."""
        shape = self.value(self.inputs(size)).shape
        return np.random.default_rng(8).uniform(0.5, 1.5, shape).astype(np.float32)

    def gradients(self, size: str) -> list[np.ndarray]:
        """Return the gradient of every input, one element after the other."""
        inputs = [x.astype(np.float64) for x in self.inputs(size)]
        weight = self.cotangent(size).astype(np.float64)
        found = []
        for x in inputs:
            gradient = np.zeros_like(x)
            for index in np.ndindex(x.shape):
                before = x[index]
                x[index] = before + STEP
                above = self.value(inputs)
                x[index] = before - STEP
                gradient[index] = ((above - self.value(inputs)) * weight).sum() / (2 * STEP)
                x[index] = before
            found.append(gradient)
        return found

    def along(self, size: str) -> tuple[list[np.ndarray], float]:
        """Return a direction for each input, and the derivative of the weighted sum in that direction."""
        inputs = [x.astype(np.float64) for x in self.inputs(size)]
        weight = self.cotangent(size).astype(np.float64)
        random = np.random.default_rng(9)
        directions = [random.uniform(0.5, 1.5, x.shape) for x in inputs]
        above, below = (
            self.value([x + sign * STEP * d for x, d in zip(inputs, directions, strict=True)])
            for sign in (1, -1)
        )
        return directions, float(((above - below) * weight).sum() / (2 * STEP))


def rms_norm(x: np.ndarray, gain: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPSILON) * gain


def scan(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    y = x.copy()
    for t in range(1, len(y)):
        y[t] = np.tanh(a[t] * y[t - 1] + y[t])
    return y


def max_pool(x: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3))
    return windows[::2, ::2].max(axis=(2, 3))


def n_body(p: np.ndarray, m: np.ndarray) -> np.ndarray:
    d = p[None, :] - p[:, None]
    return (m[:, None] * d / ((d * d).sum(axis=2, keepdims=True) + SOFTENING) ** 1.5).sum(axis=1)


def overwritten(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    buffer = x * w
    y = buffer * buffer
    buffer[:] = np.exp(-buffer)
    return y + buffer * x


def newton(x: np.ndarray) -> np.ndarray:
    r = np.ones_like(x)
    while (wrong := np.abs(r * r - x) > TOLERANCE * x).any():
        r = np.where(wrong, 0.5 * (r + x / r), r)
    return r


PROBLEMS = {
    one.name: one
    for one in (
        Problem(
            "rms_norm",
            "RMS norm: a sum of a row, whose root scales the row",
            rms_norm,
            lambda m, n: [(m, n), (n,)],
            [(-1.0, 1.0), (0.5, 1.5)],
            {"m": 4, "n": 64},
            {"m": 1024, "n": 512},
        ),
        Problem(
            "scan",
            "scan over time, written in place",
            scan,
            lambda t, n: [(t, n), (t, n)],
            [(-1.0, 1.0), (-1.0, 1.0)],
            {"t": 40, "n": 4},
            {"t": 256, "n": 1024},
        ),
        Problem(
            "max_pool",
            "max pool, windows of 3 x 3, stride 2",
            max_pool,
            lambda n: [(n, n)],
            [(-1.0, 1.0)],
            {"n": 15},
            {"n": 1023},
        ),
        Problem(
            "n_body",
            "n-body forces",
            n_body,
            lambda n: [(n, 3), (n,)],
            [(-1.0, 1.0), (0.5, 1.5)],
            {"n": 48},
            {"n": 512},
        ),
        Problem(
            "overwritten",
            "a buffer whose element is read, then overwritten",
            overwritten,
            lambda n: [(n,), (n,)],
            [(-1.0, 1.0), (0.5, 1.5)],
            {"n": 64},
            {"n": 500_000},
        ),
        Problem(
            "newton",
            "Newton's square root: `while` until it is near",
            newton,
            lambda n: [(n,)],
            [(0.25, 100.0)],
            {"n": 64},
            {"n": 100_000},
        ),
    )
}
