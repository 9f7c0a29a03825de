"""Paddle's functions by the names of the array API: for rules that serve every framework.

A name that is in no table here is Paddle's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle

from ...core.dtypes import dtype

_NAMES = {
    "bitwise_invert": "bitwise_not",
    "cumulative_prod": "cumprod",
    "cumulative_sum": "cumsum",
    "expand_dims": "unsqueeze",
    "greater": "greater_than",
    "less": "less_than",
    "permute_dims": "transpose",
    "repeat": "repeat_interleave",
    "take": "index_select",
}
"""Names of the array API, and Paddle's."""

_KEYWORDS = {"axes": "perm", "keepdims": "keepdim"}
"""Keywords of the array API, and Paddle's; ``tensordot`` has ``axes`` in both."""

_REDUCTIONS = {"all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "sum"}
_KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f"}


def _isdtype(kind: Any, name: str) -> bool:
    return dtype(kind).numpy.kind in _KINDS[name]


def _astype(x: Any, kind: Any) -> Any:
    return x.astype(kind)


def _where(condition: Any, x: Any, y: Any) -> Any:
    """Return ``paddle.where``, in which a number takes the dtype of the tensor beside it."""
    tensor = x if isinstance(y, (bool, int, float)) else y
    x, y = (paddle.full([], v, tensor.dtype) if np.isscalar(v) else v for v in (x, y))
    return paddle.where(condition, x, y)


def _spread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return Paddle's ``var`` or ``std`` with the divisor n - correction, where Paddle has n - 1."""

    def call(x: Any, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
        if axis == () or correction not in (0, 1):
            raise ValueError("Paddle's var and std take the corrections 0 and 1, and at least one axis")
        return function(x, axis, unbiased=correction == 1, keepdim=keepdims)

    return call


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, **keywords: Any) -> Any:
        if keywords.get("axis") == ():  # all axes, to Paddle
            raise ValueError("in Paddle at least one axis is reduced: leave the call out for axis=()")
        return function(x, **_renamed(keywords))

    return call


def _renamed(keywords: dict[str, Any]) -> dict[str, Any]:
    return {_KEYWORDS.get(name, name): value for name, value in keywords.items()}


_OTHER: dict[str, Any] = {
    "asarray": paddle.to_tensor,
    "astype": _astype,
    "isdtype": _isdtype,
    "matrix_transpose": lambda x: x.mT,
    "std": _spread(paddle.std),
    "tensordot": paddle.tensordot,
    "var": _spread(paddle.var),
    "where": _where,
}
"""What Paddle has with another meaning, or not at all."""


class _Namespace:
    """The functions, as attributes."""

    def __getattr__(self, name: str) -> Any:
        if name in _OTHER:
            return _OTHER[name]
        found = getattr(paddle, _NAMES.get(name, name))
        if name in _REDUCTIONS:
            return _reduction(found)
        if name not in _NAMES:
            return found
        return lambda *arguments, **keywords: found(*arguments, **_renamed(keywords))


NAMESPACE = _Namespace()
