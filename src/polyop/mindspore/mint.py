"""``mindspore.mint``: PyTorch's functions with PyTorch's arguments, whose results are ``Tensor``."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from .nearest import missing
from .ops.arguments import Function, wrapped
from .ops.primitives import FUNCTIONS as _OF_OPS

_SAME = (  # the same function as in ops
    "abs", "acos", "add", "asin", "atan", "atan2", "ceil", "clamp", "cos", "cosh", "div", "eq", "erf",
    "exp", "expm1",
    "floor", "ge", "greater", "greater_equal", "gt", "isfinite", "le", "less", "less_equal", "log",
    "log1p", "log2",
    "logical_and", "logical_not", "logical_or", "logical_xor", "lt", "maximum", "minimum", "mul", "ne", "neg",
    "not_equal", "pow", "reciprocal", "remainder", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
    "square", "sub", "tanh", "trunc", "where", "mean", "zeros_like", "ones_like", "full_like", "arange",
    "eye",
    "linspace",
)  # fmt: skip

_NAMES = (
    "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "bmm", "broadcast_to", "cat", "chunk",
    "concat",
    "cumprod", "cumsum", "dot", "flatten", "flip", "full", "gather", "index_select", "logsumexp",
    "masked_select",
    "matmul", "max", "min", "mm", "narrow", "nonzero", "norm", "ones", "outer", "permute", "prod",
    "reshape", "select",
    "sort", "split", "squeeze", "stack", "std", "sum", "swapaxes", "tile", "topk", "transpose", "tril",
    "triu",
    "unsqueeze", "var", "zeros",
)  # fmt: skip

OF_NN = ("gelu", "l1_loss", "leaky_relu", "log_softmax", "mse_loss", "one_hot", "relu", "silu", "softmax")

FUNCTIONS: dict[str, Function] = {
    **{name: _OF_OPS[name] for name in _SAME},
    **{name: wrapped(getattr(torch, name)) for name in _NAMES},
}


class _Functional:
    """``mint.nn.functional``: PyTorch's, by name."""

    def __getattr__(self, name: str) -> Any:
        if name not in OF_NN:
            raise missing(f"{__name__}.nn.functional", name, OF_NN)
        return wrapped(getattr(functional, name))


class nn:  # noqa: N801 - a module in MindSpore
    """``mint.nn``: its functions."""

    functional = _Functional()


def __getattr__(name: str) -> Any:
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    raise missing(__name__, name, FUNCTIONS)
