"""Strides, paddings and dilations of one, two and three dimensions."""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """A number for the height and one for the width."""

    h: int = 1
    w: int = 1


class Triple(NamedTuple):
    """A number for each of the depth, the height and the width."""

    d: int = 1
    h: int = 1
    w: int = 1


ONE_PAIR, NO_PAIR = Pair(1, 1), Pair(0, 0)
ONE_TRIPLE, NO_TRIPLE = Triple(1, 1, 1), Triple(0, 0, 0)


def extent(size, kernel, stride, padding, dilation):
    """Return at how many places a window fits, along one dimension."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def transposed_extent(size, kernel, stride, padding, dilation, extra):
    """Return the size that a transposed window makes of one."""
    return (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra + 1
