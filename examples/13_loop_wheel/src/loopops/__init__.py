"""Operators whose loop kernels this wheel brings compiled."""

import polyop

from .kernels import scale as _scale
from .kernels import softmax as _softmax
from .kernels import softmax_gradient as _softmax_gradient

softmax_gradient = polyop.operator(
    "loopops::softmax_gradient(Tensor y, Tensor dy) -> Tensor", _softmax_gradient
)
softmax = polyop.operator(
    "loopops::softmax(Tensor x) -> Tensor",
    _softmax,
    gradient=lambda x, y, dy: (softmax_gradient(y, dy),),
)
scale = polyop.operator("loopops::scale(Tensor x, *, float factor=2.0) -> Tensor", _scale)

__all__ = ["scale", "softmax", "softmax_gradient"]
