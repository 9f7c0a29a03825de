"""The aclnn operators that need no PyTorch: those of the documents and of a small network, one row each.

``through_aten`` makes a row of any other operator that PyTorch has too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from . import special
from .row import Function, Row
from .special import axes, blend, erf, log_softmax, mean, scaled, sigmoid, softmax, var

_UNARY: tuple[tuple[str, Function, str | None, bool], ...] = (
    # name          function of an element           NumPy's ufunc   has an in-place form
    ("Abs",         lambda xp, x: xp.abs(x),         "absolute",     False),
    ("Neg",         lambda xp, x: -x,                "negative",     True),
    ("Exp",         lambda xp, x: xp.exp(x),         "exp",          True),
    ("Log",         lambda xp, x: xp.log(x),         "log",          True),
    ("Sqrt",        lambda xp, x: xp.sqrt(x),        "sqrt",         True),
    ("Rsqrt",       lambda xp, x: 1 / xp.sqrt(x),    None,           True),
    ("Reciprocal",  lambda xp, x: 1 / x,             None,           True),
    ("Square",      lambda xp, x: x * x,             "square",       False),
    ("Sin",         lambda xp, x: xp.sin(x),         "sin",          True),
    ("Cos",         lambda xp, x: xp.cos(x),         "cos",          True),
    ("Tanh",        lambda xp, x: xp.tanh(x),        "tanh",         True),
    ("Sigmoid",     sigmoid,                         None,           True),
    ("Erf",         erf,                             None,           True),
    ("Relu",        lambda xp, x: xp.where(x <= 0, xp.zeros_like(x), x), None, True),
    ("Silu",        lambda xp, x: x * sigmoid(xp, x), None,          False),
)  # fmt: skip
_BINARY: tuple[tuple[str, Function, str, bool], ...] = (
    ("Mul",         lambda xp, x, y: x * y,          "multiply",     True),
    ("Div",         lambda xp, x, y: xp.divide(x, y), "divide",      True),
    ("Maximum",     lambda xp, x, y: xp.maximum(x, y), "maximum",    False),
    ("Minimum",     lambda xp, x, y: xp.minimum(x, y), "minimum",    False),
    ("EqTensor",    lambda xp, x, y: x == y,         "equal",        True),
    ("GtTensor",    lambda xp, x, y: x > y,          "greater",      True),
)  # fmt: skip
_SCALAR: tuple[tuple[str, Function], ...] = (
    ("Muls",        lambda xp, x, s: x * s),
    ("Divs",        lambda xp, x, s: x / s),
    ("GtScalar",    lambda xp, x, s: x > s),
)  # fmt: skip


def _gelu(xp: Any, x: Any) -> Any:
    return x * 0.5 * (1 + erf(xp, x * math.sqrt(0.5)))


def _gelu_tanh(xp: Any, x: Any) -> Any:
    return x * 0.5 * (1 + xp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _gelu_backward(xp: Any, grad: Any, x: Any) -> Any:
    density = xp.exp(x * x * -0.5) / math.sqrt(2 * math.pi)
    return grad * (0.5 * (1 + erf(xp, x * math.sqrt(0.5))) + x * density)


def _take(xp: Any, x: Any, dim: int, index: Any) -> Any:
    """Return the slices of ``x`` at an index of any shape; its dimensions replace the axis."""
    flat = xp.take(x, xp.reshape(index, (-1,)), axis=dim)
    axis = dim % x.ndim
    return xp.reshape(flat, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))


def _split(x: Any, sizes: Sequence[int], dim: int) -> list[Any]:
    """Return consecutive pieces of the given sizes along one axis."""
    before = (slice(None),) * (dim % x.ndim)
    ends = itertools.accumulate(sizes)
    keys = [(*before, slice(end - size, end)) for end, size in zip(ends, sizes, strict=True)]
    return [x[key] for key in keys]


def _pieces(size: int, section: int) -> list[int]:
    return [min(section, size - start) for start in range(0, size, section)] or [0]


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


def _rms_norm(xp: Any, x: Any, gamma: Any, eps: float) -> Any:
    inverse = 1 / xp.sqrt(mean(xp, x * x, tuple(range(x.ndim - gamma.ndim, x.ndim)), keepdims=True) + eps)
    return x * inverse * gamma, inverse


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


def _product(xp: Any, x: Any, y: Any, _: int) -> Any:
    return xp.matmul(x, y)


_OTHERS = (
    Row("aclnnAdd(Tensor self, Tensor other, Scalar alpha, Tensor(a!) out) -> ()",
        lambda xp, x, y, alpha: x + scaled(y, alpha), ufunc="add", inplace=True),
    Row("aclnnAdds(Tensor self, Scalar other, Scalar alpha, Tensor(a!) out) -> ()",
        lambda xp, x, s, alpha: x + s * alpha, inplace=True),
    Row("aclnnSub(Tensor self, Tensor other, Scalar alpha, Tensor(a!) out) -> ()",
        lambda xp, x, y, alpha: x - scaled(y, alpha), ufunc="subtract", inplace=True),
    Row("aclnnSubs(Tensor self, Scalar other, Scalar alpha, Tensor(a!) out) -> ()",
        lambda xp, x, s, alpha: x - s * alpha, inplace=True),
    Row("aclnnPowTensorScalar(Tensor self, Scalar exponent, Tensor(a!) out) -> ()",
        special.power, inplace=True),
    Row("aclnnLeakyRelu(Tensor self, Scalar negativeSlope, Tensor(a!) out) -> ()",
        lambda xp, x, slope: xp.where(x > 0, x, x * slope), inplace=True),
    Row("aclnnLeakyReluBackward(Tensor gradOutput, Tensor self, Scalar negativeSlope, bool selfIsResult,"
        " Tensor(a!) out) -> ()",
        lambda xp, grad, x, slope, _: xp.where(x > 0, grad, grad * slope)),
    Row("aclnnSWhere(Tensor condition, Tensor self, Tensor other, Tensor(a!) out) -> ()",
        lambda xp, condition, x, y: xp.where(condition != 0, x, y)),
    # aclnnGelu is the tanh approximation; GeluV2 has an attribute for it
    Row("aclnnGelu(Tensor self, Tensor(a!) out) -> ()", _gelu_tanh),
    Row("aclnnGeluV2(Tensor x, int approximate, Tensor(a!) y) -> ()",
        lambda xp, x, approximate: _gelu_tanh(xp, x) if approximate else _gelu(xp, x)),
    Row("aclnnGeluBackward(Tensor gradOutput, Tensor self, Tensor(a!) gradInput) -> ()", _gelu_backward),
    Row("aclnnSoftmax(Tensor self, int dim, Tensor(a!) out) -> ()", softmax),
    Row("aclnnLogSoftmax(Tensor self, int dim, Tensor(a!) out) -> ()", log_softmax),
    Row("aclnnSoftmaxBackward(Tensor gradOutput, Tensor output, int dim, Tensor(a!) gradInput) -> ()",
        lambda xp, grad, y, dim: y * (grad - xp.sum(grad * y, axis=dim, keepdims=True))),
    Row("aclnnLogSoftmaxBackward(Tensor gradOutput, Tensor output, int dim, Tensor(a!) out) -> ()",
        lambda xp, grad, y, dim: grad - xp.exp(y) * xp.sum(grad, axis=dim, keepdims=True)),
    # an empty list of axes means all of them
    Row("aclnnReduceSum(Tensor self, int[] dims, bool keepDims, ScalarType dtype, Tensor(a!) out) -> ()",
        lambda xp, x, dims, keep, dtype: xp.sum(
            xp.astype(x, dtype), axis=axes(dims), keepdims=keep, dtype=dtype
        )),
    Row("aclnnMean(Tensor self, int[] dim, bool keepDim, ScalarType dtype, Tensor(a!) out) -> ()",
        lambda xp, x, dim, keep, dtype: mean(xp, xp.astype(x, dtype), axes(dim), keepdims=keep)),
    # cubeMathType selects a precision on Ascend; here it is ignored
    Row("aclnnMm(Tensor self, Tensor mat2, Tensor(a!) out, int cubeMathType) -> ()", _product),
    Row("aclnnMatmul(Tensor self, Tensor mat2, Tensor(a!) out, int cubeMathType) -> ()", _product),
    Row("aclnnBatchMatMul(Tensor self, Tensor mat2, Tensor(a!) out, int cubeMathType) -> ()", _product),
    Row("aclnnAddmm(Tensor self, Tensor mat1, Tensor mat2, Scalar beta, Scalar alpha, Tensor(a!) out,"
        " int cubeMathType) -> ()",
        lambda xp, x, a, b, beta, alpha, _: blend(xp.matmul(a, b), alpha, x, beta), inplace=True),
    Row("aclnnLayerNorm(Tensor input, int[] normalizedShape, Tensor? weightOptional, Tensor? biasOptional,"
        " float eps, Tensor(a!) out, Tensor(b!)? meanOutOptional, Tensor(c!)? rstdOutOptional) -> ()",
        _layer_norm),
    Row("aclnnRmsNorm(Tensor x, Tensor gamma, float epsilon, Tensor(a!) yOut, Tensor(b!) rstdOut) -> ()",
        _rms_norm),
    Row("aclnnBatchNorm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? runningMean,"
        " Tensor(b!)? runningVar, bool training, float momentum, float eps, Tensor(c!) output,"
        " Tensor(d!)? saveMean, Tensor(e!)? saveInvstd) -> ()",
        _batch_norm, reads=("runningMean", "runningVar")),
    Row("aclnnIndexSelect(Tensor self, int dim, Tensor index, Tensor(a!) out) -> ()", _take),
    Row("aclnnEmbedding(Tensor weight, Tensor indices, Tensor(a!) out) -> ()",
        lambda xp, weight, indices: _take(xp, weight, 0, indices)),
    Row("aclnnCast(Tensor self, ScalarType dtype, Tensor(a!) out) -> ()",
        lambda xp, x, dtype: xp.astype(x, dtype)),
    Row("aclnnInplaceCopy(Tensor(a!) selfRef, Tensor src) -> ()",
        lambda xp, x, src: xp.broadcast_to(src, x.shape)),
    Row("aclnnInplaceZero(Tensor(a!) selfRef) -> ()", lambda xp, x: xp.zeros_like(x)),
    Row("aclnnInplaceOne(Tensor(a!) selfRef) -> ()", lambda xp, x: xp.ones_like(x)),
    # methods of polyop's tensors in C++ modules call these
    Row("aclnnRepeat(Tensor self, int[] repeats, Tensor(a!) out) -> ()",
        lambda xp, x, repeats: xp.tile(x, tuple(repeats))),
    Row("aclnnRepeatInterleaveWithDim(Tensor self, Tensor repeats, int dim, int outputSize, Tensor(a!) out)"
        " -> ()", lambda xp, x, repeats, dim, _: xp.repeat(x, repeats, axis=dim)),
    Row("aclnnRepeatInterleaveIntWithDim(Tensor self, int repeats, int dim, int outputSize, Tensor(a!) out)"
        " -> ()", lambda xp, x, repeats, dim, _: xp.repeat(x, repeats, axis=dim)),
    Row("aclnnPermute(Tensor self, int[] dims, Tensor(a!) out) -> ()",
        lambda xp, x, dims: xp.permute_dims(x, tuple(d % x.ndim for d in dims))),
    Row("aclnnCat(Tensor[] tensors, int dim, Tensor(a!) out) -> ()",
        lambda xp, tensors, dim: xp.concat(list(tensors), axis=dim)),
    Row("aclnnSplitTensor(Tensor self, int splitSections, int dim, Tensor(a!)[] out) -> ()",
        lambda xp, x, section, dim: _split(x, _pieces(x.shape[dim], section), dim)),
    Row("aclnnSplitWithSize(Tensor self, int[] splitSize, int dim, Tensor(a!)[] out) -> ()",
        lambda xp, x, sizes, dim: _split(x, sizes, dim)),
)  # fmt: skip

ROWS = (
    *(
        Row(f"aclnn{n}(Tensor self, Tensor(a!) out) -> ()", f, ufunc, inplace)
        for n, f, ufunc, inplace in _UNARY
    ),
    *(
        Row(f"aclnn{n}(Tensor self, Tensor other, Tensor(a!) out) -> ()", f, ufunc, inplace)
        for n, f, ufunc, inplace in _BINARY
    ),
    *(Row(f"aclnn{n}(Tensor self, Scalar other, Tensor(a!) out) -> ()", f, inplace=True) for n, f in _SCALAR),
    *_OTHERS,
)
