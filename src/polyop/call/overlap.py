"""Find out whether elements of one tensor share memory, as in an expanded tensor, or those of two.

Such tensors must not be written through a copy. The kernel would write several values for one address,
and only the value that is copied back last would remain.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import ArgumentValueError
from .operator import Operator


class Layout(NamedTuple):
    """Where a tensor lies: the address of its first element; ``strides`` and ``itemsize`` are in bytes."""

    address: int
    shape: Sequence[int]
    strides: Sequence[int]
    itemsize: int

    def offsets(self, base: int) -> Any:
        """Return the distance of each element from an address."""
        found = np.asarray(self.address - base, np.int64)
        for step, size in zip(self.strides, self.shape, strict=True):
            found = np.add.outer(found, np.arange(size, dtype=np.int64) * step)
        return found.ravel()

    def ends(self) -> tuple[int, int]:
        """Return the first address and the one behind the last."""
        steps = [(size - 1) * step for step, size in zip(self.strides, self.shape, strict=True)]
        first = self.address + sum(step for step in steps if step < 0)
        return first, self.address + sum(step for step in steps if step > 0) + self.itemsize

    def row(self) -> tuple[int, Layout]:
        """Return the longest step, and the layout of the elements that lie between two of its multiples."""
        axes = [axis for axis in zip(self.strides, self.shape, strict=True) if axis[1] > 1]
        longest = max(axes, key=lambda axis: abs(axis[0]), default=(0, 1))
        others = [axis for axis in axes if axis is not longest]
        rest = Layout(self.address, [size for _, size in others], [step for step, _ in others], self.itemsize)
        return abs(longest[0]), rest


def _in_columns(one: Layout, other: Layout) -> bool:
    """Return whether two tensors are columns of one matrix, side by side: a proof without each element."""
    (step, mine), (other_step, theirs) = one.row(), other.row()
    if step == 0 or step != other_step:
        return False
    (start, end), (begin, stop) = mine.ends(), theirs.ends()
    gap = (begin - start) % step
    return end - start <= gap and gap + stop - begin <= step


def share_memory(one: Layout, other: Layout) -> bool:
    """Return whether two tensors, neither of which overlaps itself, share memory.

    >>> even, odd, first = Layout(0, (4,), (8,), 4), Layout(4, (4,), (8,), 4), Layout(0, (4,), (4,), 4)
    >>> share_memory(even, odd), share_memory(even, first)
    (False, True)
    """
    if 0 in one.shape or 0 in other.shape:
        return False
    (start, end), (begin, stop) = one.ends(), other.ends()
    if end <= begin or stop <= start:
        return False
    if _in_columns(one, other):
        return False
    if one.itemsize != other.itemsize:
        return True
    base = min(start, begin)
    gaps = np.diff(np.sort(np.concatenate([one.offsets(base), other.offsets(base)])))
    return bool((gaps < one.itemsize).any())


def check_apart(operator: Operator, written: Sequence[tuple[str, Layout]]) -> None:
    """Raise ``ArgumentValueError`` for two arguments that are written and share memory."""
    for (name, one), (second, other) in itertools.combinations(written, 2):
        if share_memory(one, other):
            raise ArgumentValueError(
                f"{operator.name}: argument {name}",
                f"is written in place: it must not share memory with {second}",
                where=operator.origin,
                hint="pass a copy of one of them",
            )


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
