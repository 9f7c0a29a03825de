"""Data for the inputs of the problems: the same each time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from loops.data import spread

Values = Callable[[tuple[int, ...], str, int, Mapping[str, int]], Any]
"""Takes the shape, the dtype, the position of the input and the sizes by name; returns an array."""


def between(low: float, high: float) -> Values:
    """Return values spread evenly between two numbers."""
    return lambda shape, dtype, position, sizes: spread(shape, dtype, low, high, position)


around_zero = between(-1, 1)


def symmetric(shape: tuple[int, ...], dtype: str, position: int, sizes: Mapping[str, int]) -> Any:
    half = around_zero(shape, dtype, position, sizes)
    return half + half.T


def upper(shape: tuple[int, ...], dtype: str, position: int, sizes: Mapping[str, int]) -> Any:
    return np.triu(around_zero(shape, dtype, position, sizes))


def lower(shape: tuple[int, ...], dtype: str, position: int, sizes: Mapping[str, int]) -> Any:
    return np.tril(around_zero(shape, dtype, position, sizes))


def flags(shape: tuple[int, ...], dtype: str, position: int, sizes: Mapping[str, int]) -> Any:
    return around_zero(shape, dtype, position, sizes) > 0


def signs(shape: tuple[int, ...], dtype: str, position: int, sizes: Mapping[str, int]) -> Any:
    return np.sign(around_zero(shape, dtype, position, sizes))


def labels(shape: tuple[int, ...], dtype: str, position: int, sizes: Mapping[str, int]) -> Any:
    """Return classes, of which there are as many as the size ``c`` says."""
    return (spread(shape, "float64", 0, 1, position) * sizes["c"]).astype("int64")


def probabilities(shape: tuple[int, ...], dtype: str, position: int, sizes: Mapping[str, int]) -> Any:
    """Return rows of positive numbers with the sum 1."""
    weights = spread(shape, dtype, 0.1, 1, position)
    return weights / weights.sum(axis=-1, keepdims=True)
