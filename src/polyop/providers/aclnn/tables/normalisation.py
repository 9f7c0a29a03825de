"""Normalisation and pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..indexed import average_pool
from ..row import Row
from ..special import mean, var


def _normalise(xp: Any, x: Any, axis: Any, eps: float) -> tuple[Any, Any, Any]:
    """Return the normalised array, the mean and the inverse of the standard deviation."""
    centre = mean(xp, x, axis, keepdims=True)
    inverse = 1 / xp.sqrt(var(xp, x, axis, 0, keepdims=True) + eps)
    return (x - centre) * inverse, centre, inverse


def _affine(y: Any, weight: Any, bias: Any) -> Any:
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _layer_norm(xp: Any, x: Any, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    y, centre, inverse = _normalise(xp, x, tuple(range(x.ndim - len(shape), x.ndim)), eps)
    return _affine(y, weight, bias), centre, inverse


def _add_layer_norm(
    xp: Any, a: Any, b: Any, gamma: Any, beta: Any, bias: Any, eps: float, _more: bool
) -> Any:
    x = a + b if bias is None else a + b + bias
    return *_layer_norm(xp, x, x.shape[-1:], gamma, beta, eps), x


def _rms_norm(xp: Any, x: Any, gamma: Any, eps: float) -> Any:
    inverse = 1 / xp.sqrt(mean(xp, x * x, tuple(range(x.ndim - gamma.ndim, x.ndim)), keepdims=True) + eps)
    return x * inverse * gamma, inverse


def _add_rms_norm(xp: Any, a: Any, b: Any, gamma: Any, eps: float) -> Any:
    return *_rms_norm(xp, a + b, gamma, eps), a + b


def _group_norm(
    xp: Any, x: Any, gamma: Any, beta: Any, n: int, c: int, inner: int, group: int, eps: float
) -> Any:
    y, centre, inverse = _normalise(xp, xp.reshape(x, (n, group, c // group * inner)), -1, eps)
    y = xp.reshape(y, (n, c, inner))
    wide = [None if v is None else xp.reshape(v, (1, c, 1)) for v in (gamma, beta)]
    small = (xp.reshape(v, (n, group)) for v in (centre, inverse))
    return xp.reshape(_affine(y, *wide), x.shape), *small


def _batch_norm(
    xp: Any, x: Any, weight: Any, bias: Any, mean_ref: Any, var_ref: Any,
    training: bool, momentum: float, eps: float,
) -> Any:  # fmt: skip
    """Return running mean, running variance, output, saved mean, saved inverse deviation."""
    axis = tuple(i for i in range(x.ndim) if i != 1)
    shape = (1, -1) + (1,) * (x.ndim - 2)
    if training:
        y, centre, inverse = _normalise(xp, x, axis, eps)
        centre, inverse = xp.reshape(centre, (-1,)), xp.reshape(inverse, (-1,))
        count = math.prod(x.shape) // max(x.shape[1], 1)
        unbiased = var(xp, x, axis, min(1, count - 1))
        mean_ref = None if mean_ref is None else mean_ref * (1 - momentum) + centre * momentum
        var_ref = None if var_ref is None else var_ref * (1 - momentum) + unbiased * momentum
    else:
        scale = 1 / xp.sqrt(var_ref + eps)
        y = (x - xp.reshape(mean_ref, shape)) * xp.reshape(scale, shape)
        centre, inverse = mean_ref, scale
    wide = [None if v is None else xp.reshape(v, shape) for v in (weight, bias)]
    return mean_ref, var_ref, _affine(y, *wide), centre, inverse


ROWS = (
    Row("aclnnLayerNorm(Tensor input, int[] normalizedShape, Tensor? weightOptional, Tensor? biasOptional,"
        " float eps, Tensor(a!) out, Tensor(b!)? meanOutOptional, Tensor(c!)? rstdOutOptional) -> ()",
        _layer_norm),
    Row("aclnnAddLayerNorm(Tensor x1, Tensor x2, Tensor gamma, Tensor beta, Tensor? biasOptional,"
        " float epsilon, bool additionalOutput, Tensor(a!) yOut, Tensor(b!)? meanOut, Tensor(c!)? rstdOut,"
        " Tensor(d!)? xOut) -> ()",
        _add_layer_norm),
    Row("aclnnRmsNorm(Tensor x, Tensor gamma, float epsilon, Tensor(a!) yOut, Tensor(b!) rstdOut) -> ()",
        _rms_norm),
    Row("aclnnAddRmsNorm(Tensor x1, Tensor x2, Tensor gamma, float epsilon, Tensor(a!) yOut,"
        " Tensor(b!) rstdOut, Tensor(c!) xOut) -> ()",
        _add_rms_norm),
    Row("aclnnGroupNorm(Tensor self, Tensor? gamma, Tensor? beta, int N, int C, int HxW, int group,"
        " float eps, Tensor(a!) out, Tensor(b!) meanOut, Tensor(c!) rstdOut) -> ()",
        _group_norm),
    Row("aclnnBatchNorm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? runningMean,"
        " Tensor(b!)? runningVar, bool training, float momentum, float eps, Tensor(c!) output,"
        " Tensor(d!)? saveMean, Tensor(e!)? saveInvstd) -> ()",
        _batch_norm, reads=("runningMean", "runningVar")),
    Row("aclnnAvgPool2d(Tensor self, int[] kernelSize, int[] strides, int[] paddings, bool ceilMode,"
        " bool countIncludePad, int divisorOverride, int cubeMathType, Tensor(a!) out) -> ()",
        lambda xp, x, kernel, strides, paddings, ceil, include, divisor, _: average_pool(
            xp, x, kernel, strides, paddings, ceil, include, divisor
        )),
)  # fmt: skip
