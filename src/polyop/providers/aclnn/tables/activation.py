"""Activations, their backward operators, softmax and losses."""

from __future__ import annotations

import math
from typing import Any

from ..row import Row
from ..special import clamp, erf, log_softmax, negative_part, reduce_loss, scaled, sigmoid, softmax, softplus

_SELU = (1.6732632423543772, 1.0507009873554805)


def _gelu(xp: Any, x: Any) -> Any:
    return x * 0.5 * (1 + erf(xp, x * math.sqrt(0.5)))


def _gelu_tanh(xp: Any, x: Any) -> Any:
    return x * 0.5 * (1 + xp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _elu(xp: Any, x: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    return xp.where(x > 0, scale * x, scale * alpha * xp.expm1(input_scale * negative_part(xp, x)))


def _softplus(xp: Any, x: Any, beta: Any, threshold: Any) -> Any:
    return xp.where(x * beta > threshold, x, softplus(xp, x * beta) / beta)


def _halves(x: Any, dim: int) -> tuple[Any, Any]:
    leading = (slice(None),) * (dim % x.ndim)
    middle = x.shape[dim] // 2
    first, second = (*leading, slice(middle)), (*leading, slice(middle, None))
    return x[first], x[second]


def _glu(xp: Any, x: Any, dim: int) -> Any:
    a, b = _halves(x, dim)
    return a * sigmoid(xp, b)


def _swiglu(xp: Any, x: Any, dim: int) -> Any:
    a, b = _halves(x, dim)
    return a * sigmoid(xp, a) * b


def _silu_backward(xp: Any, grad: Any, x: Any) -> Any:
    s = sigmoid(xp, x)
    return grad * s * (1 + x * (1 - s))


def _gelu_backward(xp: Any, grad: Any, x: Any) -> Any:
    density = xp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return grad * (0.5 * (1 + erf(xp, x * math.sqrt(0.5))) + x * density)


def _smooth_l1(xp: Any, x: Any, y: Any, reduction: int, beta: float) -> Any:
    d = xp.abs(x - y)
    return reduce_loss(xp, xp.where(d < beta, 0.5 * d * d / (beta or 1), d - 0.5 * beta), reduction)


def _cross_entropy(xp: Any, x: Any, y: Any, weight: Any, reduction: int) -> Any:
    # like PyTorch, CANN limits the logarithms to -100 and above
    loss = -(y * clamp(xp, xp.log(x), -100.0, None) + (1 - y) * clamp(xp, xp.log1p(-x), -100.0, None))
    return reduce_loss(xp, loss if weight is None else loss * weight, reduction)


_UNARY = "(Tensor self, Tensor(a!) out) -> ()"

ROWS = (
    Row(f"aclnnRelu{_UNARY}", lambda xp, x: xp.where(x <= 0, xp.zeros_like(x), x), inplace=True),
    # aclnnGelu is the tanh approximation; GeluV2 has an attribute for it
    Row(f"aclnnGelu{_UNARY}", _gelu_tanh),
    Row("aclnnGeluV2(Tensor x, int approximate, Tensor(a!) y) -> ()",
        lambda xp, x, approximate: _gelu_tanh(xp, x) if approximate else _gelu(xp, x)),
    Row(f"aclnnSilu{_UNARY}", lambda xp, x: x * sigmoid(xp, x)),
    Row("aclnnSwish(Tensor self, Scalar? betaOptional, Tensor(a!) out) -> ()",
        lambda xp, x, beta: x * sigmoid(xp, scaled(x, 1 if beta is None else beta))),
    Row(f"aclnnMish{_UNARY}", lambda xp, x: x * xp.tanh(softplus(xp, x)), inplace=True),
    Row(f"aclnnHardswish{_UNARY}", lambda xp, x: x * clamp(xp, x + 3, 0, 6) / 6, inplace=True),
    Row(f"aclnnHardsigmoid{_UNARY}", lambda xp, x: clamp(xp, x + 3, 0, 6) / 6, inplace=True),
    Row(f"aclnnSelu{_UNARY}", lambda xp, x: _elu(xp, x, *_SELU, 1), inplace=True),
    Row(f"aclnnLogSigmoid{_UNARY}", lambda xp, x: -softplus(xp, -x)),
    Row("aclnnLeakyRelu(Tensor self, Scalar negativeSlope, Tensor(a!) out) -> ()",
        lambda xp, x, slope: xp.where(x > 0, x, x * slope), inplace=True),
    Row("aclnnElu(Tensor self, Scalar alpha, Scalar scale, Scalar inputScale, Tensor(a!) out) -> ()",
        _elu, inplace=True),
    Row("aclnnCelu(Tensor self, Scalar alpha, Tensor(a!) out) -> ()",
        lambda xp, x, alpha: _elu(xp, x, alpha, 1, 1 / alpha), inplace=True),
    Row("aclnnSoftplus(Tensor self, Scalar beta, Scalar threshold, Tensor(a!) out) -> ()", _softplus),
    Row("aclnnHardtanh(Tensor self, Scalar clipValueMin, Scalar clipValueMax, Tensor(a!) out) -> ()",
        clamp, inplace=True),
    Row("aclnnHardshrink(Tensor self, Scalar lambd, Tensor(a!) out) -> ()",
        lambda xp, x, s: xp.where(xp.abs(x) > s, x, xp.zeros_like(x))),
    Row("aclnnSoftshrink(Tensor self, Scalar lambd, Tensor(a!) out) -> ()",
        lambda xp, x, s: xp.where(xp.abs(x) > s, x - s * xp.sign(x), xp.zeros_like(x))),
    Row("aclnnThreshold(Tensor self, Scalar threshold, Scalar value, Tensor(a!) out) -> ()",
        lambda xp, x, threshold, value: xp.where(x > threshold, x, value), inplace=True),
    Row("aclnnPrelu(Tensor self, Tensor weight, Tensor(a!) out) -> ()",
        lambda xp, x, w: xp.where(
            x > 0, x, x * (xp.reshape(w, (1, -1) + (1,) * (x.ndim - 2)) if x.ndim > 1 else w)
        )),
    Row("aclnnGlu(Tensor self, int dim, Tensor(a!) out) -> ()", _glu),
    Row("aclnnSwiGlu(Tensor x, int dim, Tensor(a!) out) -> ()", _swiglu),
    Row("aclnnSoftmax(Tensor self, int dim, Tensor(a!) out) -> ()", softmax),
    Row("aclnnLogSoftmax(Tensor self, int dim, Tensor(a!) out) -> ()", log_softmax),
    Row("aclnnSigmoidBackward(Tensor gradOutput, Tensor output, Tensor(a!) gradInput) -> ()",
        lambda xp, grad, y: grad * y * (1 - y)),
    Row("aclnnTanhBackward(Tensor gradOutput, Tensor output, Tensor(a!) gradInput) -> ()",
        lambda xp, grad, y: grad * (1 - y * y)),
    Row("aclnnSiluBackward(Tensor gradOutput, Tensor self, Tensor(a!) gradInput) -> ()", _silu_backward),
    Row("aclnnGeluBackward(Tensor gradOutput, Tensor self, Tensor(a!) gradInput) -> ()", _gelu_backward),
    Row("aclnnThresholdBackward(Tensor gradOutput, Tensor self, Scalar threshold, Tensor(a!) out) -> ()",
        lambda xp, grad, x, threshold: xp.where(x > threshold, grad, xp.zeros_like(grad))),
    Row("aclnnLeakyReluBackward(Tensor gradOutput, Tensor self, Scalar negativeSlope, bool selfIsResult,"
        " Tensor(a!) out) -> ()",
        lambda xp, grad, x, slope, _: xp.where(x > 0, grad, grad * slope)),
    Row("aclnnSoftmaxBackward(Tensor gradOutput, Tensor output, int dim, Tensor(a!) gradInput) -> ()",
        lambda xp, grad, y, dim: y * (grad - xp.sum(grad * y, axis=dim, keepdims=True))),
    Row("aclnnLogSoftmaxBackward(Tensor gradOutput, Tensor output, int dim, Tensor(a!) out) -> ()",
        lambda xp, grad, y, dim: grad - xp.exp(y) * xp.sum(grad, axis=dim, keepdims=True)),
    # reduction: 0 none, 1 mean, 2 sum
    Row("aclnnMseLoss(Tensor self, Tensor target, int reduction, Tensor(a!) out) -> ()",
        lambda xp, x, y, reduction: reduce_loss(xp, (x - y) * (x - y), reduction)),
    Row("aclnnL1Loss(Tensor self, Tensor target, int reduction, Tensor(a!) out) -> ()",
        lambda xp, x, y, reduction: reduce_loss(xp, xp.abs(x - y), reduction)),
    Row("aclnnSmoothL1Loss(Tensor self, Tensor target, int reduction, float beta, Tensor(a!) result) -> ()",
        _smooth_l1),
    Row("aclnnBinaryCrossEntropy(Tensor self, Tensor target, Tensor? weight, int reduction, Tensor(a!) out)"
        " -> ()", _cross_entropy),
)  # fmt: skip
