"""The same values in other layouts, as slicing, transposing and broadcasting make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def every_second(array: Any) -> Any:
    """Return the values with gaps between them."""
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def reversed_axis(array: Any) -> Any:
    """Return the values with a negative last stride."""
    return array[..., ::-1].copy()[..., ::-1]


def transposed(array: Any) -> Any:
    """Return the values in column-major order."""
    return array.T.copy().T


def byte_swapped(array: Any) -> Any:
    """Return the values in the other byte order."""
    if array.dtype.isbuiltin != 1 or array.dtype.itemsize == 1:
        return array
    return array.astype(array.dtype.newbyteorder("S"))


def repeated(array: Any) -> Any:
    """Return dense data in which each row is the first one."""
    return np.ascontiguousarray(np.broadcast_to(array[:1], array.shape))


def expanded(array: Any) -> Any:
    """Return the same values as ``repeated``, with stride 0."""
    return np.broadcast_to(array[:1], array.shape)


Layout = Callable[[Any], Any]

# name; how the sample's values are changed first, or None; the layout of those values
NUMPY_LAYOUTS: tuple[tuple[str, Layout | None, Layout], ...] = (
    ("every second element", None, every_second),
    ("a negative stride", None, reversed_axis),
    ("transposed", None, transposed),
    ("swapped bytes", None, byte_swapped),
    ("stride 0", repeated, expanded),
)


def torch_every_second(tensor: Any) -> Any:
    """Return the values with gaps between them."""
    wide = tensor.new_zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]))
    wide[..., ::2] = tensor
    return wide[..., ::2]


def torch_transposed(tensor: Any) -> Any:
    """Return the values in column-major order."""
    axes = tuple(reversed(range(tensor.ndim)))
    return tensor.permute(axes).contiguous().permute(axes)


def torch_expanded(tensor: Any) -> Any:
    """Return the first row's values with stride 0."""
    return tensor[:1].expand(tensor.shape)


TORCH_LAYOUTS: tuple[tuple[str, Layout | None, Layout], ...] = (
    ("every second element", None, torch_every_second),
    ("transposed", None, torch_transposed),
    ("stride 0", repeated, torch_expanded),
)
