"""Elementwise functions. Most are rows of a table: PyTorch has the same function."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.nn import functional

from ...core.errors import ArgumentTypeError, ArgumentValueError
from ..dtype import to_torch
from ..interpose import wrap
from ..reduce import promoted
from .arguments import Function, as_tensor, of_two, wrapped

# same name and arguments in PyTorch
_SAME = (
    "abs", "acos", "asin", "asinh", "atan", "atanh", "ceil", "clamp", "clip", "cos", "cosh", "erf",
    "erfc", "exp",
    "expm1", "floor", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "logical_not",
    "masked_fill", "neg", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc", "where",
)  # fmt: skip

# the same, of torch.nn.functional
_OF_NN = (
    "elu", "gelu", "hardsigmoid", "hardswish", "logsigmoid", "mish", "relu6", "silu", "softplus", "softsign",
)  # fmt: skip


def _floor_divide(x: Any, y: Any) -> Any:
    """Return the quotient, rounded down."""
    return torch.div(x, y, rounding_mode="floor")  # torch.floor_divide has no gradient; MindSpore's is zero


# two tensors, or a tensor and a number: MindSpore's names, and PyTorch's function
_TWO: dict[str, Any] = {
    **dict.fromkeys(("floor_div", "floor_divide"), _floor_divide),
    **dict.fromkeys(("floor_mod", "remainder"), torch.remainder),
    **dict.fromkeys(("equal", "eq"), torch.eq),
    **dict.fromkeys(("not_equal", "ne"), torch.ne),
    **dict.fromkeys(("greater", "gt"), torch.gt),
    **dict.fromkeys(("greater_equal", "ge"), torch.ge),
    **dict.fromkeys(("less", "lt"), torch.lt),
    **dict.fromkeys(("less_equal", "le"), torch.le),
    "mul": operator.mul,
    "pow": operator.pow,
    **{
        name: getattr(torch, name)
        for name in (
            "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor",
            "maximum", "minimum",
        )
    },
}  # fmt: skip


def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:  # noqa: A002 - MindSpore's name
    """Return ``input + alpha * other``."""
    x, y = promoted(input, other)
    return wrap(as_tensor(x) + (y if alpha == 1 else as_tensor(y) * alpha))


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:  # noqa: A002
    """Return ``input - alpha * other``."""
    x, y = promoted(input, other)
    return wrap(as_tensor(x) - (y if alpha == 1 else as_tensor(y) * alpha))


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:  # noqa: A002
    """Return the quotient; ``rounding_mode`` "floor" or "trunc" rounds it."""
    return wrap(torch.div(as_tensor(input), as_tensor(other), rounding_mode=rounding_mode))


def cast(input: Any, dtype: Any) -> Any:  # noqa: A002
    """Return the values as another dtype; a number as a tensor."""
    return wrap(as_tensor(input).to(to_torch(dtype)))


def select(condition: Any, input: Any, other: Any) -> Any:  # noqa: A002
    """Return ``input`` where the condition holds, ``other`` elsewhere."""
    return wrap(torch.where(condition, as_tensor(input), as_tensor(other)))


def leaky_relu(input: Any, alpha: float = 0.2) -> Any:  # noqa: A002
    """Return ``input``, times ``alpha`` where it is negative."""
    return wrap(functional.leaky_relu(input, alpha))


def clip_by_value(x: Any, clip_value_min: Any = None, clip_value_max: Any = None) -> Any:
    """Return the values within two bounds, in the dtype of ``x``."""
    return wrap(torch.clamp(x, clip_value_min, clip_value_max).to(to_torch(x.dtype)))


def addn(inputs: Any) -> Any:
    """Return the sum of a list of tensors, which have one shape and one dtype."""
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise ArgumentTypeError("addn", "takes a list of tensors, at least one", type(inputs).__name__)
    total = inputs[0]
    for value in inputs[1:]:
        if value.shape != total.shape or value.dtype != total.dtype:
            rule = "the tensors must have one shape and one dtype: addn broadcasts and promotes nothing"
            seen = f"{total.dtype} {tuple(total.shape)} and {value.dtype} {tuple(value.shape)}"
            raise ArgumentValueError("addn", rule, seen)
    for value in inputs[1:]:
        total = total + value
    return wrap(total)


FUNCTIONS: dict[str, Function] = {
    **{name: wrapped(getattr(torch, name)) for name in _SAME},
    **{name: wrapped(getattr(functional, name)) for name in _OF_NN},
    **{name: of_two(function) for name, function in _TWO.items()},
    "add": add,
    "sub": sub,
    "div": div,
    "cast": cast,
    "select": select,
    "leaky_relu": leaky_relu,
    "clip_by_value": clip_by_value,
    "addn": addn,
}
