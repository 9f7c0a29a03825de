"""Whether elements of one tensor share memory, as in an expanded tensor.

Such a tensor must not be written through a copy. The kernel would write several values for one address,
and only the value that is copied back last would remain.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ..core.errors import ArgumentValueError
from .operator import Operator


def is_overlapping(shape: Sequence[int], strides: Sequence[int], itemsize: int = 1) -> bool:
    """Return whether two elements share memory; ``strides`` and ``itemsize`` are in the same unit.

    >>> is_overlapping((3, 4), (0, 1)), is_overlapping((3, 4), (1, 3)), is_overlapping((2, 3), (3, 2))
    (True, False, False)
    """
    if 0 in shape:
        return False
    axes = sorted((abs(step), size) for step, size in zip(strides, shape, strict=True) if size > 1)
    ends = itertools.accumulate(((size - 1) * step for step, size in axes), initial=itemsize)
    if all(step >= end for (step, _), end in zip(axes, ends, strict=False)):
        return False  # the step of each axis is beyond the extent of all axes with shorter steps
    if any(step < itemsize for step, _ in axes):
        return True
    offsets = np.zeros((), np.int64)  # of all elements: exact, for the rare layouts that are left
    for step, size in axes:
        offsets = np.add.outer(offsets, np.arange(size, dtype=np.int64) * step)
    gaps = np.diff(np.sort(offsets, axis=None))
    return bool((gaps < itemsize).any())


def check_overlap(
    operator: Operator, name: str, shape: Sequence[int], strides: Sequence[int], itemsize: int = 1
) -> None:
    """Raise ``ArgumentValueError`` with the argument's name for a written tensor that overlaps itself."""
    if is_overlapping(shape, strides, itemsize):
        raise ArgumentValueError(
            f"{operator.name}: argument {name}",
            "is written in place, so no two of its elements may share memory",
            f"shape {tuple(shape)} with strides {tuple(strides)}",
            where=operator.origin,
            hint="pass a copy, which has memory for each element",
        )
