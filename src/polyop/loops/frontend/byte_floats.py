"""What an element of a float8 or float4 tensor means in Python: a number of float32.

The scalars of ml_dtypes round each product and each sum to their dtype. Nobody computes in this way: floats
of one byte are for memory. So plain Python sees arrays of them as :class:`ByteFloats`, and compiled code
reads their elements alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.types import BYTE_FLOATS


class ByteFloats(np.ndarray[Any, Any]):
    """A view of an array of such floats: its elements, and what is computed from it, are float32.

    >>> import ml_dtypes
    >>> x = as_byte_floats(np.array([300, 0.1], ml_dtypes.float8_e4m3fn))
    >>> float(x[0] * x[0]), (x + x).dtype
    (82944.0, dtype('float32'))
    >>> x[1] = 0.3
    >>> float(x[1])
    0.3125
    """

    def __getitem__(self, index: Any) -> Any:
        """Return an element as a float32, or a part of the array."""
        part = super().__getitem__(index)
        return part if isinstance(part, np.ndarray) and part.ndim else np.float32(part)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Round a number, or a row, to float32 and then to the dtype."""
        super().__setitem__(index, np.asarray(value).astype(np.float32).astype(self.dtype))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        """Compute in float32; what an operation writes in place is rounded, as an assignment is."""
        outputs = named.pop("out", ())
        result = getattr(ufunc, method)(*map(numbers, inputs), **named)
        if not outputs:
            return result
        for output, value in zip(outputs, result if isinstance(result, tuple) else (result,), strict=True):
            output[...] = value
        return outputs[0] if len(outputs) == 1 else outputs

    def __array_function__(self, function: Callable[..., Any], types: Any, inputs: Any, named: Any) -> Any:
        """Compute in float32."""
        del types
        return function(*map(numbers, inputs), **named)


def as_byte_floats(value: Any) -> Any:
    """Return an array of floats of one byte as :class:`ByteFloats`, and any other value as it is."""
    is_byte_float = isinstance(value, np.ndarray) and value.dtype.name in BYTE_FLOATS
    return value.view(ByteFloats) if is_byte_float else value


def as_array(value: Any) -> Any:
    """Return a :class:`ByteFloats` as an array of NumPy, and any other value as it is."""
    return value.view(np.ndarray) if isinstance(value, ByteFloats) else value


def numbers(value: Any) -> Any:
    """Return a :class:`ByteFloats` in float32, and any other value as it is."""
    return value.view(np.ndarray).astype(np.float32) if isinstance(value, ByteFloats) else value
