"""PyOpenCL's functions by the names of the array API: for rules that serve every framework.

PyOpenCL has few of them: its sums are over all elements, and it broadcasts numbers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyopencl.array as cl_array
import pyopencl.clmath as cl_math

from . import strided

_OF_MATH = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos", "cosh", "erf", "exp",
    "expm1", "floor", "log", "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
_OF_ARRAYS = (
    "all", "any", "empty_like", "logical_and", "logical_not", "logical_or", "max", "min", "reshape",
    "zeros_like",
)  # fmt: skip


def _of_one_dtype(*values: Any) -> list[Any]:
    """Return arrays and numbers in the dtype that NumPy gives them together; PyOpenCL refuses to mix dtypes.

    A number of NumPy counts as one of Python: a float64 would widen float32, which a device may have alone.
    """
    kinds = [v.item() if isinstance(v, np.generic) else getattr(v, "dtype", v) for v in values]
    kind = np.result_type(*kinds)
    return [kind.type(v) if np.isscalar(v) else v if v.dtype == kind else v.astype(kind) for v in values]


def _where(condition: Any, x: Any, y: Any) -> Any:
    """Return ``if_positive``, in which numbers become arrays like the other one."""
    x, y = _of_one_dtype(x, y)
    like = y if np.isscalar(x) else x
    x, y = (cl_array.empty_like(like).fill(v) if np.isscalar(v) else v for v in (x, y))
    return cl_array.if_positive(condition, x, y)


def _sum(x: Any, dtype: Any = None) -> Any:
    """Return ``sum`` in the dtype of NumPy's: in that of the elements, 300 ones of int8 are 44."""
    kind = np.empty(0, x.dtype).sum().dtype if dtype is None else np.dtype(dtype)
    return cl_array.sum(x.view(np.uint8) if x.dtype == bool else x, dtype=kind)


def _dense(x: Any) -> Any:
    """Return an array in C order: PyOpenCL's functions go through memory, whatever the strides are."""
    return strided.for_function(x.queue, x)


def _stack(parts: Sequence[Any], axis: int = 0) -> Any:
    """Return ``stack`` along any axis: PyOpenCL's own puts no arrays between others."""
    result = cl_array.stack([_dense(part) for part in _of_one_dtype(*parts)])
    order = list(range(1, result.ndim))
    order.insert(axis % result.ndim, 0)
    return _permute_dims(result, order)


def _permute_dims(x: Any, axes: Sequence[int]) -> Any:
    return _dense(x.transpose(axes))


def _matrix_transpose(x: Any) -> Any:
    *others, rows, columns = range(x.ndim)
    return _permute_dims(x, (*others, columns, rows))


_OTHER: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "astype": lambda x, kind: x.astype(kind),
    "conj": lambda x: x.conj(),
    "concat": lambda parts, axis=0: cl_array.concatenate(_of_one_dtype(*parts), axis),
    "imag": lambda x: x.imag,
    "maximum": lambda x, y: cl_array.maximum(*_of_one_dtype(x, y)),
    "minimum": lambda x, y: cl_array.minimum(*_of_one_dtype(x, y)),
    "matrix_transpose": _matrix_transpose,
    "ones_like": lambda x: cl_array.empty_like(x).fill(1),
    "permute_dims": _permute_dims,
    "round": cl_math.rint,  # to even numbers, as NumPy does
    "real": lambda x: x.real,
    "stack": _stack,
    "sum": _sum,
    "where": _where,
}
"""What PyOpenCL has under another name, or with another meaning."""


class _Namespace:
    """The functions, as attributes."""

    def __getattr__(self, name: str) -> Any:
        if name in _OTHER:
            return _OTHER[name]
        if name not in (*_OF_MATH, *_OF_ARRAYS):
            known = ", ".join(sorted((*_OF_MATH, *_OF_ARRAYS, *_OTHER)))
            raise AttributeError(f"PyOpenCL has no {name}: write it as an operator; there are {known}")
        return getattr(cl_math if name in _OF_MATH else cl_array, name)


NAMESPACE = _Namespace()
