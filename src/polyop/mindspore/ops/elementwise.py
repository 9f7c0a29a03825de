"""Elementwise functions. Most are rows of a table: PyTorch has the same function."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.nn import functional

from ..dtype import to_torch
from ..interpose import wrap
from .arguments import Function, as_tensor, of_two, wrapped

# same name and arguments in PyTorch
_SAME = (
    "abs", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "bernoulli", "ceil", "conj", "cos",
    "cosh", "deg2rad", "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "frac", "imag",
    "isfinite", "isinf", "isnan", "lgamma", "log", "log10", "log1p", "log2", "logical_not", "neg", "rad2deg",
    "real", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh",
    "sqrt", "square", "tan", "tanh", "trunc", "bitwise_not", "clamp", "clip", "masked_fill", "nan_to_num",
    "lerp", "addcmul", "addcdiv", "where",
)  # fmt: skip

# MindSpore's name: PyTorch's function with the same arguments
_OTHER: dict[str, Any] = {
    "absolute": torch.abs,
    "invert": torch.bitwise_not,
    "negative": torch.neg,
    "celu": functional.celu,
    "elu": functional.elu,
    "gelu": functional.gelu,
    "hardswish": functional.hardswish,
    "hardsigmoid": functional.hardsigmoid,
    "hardtanh": functional.hardtanh,
    "leaky_relu": functional.leaky_relu,
    "logsigmoid": functional.logsigmoid,
    "mish": functional.mish,
    "relu6": functional.relu6,
    "selu": functional.selu,
    "silu": functional.silu,
    "softplus": functional.softplus,
    "softsign": functional.softsign,
    "clip_by_value": torch.clamp,
}

# two tensors, or a tensor and a number
_TWO: dict[str, Any] = {
    "mul": operator.mul,
    "multiply": operator.mul,
    "subtract": operator.sub,
    "true_divide": torch.true_divide,
    "floor_div": torch.floor_divide,
    "floor_divide": torch.floor_divide,
    "floor_mod": torch.remainder,
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "pow": operator.pow,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "atan2": torch.atan2,
    "hypot": torch.hypot,
    "equal": torch.eq,
    "eq": torch.eq,
    "not_equal": torch.ne,
    "ne": torch.ne,
    "greater": torch.gt,
    "gt": torch.gt,
    "greater_equal": torch.ge,
    "ge": torch.ge,
    "less": torch.lt,
    "lt": torch.lt,
    "less_equal": torch.le,
    "le": torch.le,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor,
    "bitwise_and": torch.bitwise_and,
    "bitwise_or": torch.bitwise_or,
    "bitwise_xor": torch.bitwise_xor,
    "xlogy": torch.xlogy,
}


def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:  # noqa: A002 - MindSpore's name
    """Return ``input + alpha * other``."""
    return wrap(as_tensor(input) + (other if alpha == 1 else as_tensor(other) * alpha))


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:  # noqa: A002
    """Return ``input - alpha * other``."""
    return wrap(as_tensor(input) - (other if alpha == 1 else as_tensor(other) * alpha))


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:  # noqa: A002
    """Return the quotient; ``rounding_mode`` "floor" or "trunc" rounds it."""
    return wrap(torch.div(as_tensor(input), as_tensor(other), rounding_mode=rounding_mode))


def cast(input: Any, dtype: Any) -> Any:  # noqa: A002
    """Return the values as another dtype; a number as a tensor."""
    return wrap(as_tensor(input).to(to_torch(dtype)))


def select(condition: Any, input: Any, other: Any) -> Any:  # noqa: A002
    """Return ``input`` where the condition holds, ``other`` elsewhere."""
    return wrap(torch.where(condition, as_tensor(input), as_tensor(other)))


def add_n(inputs: Any) -> Any:
    """Return the sum of a list of tensors."""
    total = inputs[0]
    for value in inputs[1:]:
        total = total + value
    return wrap(total)


FUNCTIONS: dict[str, Function] = {
    **{name: wrapped(getattr(torch, name)) for name in _SAME},
    **{name: wrapped(function) for name, function in _OTHER.items()},
    **{name: of_two(function) for name, function in _TWO.items()},
    "add": add,
    "sub": sub,
    "div": div,
    "divide": div,
    "cast": cast,
    "select": select,
    "add_n": add_n,
    "addn": add_n,
}
