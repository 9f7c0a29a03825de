"""The dtypes of tensors, one row each.

The order of ``DTYPES`` is fixed: the native core identifies a dtype by its position, so new rows go at the
end. ``type_id`` is the dtype's number in MindSpore's ``TypeId`` (0: it has none), which C++ ``InferType``
functions receive and return.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from .errors import ArgumentTypeError
from .limits import shown
from .nearest import did_you_mean

DTypeLike: TypeAlias = Any
"""A :class:`DType`, its name, a NumPy dtype or type, or a framework's dtype object."""


@dataclass(frozen=True, slots=True)
class DType:
    """An element type. ``str()`` is its name, ``.numpy`` the NumPy dtype.

    ``dlpack`` is DLPack's (type code, bits). Two dtypes are equal if their names are.
    """

    name: str
    numpy: np.dtype[Any] = field(compare=False)
    dlpack: tuple[int, int] = field(compare=False)
    type_id: int = field(compare=False)
    kind: str = field(compare=False)

    def __str__(self) -> str:
        """Return the name, as kernels get it in their ``dtypes`` argument."""
        return self.name

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes."""
        return int(self.numpy.itemsize)

    @property
    def is_floating(self) -> bool:
        """Whether tensors of this dtype can have a gradient: floating or complex."""
        return self.kind in ("float", "complex")


INT, UINT, FLOAT, BFLOAT, COMPLEX, BOOL = 0, 1, 2, 4, 5, 6  # DLPack type codes

DTYPES: tuple[DType, ...] = (
    #     name                numpy                              DLPack         TypeId  kind
    DType("bool",            np.dtype(np.bool_),                (BOOL, 8),       30, "bool"),
    DType("int8",            np.dtype(np.int8),                 (INT, 8),        32, "int"),
    DType("int16",           np.dtype(np.int16),                (INT, 16),       33, "int"),
    DType("int32",           np.dtype(np.int32),                (INT, 32),       34, "int"),
    DType("int64",           np.dtype(np.int64),                (INT, 64),       35, "int"),
    DType("uint8",           np.dtype(np.uint8),                (UINT, 8),       37, "int"),
    DType("uint16",          np.dtype(np.uint16),               (UINT, 16),      38, "int"),
    DType("uint32",          np.dtype(np.uint32),               (UINT, 32),      39, "int"),
    DType("uint64",          np.dtype(np.uint64),               (UINT, 64),      40, "int"),
    DType("float16",         np.dtype(np.float16),              (FLOAT, 16),     42, "float"),
    DType("float32",         np.dtype(np.float32),              (FLOAT, 32),     43, "float"),
    DType("float64",         np.dtype(np.float64),              (FLOAT, 64),     44, "float"),
    DType("bfloat16",        np.dtype(ml_dtypes.bfloat16),      (BFLOAT, 16),    45, "float"),
    DType("complex64",       np.dtype(np.complex64),            (COMPLEX, 64),   47, "complex"),
    DType("complex128",      np.dtype(np.complex128),           (COMPLEX, 128),  48, "complex"),
    DType("float8_e4m3fn",   np.dtype(ml_dtypes.float8_e4m3fn), (10, 8),          0, "float"),
    DType("float8_e5m2",     np.dtype(ml_dtypes.float8_e5m2),   (12, 8),          0, "float"),
    DType("float8_e4m3fnuz", np.dtype(ml_dtypes.float8_e4m3fnuz), (11, 8),        0, "float"),
    DType("float8_e5m2fnuz", np.dtype(ml_dtypes.float8_e5m2fnuz), (13, 8),        0, "float"),
    DType("float8_e8m0fnu",  np.dtype(ml_dtypes.float8_e8m0fnu), (14, 8),         0, "float"),
)  # fmt: skip

ALIASES = {  # another spelling, in lower case -> the name of a row
    "half": "float16", "float": "float32", "single": "float32", "double": "float64",
    "bfloat": "bfloat16", "int": "int32", "uint": "uint32", "long": "int64", "short": "int16",
    "byte": "uint8", "char": "int8", "bool_": "bool", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip

TAKEN = "bool, integers, float8 to float64, bfloat16, complex64, complex128"
"""The dtypes in few words."""

_BY_NAME = {row.name: row for row in DTYPES}
_BY_NUMPY = {row.numpy: row for row in DTYPES}
_BY_TYPE_ID = {row.type_id: row for row in DTYPES if row.type_id}
_PYTHON = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


def dtype(value: DTypeLike) -> DType:
    """Return the row for a dtype in any framework's spelling.

    >>> dtype("float32") is dtype(np.float32) is dtype("torch.float32")
    True

    Raises ``ArgumentTypeError`` for anything else.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in _PYTHON:
        return _BY_NAME[_PYTHON[value]]
    if isinstance(value, (np.dtype, type)):
        try:
            row = _BY_NUMPY.get(np.dtype(value).newbyteorder("="))
        except TypeError:
            row = None
        if row is not None:
            return row
    # torch.float32, mindspore's Float32 and jax.numpy.float32 all end in the name
    no_dtype = isinstance(value, (list, tuple, dict, set, int, float))  # their str() may be very long
    name = "" if no_dtype else str(getattr(value, "__name__", None) or value)
    name = name.rsplit(".", 1)[-1].lower()
    row = _BY_NAME.get(ALIASES.get(name, name))
    if row is None:
        raise _unknown(value, name)
    return row


def _unknown(value: Any, name: str) -> ArgumentTypeError:
    """Return the error for a value that names no dtype of kernels."""
    if not isinstance(value, str):
        return ArgumentTypeError("dtype", f"must be one that kernels take: {TAKEN}", shown(value))
    near = did_you_mean(name, [*_BY_NAME, *ALIASES], cutoff=0.7)
    rule = "must be a known name" if near else f"must be one of {', '.join(_BY_NAME)}"
    return ArgumentTypeError("dtype", rule, shown(value), hint=near)


def dtype_of_type_id(number: int) -> DType | None:
    """Return the dtype with this MindSpore ``TypeId``, or None."""
    return _BY_TYPE_ID.get(number)
