"""Data for the inputs of the problems: the same each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from loops.data import spread

Shape = tuple[int, ...]
Values = Callable[[Shape, str, int], Any]
"""Takes the shape, the dtype and the position of an input; returns an array."""


def between(low: float, high: float) -> Values:
    """Return values spread evenly between two numbers."""
    return lambda shape, dtype, position: spread(shape, dtype, low, high, position)


around_zero = between(-1, 1)
CORNERS = (-3, -1, 0, 1, 3)
"""Where the derivatives of activations jump; what they are there is a convention."""


def off_corners(shape: Shape, dtype: str, position: int) -> Any:
    """Return values from -4 to 4 but for the corners."""
    values = spread(shape, dtype, -4, 4, position)
    values[np.isin(values, CORNERS)] += 0.5
    return values


def symmetric(shape: Shape, dtype: str, position: int) -> Any:
    half = around_zero(shape, dtype, position)
    return half + half.T


def upper(shape: Shape, dtype: str, position: int) -> Any:
    return np.triu(around_zero(shape, dtype, position))


def lower(shape: Shape, dtype: str, position: int) -> Any:
    return np.tril(around_zero(shape, dtype, position))


def flags(shape: Shape, dtype: str, position: int) -> Any:
    return around_zero(shape, dtype, position) > 0


def signs(shape: Shape, dtype: str, position: int) -> Any:
    return np.sign(around_zero(shape, dtype, position))


def labels(shape: Shape, _dtype: str, position: int) -> Any:
    """Return classes of 37, the fewest that the tests have."""
    return (37 * spread(shape, "float64", 0, 1, position)).astype("int64")


def probabilities(shape: Shape, dtype: str, position: int) -> Any:
    """Return rows of positive numbers with the sum 1."""
    weights = spread(shape, dtype, 0.1, 1, position)
    return weights / weights.sum(axis=-1, keepdims=True)
