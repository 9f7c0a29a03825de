"""Operators that move, repeat, cast or create data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import indexed
from ..row import Row


def _expand(xp: Any, x: Any, size: Sequence[int]) -> Any:
    padded = (1,) * (len(size) - x.ndim) + tuple(x.shape)
    return xp.broadcast_to(x, tuple(o if s == -1 else s for s, o in zip(size, padded, strict=True)))


def _repeat(xp: Any, x: Any, repeats: Any, dim: int | None) -> Any:
    if dim is None:
        x, dim = xp.reshape(x, (-1,)), 0
    return xp.repeat(x, repeats, axis=dim)


def _count(start: float, end: float, step: float) -> int:
    return max(math.ceil((end - start) / step), 0)


def _steps(xp: Any, start: Any, step: Any, count: int) -> Any:
    """Return ``start + i * step``: rounding errors do not add up, and the count is exact."""
    return start + xp.arange(count) * step


def _linspace(xp: Any, start: Any, end: Any, steps: int) -> Any:
    return xp.linspace(float(start), float(end), steps)


def _diagonal(xp: Any, x: Any, value: Any, wrap: bool) -> Any:
    """Return a copy with the main diagonal set; with ``wrap`` it starts again below each square block."""
    rows, columns = x.shape[-2], x.shape[-1]
    row, column = xp.reshape(xp.arange(rows), (-1, 1)), xp.reshape(xp.arange(columns), (1, -1))
    return xp.where((row % (columns + 1) if wrap else row) == column, value, x)


def _slice(_xp: Any, x: Any, dim: int, start: int, end: int, step: int) -> Any:
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


ROWS = (
    Row("aclnnCast(Tensor self, ScalarType dtype, Tensor(a!) out) -> ()",
        lambda xp, x, dtype: xp.astype(x, dtype)),
    Row("aclnnInplaceCopy(Tensor(a!) selfRef, Tensor src) -> ()",
        lambda xp, x, src: xp.broadcast_to(src, x.shape)),
    Row("aclnnExpand(Tensor self, int[] size, Tensor(a!) out) -> ()", _expand),
    Row("aclnnPermute(Tensor self, int[] dims, Tensor(a!) out) -> ()",
        lambda xp, x, dims: xp.permute_dims(x, tuple(d % x.ndim for d in dims))),
    Row("aclnnCat(Tensor[] tensors, int dim, Tensor(a!) out) -> ()",
        lambda xp, tensors, dim: xp.concat(list(tensors), axis=dim)),
    Row("aclnnStack(Tensor[] tensors, int dim, Tensor(a!) out) -> ()",
        lambda xp, tensors, dim: xp.stack(list(tensors), axis=dim)),
    Row("aclnnSplitTensor(Tensor self, int splitSections, int dim, Tensor(a!)[] out) -> ()",
        lambda xp, x, section, dim: indexed.split(x, indexed.pieces(x.shape[dim], section), dim)),
    Row("aclnnSplitWithSize(Tensor self, int[] splitSize, int dim, Tensor(a!)[] out) -> ()",
        lambda xp, x, sizes, dim: indexed.split(x, sizes, dim)),
    Row("aclnnSlice(Tensor self, int dim, int start, int end, int step, Tensor(a!) out) -> ()", _slice),
    Row("aclnnFlip(Tensor self, int[] dims, Tensor(a!) out) -> ()",
        lambda xp, x, dims: xp.flip(x, axis=tuple(dims)) if dims else x),
    Row("aclnnRoll(Tensor self, int[] shifts, int[] dims, Tensor(a!) out) -> ()",
        lambda xp, x, shifts, dims: xp.roll(x, shifts, axis=dims) if dims else xp.roll(x, shifts[0])),
    Row("aclnnRepeat(Tensor self, int[] repeats, Tensor(a!) out) -> ()",
        lambda xp, x, repeats: xp.tile(x, tuple(repeats))),
    Row("aclnnRepeatInterleave(Tensor self, Tensor repeats, int outputSize, Tensor(a!) out) -> ()",
        lambda xp, x, repeats, _: _repeat(xp, x, repeats, None)),
    Row("aclnnRepeatInterleaveWithDim(Tensor self, Tensor repeats, int dim, int outputSize, Tensor(a!) out)"
        " -> ()", lambda xp, x, repeats, dim, _: _repeat(xp, x, repeats, dim)),
    Row("aclnnRepeatInterleaveInt(Tensor self, int repeats, int outputSize, Tensor(a!) out) -> ()",
        lambda xp, x, repeats, _: _repeat(xp, x, repeats, None)),
    Row("aclnnRepeatInterleaveIntWithDim(Tensor self, int repeats, int dim, int outputSize, Tensor(a!) out)"
        " -> ()", lambda xp, x, repeats, dim, _: _repeat(xp, x, repeats, dim)),
    Row("aclnnConstantPadNd(Tensor self, int[] pad, Scalar value, Tensor(a!) out) -> ()", indexed.pad),
    Row("aclnnTril(Tensor self, int diagonal, Tensor(a!) out) -> ()",
        lambda xp, x, diagonal: xp.tril(x, k=diagonal), inplace=True),
    Row("aclnnTriu(Tensor self, int diagonal, Tensor(a!) out) -> ()",
        lambda xp, x, diagonal: xp.triu(x, k=diagonal), inplace=True),
    Row("aclnnInplaceZero(Tensor(a!) selfRef) -> ()", lambda xp, x: xp.zeros_like(x)),
    Row("aclnnInplaceOne(Tensor(a!) selfRef) -> ()", lambda xp, x: xp.ones_like(x)),
    Row("aclnnInplaceFillScalar(Tensor(a!) selfRef, Scalar value) -> ()",
        lambda xp, x, value: xp.full_like(x, value)),
    Row("aclnnInplaceFillTensor(Tensor(a!) selfRef, Tensor value) -> ()",
        lambda xp, x, value: xp.broadcast_to(xp.astype(value, x.dtype), x.shape)),
    Row("aclnnInplaceFillDiagonal(Tensor(a!) selfRef, Scalar fillValue, bool wrap) -> ()", _diagonal),
    Row("aclnnArange(Scalar start, Scalar end, Scalar step, Tensor(a!) out) -> ()",
        lambda xp, start, end, step: _steps(xp, start, step, _count(start, end, step))),
    # Range includes its end, Arange does not
    Row("aclnnRange(Scalar start, Scalar end, Scalar step, Tensor(a!) out) -> ()",
        lambda xp, start, end, step: _steps(xp, start, step, math.floor((end - start) / step) + 1)),
    Row("aclnnLinspace(Scalar start, Scalar end, int steps, Tensor(a!) out) -> ()", _linspace),
    Row("aclnnEye(int n, int m, Tensor(a!) out) -> ()", lambda xp, n, m: xp.eye(n, m)),
)  # fmt: skip
