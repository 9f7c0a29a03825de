"""Sums, extremes and statistics along axes. An empty list of axes means all axes."""

from __future__ import annotations

from typing import Any

from ..row import Row
from ..special import axes, floating, logsumexp, mean, var


def _cumulative_sum(xp: Any, x: Any, dim: int, *, exclusive: bool = False, reverse: bool = False) -> Any:
    if not x.ndim:
        return x * (not exclusive)
    x = xp.flip(x, axis=dim) if reverse else x
    sums = xp.cumulative_sum(x, axis=dim, dtype=x.dtype)
    sums = sums - x if exclusive else sums
    return xp.flip(sums, axis=dim) if reverse else sums


def _with_index(xp: Any, x: Any, dim: int, keep: bool, extreme: Any, index: Any) -> Any:
    """Return the extreme along one axis, and its first index."""
    if not x.ndim:
        return x, xp.zeros_like(x, dtype=xp.int64)
    return extreme(x, axis=dim, keepdims=keep), index(x, axis=dim, keepdims=keep)


def _norm(xp: Any, x: Any, p: Any, dim: Any, keep: bool) -> Any:
    return xp.linalg.vector_norm(floating(xp, x), axis=axes(dim), keepdims=keep, ord=p)


def _deviation(xp: Any, x: Any, dim: Any, correction: int, keep: bool) -> Any:
    return xp.sqrt(var(xp, x, axes(dim), correction, keepdims=keep))


ROWS = (
    Row("aclnnReduceSum(Tensor self, int[] dims, bool keepDims, ScalarType dtype, Tensor(a!) out) -> ()",
        lambda xp, x, dims, keep, dtype: xp.sum(
            xp.astype(x, dtype), axis=axes(dims), keepdims=keep, dtype=dtype
        )),
    Row("aclnnReduceNansum(Tensor self, int[] dim, bool keepDim, ScalarType dtype, Tensor(a!) out) -> ()",
        lambda xp, x, dim, keep, dtype: xp.sum(
            xp.astype(xp.where(xp.isnan(x), xp.zeros_like(x), x), dtype), axis=axes(dim), keepdims=keep
        )),
    Row("aclnnMean(Tensor self, int[] dim, bool keepDim, ScalarType dtype, Tensor(a!) out) -> ()",
        lambda xp, x, dim, keep, dtype: mean(xp, xp.astype(x, dtype), axes(dim), keepdims=keep)),
    Row("aclnnMeanV2(Tensor self, int[] dim, bool keepDim, bool noopWithEmptyAxes, Tensor(a!) out) -> ()",
        lambda xp, x, dim, keep, noop: (
            x if noop and not dim else mean(xp, x, axes(dim), keepdims=keep)
        )),
    Row("aclnnProd(Tensor self, ScalarType dtype, Tensor(a!) out) -> ()",
        lambda xp, x, dtype: xp.prod(xp.astype(x, dtype), dtype=dtype)),
    Row("aclnnProdDim(Tensor self, int dim, bool keepDim, ScalarType dtype, Tensor(a!) out) -> ()",
        lambda xp, x, dim, keep, dtype: xp.prod(xp.astype(x, dtype), axis=dim, keepdims=keep, dtype=dtype)),
    Row("aclnnAmax(Tensor self, int[] dim, bool keepDim, Tensor(a!) out) -> ()",
        lambda xp, x, dim, keep: xp.max(x, axis=axes(dim), keepdims=keep)),
    Row("aclnnAmin(Tensor self, int[] dim, bool keepDim, Tensor(a!) out) -> ()",
        lambda xp, x, dim, keep: xp.min(x, axis=axes(dim), keepdims=keep)),
    Row("aclnnAminmax(Tensor self, int[] dim, bool keepDim, Tensor(a!) minOut, Tensor(b!) maxOut) -> ()",
        lambda xp, x, dim, keep: (
            xp.min(x, axis=axes(dim), keepdims=keep), xp.max(x, axis=axes(dim), keepdims=keep)
        )),
    Row("aclnnMax(Tensor self, Tensor(a!) out) -> ()", lambda xp, x: xp.max(x)),
    Row("aclnnMin(Tensor self, Tensor(a!) out) -> ()", lambda xp, x: xp.min(x)),
    Row("aclnnMaxDim(Tensor self, int dim, bool keepdim, Tensor(a!) out, Tensor(b!) indices) -> ()",
        lambda xp, x, dim, keep: _with_index(xp, x, dim, keep, xp.max, xp.argmax)),
    Row("aclnnMinDim(Tensor self, int dim, bool keepdim, Tensor(a!) out, Tensor(b!) indices) -> ()",
        lambda xp, x, dim, keep: _with_index(xp, x, dim, keep, xp.min, xp.argmin)),
    Row("aclnnArgMax(Tensor self, int dim, bool keepdim, Tensor(a!) out) -> ()",
        lambda xp, x, dim, keep: xp.argmax(x, axis=dim, keepdims=keep)),
    Row("aclnnArgMin(Tensor self, int dim, bool keepdim, Tensor(a!) out) -> ()",
        lambda xp, x, dim, keep: xp.argmin(x, axis=dim, keepdims=keep)),
    Row("aclnnAll(Tensor self, int[] dim, bool keepdim, Tensor(a!) out) -> ()",
        lambda xp, x, dim, keep: xp.all(x != 0, axis=axes(dim), keepdims=keep)),
    Row("aclnnAny(Tensor self, int[] dim, bool keepdim, Tensor(a!) out) -> ()",
        lambda xp, x, dim, keep: xp.any(x != 0, axis=axes(dim), keepdims=keep)),
    Row("aclnnVar(Tensor self, int[] dim, bool unbiased, bool keepdim, Tensor(a!) out) -> ()",
        lambda xp, x, dim, unbiased, keep: var(xp, x, axes(dim), int(unbiased), keepdims=keep)),
    Row("aclnnVarCorrection(Tensor self, int[] dim, int correction, bool keepdim, Tensor(a!) out) -> ()",
        lambda xp, x, dim, correction, keep: var(xp, x, axes(dim), correction, keepdims=keep)),
    Row("aclnnVarMean(Tensor self, int[] dim, int correction, bool keepdim, Tensor(a!) varOut,"
        " Tensor(b!) meanOut) -> ()",
        lambda xp, x, dim, correction, keep: (
            var(xp, x, axes(dim), correction, keepdims=keep),
            mean(xp, x, axes(dim), keepdims=keep),
        )),
    Row("aclnnStd(Tensor self, int[] dim, int correction, bool keepdim, Tensor(a!) out) -> ()", _deviation),
    Row("aclnnStdMeanCorrection(Tensor self, int[] dim, int correction, bool keepdim, Tensor(a!) stdOut,"
        " Tensor(b!) meanOut) -> ()",
        lambda xp, x, dim, correction, keep: (
            _deviation(xp, x, dim, correction, keep), mean(xp, x, axes(dim), keepdims=keep)
        )),
    Row("aclnnLogSumExp(Tensor self, int[] dim, bool keepDim, Tensor(a!) out) -> ()",
        lambda xp, x, dim, keep: logsumexp(xp, x, axes(dim), keepdims=keep)),
    Row("aclnnNorm(Tensor self, Scalar pScalar, int[] dim, bool keepdim, Tensor(a!) out) -> ()", _norm),
    Row("aclnnLinalgVectorNorm(Tensor self, Scalar ord, int[] dims, bool keepDims, ScalarType dtype,"
        " Tensor(a!) out) -> ()",
        lambda xp, x, p, dims, keep, dtype: _norm(xp, xp.astype(x, dtype), p, dims, keep)),
    Row("aclnnCumsum(Tensor self, int dim, ScalarType dtype, Tensor(a!) out) -> ()",
        lambda xp, x, dim, dtype: _cumulative_sum(xp, xp.astype(x, dtype), dim)),
    Row("aclnnCumsumV2(Tensor self, int dim, bool exclusive, bool reverse, Tensor(a!) out) -> ()",
        lambda xp, x, dim, exclusive, reverse: _cumulative_sum(
            xp, x, dim, exclusive=exclusive, reverse=reverse
        )),
    Row("aclnnCumprod(Tensor input, Scalar dim, ScalarType dtype, Tensor(a!) out) -> ()",
        lambda xp, x, dim, dtype: (
            xp.cumulative_prod(xp.astype(x, dtype), axis=dim, dtype=dtype) if x.ndim else xp.astype(x, dtype)
        )),
)  # fmt: skip
