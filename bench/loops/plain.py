"""Run a loop kernel as the Python it is: the meaning that every compiled form is held to."""

from __future__ import annotations

import itertools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np


def plain(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy of the kernel that finds the language's words; the kernel itself is left alone.

    >>> def double(x):
    ...     y = output_tensor(x.shape, x.dtype)
    ...     for i in range(x.shape[0]):
    ...         y[i] = 2 * x[i]
    ...     return y
    >>> plain(double)(np.arange(3))
    array([0, 2, 4])
    """
    return types.FunctionType(
        kernel.__code__,
        {**kernel.__globals__, **WORDS},
        kernel.__name__,
        kernel.__defaults__,
        kernel.__closure__,
    )


def _erf(x: Any) -> Any:
    return np.asarray(math.erf(x), np.result_type(x))[()]


def _zeros(shape: Any, dtype: Any) -> Any:
    return np.zeros(shape, dtype)


def _grid(extents: tuple[int, ...]) -> Any:
    return itertools.product(*map(range, extents))


SAME_AS_NUMPY = (
    *("exp", "log", "sqrt", "tanh", "sin", "cos", "power", "floor", "ceil", "trunc", "expm1", "sign"),
    *("isnan", "isinf", "isfinite", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
)
WORDS: dict[str, Any] = {
    "output_tensor": _zeros,
    "allocate": _zeros,
    "grid": _grid,
    **dict.fromkeys(("serial", "vectorize", "parallel", "reduce"), range),
    **{name: getattr(np, name) for name in SAME_AS_NUMPY},
    "atan": np.arctan,
    "atan2": np.arctan2,
    "erf": _erf,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "ceil_div": lambda a, b: (a + b - 1) // b,
}
