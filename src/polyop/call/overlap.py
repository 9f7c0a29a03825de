"""Whether elements of a tensor share memory with one another, as those of an expanded one do.

Such a tensor must not be written through a copy: of several values for one place the last that is copied
back would stay, whatever the kernel did.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ..core.errors import ArgumentValueError
from .operator import Operator


def is_overlapping(shape: Sequence[int], strides: Sequence[int], itemsize: int = 1) -> bool:
    """Return whether two elements share memory; strides are counted in what ``itemsize`` is counted in.

    >>> is_overlapping((3, 4), (0, 1)), is_overlapping((3, 4), (1, 3)), is_overlapping((2, 3), (3, 2))
    (True, False, False)
    """
    if 0 in shape:
        return False
    axes = sorted((abs(step), size) for step, size in zip(strides, shape, strict=True) if size > 1)
    ends = itertools.accumulate(((size - 1) * step for step, size in axes), initial=itemsize)
    if all(step >= end for (step, _), end in zip(axes, ends, strict=False)):
        return False  # each axis steps over all that the shorter steps reach
    if any(step < itemsize for step, _ in axes):
        return True
    places = np.zeros((), np.int64)
    for step, size in axes:
        places = np.add.outer(places, np.arange(size, dtype=np.int64) * step)
    gaps = np.diff(np.sort(places, axis=None))
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
            hint="pass a copy, whose elements are apart",
        )
