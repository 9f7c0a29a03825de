"""Gather, scatter, sort, pad and pool in any array namespace, as ``special`` does for other functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .special import axis_of


def _grid(index: Any, dim: int) -> tuple[Any, ...]:
    """Return the coordinates of each element of ``index``, with ``index`` as those along ``dim``."""
    grid: list[Any] = list(np.indices(index.shape, sparse=True))
    if grid:
        grid[axis_of(dim, index.ndim)] = index
    return tuple(grid)


def gather(xp: Any, x: Any, dim: int, index: Any) -> Any:
    """Return ``x[..., index[i, j, k], ...]`` with the index's shape."""
    return xp.gather(x, dim, index) if hasattr(xp, "gather") else x[_grid(index, dim)]


def scatter(xp: Any, x: Any, dim: int, index: Any, source: Any, reduce: int) -> Any:
    """Return a copy of ``x`` with ``source`` written (0), added (1) or multiplied (2) at ``index``."""
    if hasattr(xp, "scatter"):
        source = xp.full_like(index, source, dtype=x.dtype) if isinstance(source, (int, float)) else source
        if reduce == 0:
            return xp.scatter(x, dim, index, source)
        return xp.scatter_reduce(x, dim, index, source, "sum" if reduce == 1 else "prod")
    result = np.array(x)
    coordinates: Any = _grid(index, dim)
    if isinstance(source, np.ndarray):
        source = source[tuple(slice(size) for size in index.shape)]
    if reduce == 0:
        result[coordinates] = source
    else:
        (np.add if reduce == 1 else np.multiply).at(result, coordinates, source)
    return result


def index_put(xp: Any, x: Any, indices: Sequence[Any], values: Any, accumulate: bool) -> Any:
    """Return a copy of ``x`` with values assigned to, or added at, ``x[indices]``."""
    if hasattr(xp, "index_put"):
        return xp.index_put(x, tuple(indices), values, accumulate)
    result = np.array(x)
    key: Any = tuple(slice(None) if index is None else index for index in indices)
    if accumulate:
        np.add.at(result, key, values)
    else:
        result[key] = values
    return result


def index_add(xp: Any, x: Any, dim: int, index: Any, source: Any) -> Any:
    """Return a copy of ``x`` with each slice of ``source`` added at its index."""
    if hasattr(xp, "index_add"):
        return xp.index_add(x, dim, index, source)
    result = np.array(x)
    key: Any = (slice(None),) * axis_of(dim, result.ndim) + (index,)
    np.add.at(result, key, source)
    return result


def sort(xp: Any, x: Any, dim: int, descending: bool, count: int | None = None) -> tuple[Any, Any]:
    """Return the first ``count`` sorted values along one axis, and their indices."""
    if not x.ndim:
        return x, xp.zeros_like(x, dtype=xp.int64)
    order = xp.argsort(x, axis=dim, descending=descending, stable=True)
    order = order[(slice(None),) * axis_of(dim, x.ndim) + (slice(count),)]
    return gather(xp, x, dim, order), order


def one_hot(xp: Any, x: Any, count: int, on: Any, off: Any, axis: int) -> Any:
    """Return ``on`` at each index along a new axis, ``off`` elsewhere."""
    spread = xp.expand_dims(x, axis=axis)
    classes = xp.arange(count, dtype=x.dtype)
    shape = [1] * spread.ndim
    shape[axis_of(axis, spread.ndim)] = count
    return xp.where(spread == xp.reshape(classes, tuple(shape)), on, off)


def pad(xp: Any, x: Any, padding: Sequence[int], value: Any) -> Any:
    """Return the array padded by (before, after) of each dimension, from the last dimension on.

    A negative number removes elements.
    """
    for i in range(len(padding) // 2):
        axis, before, after = x.ndim - 1 - i, padding[2 * i], padding[2 * i + 1]
        size = x.shape[axis]
        x = x[(slice(None),) * axis + (slice(max(-before, 0), size - max(-after, 0)),)]
        parts = [_border(xp, x, axis, before, value), x, _border(xp, x, axis, after, value)]
        present = [part for part in parts if part is not None]
        x = xp.concat(present, axis=axis) if len(present) > 1 else x
    return x


def _border(xp: Any, x: Any, axis: int, count: int, value: Any) -> Any:
    if count <= 0:
        return None
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return xp.full(shape, value, dtype=x.dtype, device=getattr(x, "device", None))


def split(x: Any, sizes: Sequence[int], dim: int) -> list[Any]:
    """Return consecutive pieces of the given sizes along one axis."""
    before = (slice(None),) * axis_of(dim, x.ndim)
    ends = itertools.accumulate(sizes)
    keys = [(*before, slice(end - size, end)) for end, size in zip(ends, sizes, strict=True)]
    return [x[key] for key in keys]


def pieces(size: int, section: int) -> list[int]:
    """Return the sizes of consecutive pieces of ``section`` elements; the last may be smaller.

    >>> pieces(7, 3)
    [3, 3, 1]
    """
    return [min(section, size - start) for start in range(0, size, section)] or [0]


def _pair(values: Sequence[int]) -> tuple[int, int]:
    return (values[0], values[0]) if len(values) == 1 else (values[0], values[1])


def _positions(size: int, kernel: int, stride: int, padding: int, ceil: bool) -> int:
    span = size + 2 * padding - kernel
    count = (math.ceil(span / stride) if ceil else span // stride) + 1
    # with ceil, a window that would start in the padding after the data does not count
    return count - 1 if ceil and (count - 1) * stride >= size + padding else count


def average_pool(
    xp: Any,
    x: Any,
    kernel: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    ceil: bool,
    include: bool,
    divisor: int,
) -> Any:
    """Return the mean of each window of the last two axes.

    With ``include`` the padding counts as elements; a nonzero ``divisor`` replaces the count.
    """
    sizes = (x.shape[-2], x.shape[-1])
    window, step, edge = _pair(kernel), _pair(strides or kernel), _pair(paddings or (0,))
    grid = [_positions(n, k, s, p, ceil) for n, k, s, p in zip(sizes, window, step, edge, strict=True)]
    reach = [(g - 1) * s + k for g, s, k in zip(grid, step, window, strict=True)]

    def total(array: Any, fill: float) -> Any:
        padded = pad(xp, array, (edge[1], edge[1], edge[0], edge[0]), fill)
        # elements that ceil adds after the padding never count
        rest = [max(r - n - 2 * p, 0) for r, n, p in zip(reach, sizes, edge, strict=True)]
        padded = pad(xp, padded, (0, rest[1], 0, rest[0]), 0)
        sums = 0
        for row, column in itertools.product(range(window[0]), range(window[1])):
            rows = slice(row, row + (grid[0] - 1) * step[0] + 1, step[0])
            columns = slice(column, column + (grid[1] - 1) * step[1] + 1, step[1])
            sums = sums + padded[..., rows, columns]
        return sums

    return total(x, 0) / (divisor or total(xp.ones_like(x), 1 if include else 0))
