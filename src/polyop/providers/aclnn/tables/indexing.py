"""Reads and writes at indices, and sorting."""

from __future__ import annotations

from typing import Any

from .. import indexed
from ..row import Row


def _take(xp: Any, x: Any, dim: int, index: Any) -> Any:
    """Return the slices of ``x`` axis an index of any shape; its dimensions replace the axis."""
    flat = xp.take(x, xp.reshape(index, (-1,)), axis=dim)
    axis = dim % x.ndim
    return xp.reshape(flat, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))


def _index(_xp: Any, x: Any, indices: Any) -> Any:
    return x[tuple(slice(None) if index is None else index for index in indices)]


def _gather_nd(_xp: Any, x: Any, indices: Any, _negative: bool) -> Any:
    return x[tuple(indices[..., i] for i in range(indices.shape[-1]))]


ROWS = (
    Row("aclnnGather(Tensor self, int dim, Tensor index, Tensor(a!) out) -> ()", indexed.gather),
    Row("aclnnGatherV2(Tensor self, int dim, Tensor index, Tensor(a!) out) -> ()", _take),
    Row("aclnnGatherNd(Tensor self, Tensor indices, bool negativeIndexSupport, Tensor(a!) out) -> ()",
        _gather_nd),
    Row("aclnnIndexSelect(Tensor self, int dim, Tensor index, Tensor(a!) out) -> ()", _take),
    Row("aclnnTake(Tensor self, Tensor index, Tensor(a!) out) -> ()",
        lambda xp, x, index: _take(xp, xp.reshape(x, (-1,)), 0, index)),
    Row("aclnnEmbedding(Tensor weight, Tensor indices, Tensor(a!) out) -> ()",
        lambda xp, weight, indices: _take(xp, weight, 0, indices)),
    Row("aclnnIndex(Tensor self, Tensor?[] indices, Tensor(a!) out) -> ()", _index),
    Row("aclnnIndexPutImpl(Tensor(a!) selfRef, Tensor?[] indices, Tensor values, bool accumulate,"
        " bool unsafe) -> ()",
        lambda xp, x, indices, values, accumulate, _: indexed.index_put(xp, x, indices, values, accumulate)),
    Row("aclnnIndexAdd(Tensor self, int dim, Tensor index, Tensor source, Scalar alpha, Tensor(a!) out)"
        " -> ()",
        lambda xp, x, dim, index, source, alpha: indexed.index_add(xp, x, dim, index, source * alpha)),
    # reduce: 0 replaces, 1 adds, 2 multiplies
    Row("aclnnScatter(Tensor self, int dim, Tensor index, Tensor src, int reduce, Tensor(a!) out) -> ()",
        indexed.scatter, inplace=True),
    Row("aclnnScatterValue(Tensor self, int dim, Tensor index, Scalar value, int reduce, Tensor(a!) out)"
        " -> ()", indexed.scatter, inplace=True),
    Row("aclnnScatterAdd(Tensor self, int dim, Tensor index, Tensor src, Tensor(a!) out) -> ()",
        lambda xp, x, dim, index, source: indexed.scatter(xp, x, dim, index, source, 1)),
    Row("aclnnOneHot(Tensor self, int numClasses, Tensor onValue, Tensor offValue, int axis, Tensor(a!) out)"
        " -> ()", indexed.one_hot),
    Row("aclnnSort(Tensor self, bool stable, int dim, bool descending, Tensor(a!) valuesOut,"
        " Tensor(b!) indicesOut) -> ()",
        lambda xp, x, _, dim, descending: indexed.sort(xp, x, dim, descending)),
    Row("aclnnArgsort(Tensor self, int dim, bool descending, Tensor(a!) out) -> ()",
        lambda xp, x, dim, descending: indexed.sort(xp, x, dim, descending)[1]),
    Row("aclnnTopk(Tensor self, int k, int dim, bool largest, bool sorted, Tensor(a!) valuesOut,"
        " Tensor(b!) indicesOut) -> ()",
        lambda xp, x, k, dim, largest, _: indexed.sort(xp, x, dim, largest, k)),
)  # fmt: skip
