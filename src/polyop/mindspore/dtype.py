"""MindSpore's dtypes. Each equals PyTorch's: ``float32 == torch.float32``, but prints as ``Float32``."""

from __future__ import annotations

from typing import Any

import torch

from ..core.dtypes import DType, dtype
from ..core.errors import ArgumentTypeError
from .nearest import missing


class Type:
    """A dtype: ``str()`` gives MindSpore's name, ``.torch`` is PyTorch's object.

    >>> print(float32, float32 == torch.float32, float32 == float16)
    Float32 True False
    """

    __slots__ = ("name", "torch")

    def __init__(self, name: str, kind: Any) -> None:
        self.name, self.torch = name, kind

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"mindspore.{str(self.torch).removeprefix('torch.')}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Type):
            return self.torch is other.torch
        # an out_dtype function of a Custom gets polyop's own dtypes
        return other is self.torch or (isinstance(other, DType) and other.name == self.name.lower())

    def __hash__(self) -> int:
        return hash(self.torch)

    def __reduce__(self) -> Any:
        return from_torch, (self.torch,)


bool_ = Type("Bool", torch.bool)
int8 = Type("Int8", torch.int8)
int16 = Type("Int16", torch.int16)
int32 = Type("Int32", torch.int32)
int64 = Type("Int64", torch.int64)
uint8 = Type("UInt8", torch.uint8)
uint16 = Type("UInt16", torch.uint16)
uint32 = Type("UInt32", torch.uint32)
uint64 = Type("UInt64", torch.uint64)
float16 = Type("Float16", torch.float16)
float32 = Type("Float32", torch.float32)
float64 = Type("Float64", torch.float64)
bfloat16 = Type("BFloat16", torch.bfloat16)
complex64 = Type("Complex64", torch.complex64)
complex128 = Type("Complex128", torch.complex128)

byte, short, long, int_ = int8, int16, int64, int64
half, single, double, float_ = float16, float32, float64, float32

number_type = (
    int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float16, float32, float64, bfloat16, complex64, complex128,
)  # fmt: skip
int_type = (int8, int16, int32, int64)
uint_type = (uint8, uint16, uint32, uint64)
float_type = (float16, float32, float64, bfloat16)

TYPES: dict[Any, Type] = {row.torch: row for row in (bool_, *number_type)}
_PYTHON = {bool: bool_, int: int64, float: float32}


def from_torch(kind: Any) -> Type:
    """Return MindSpore's dtype for PyTorch's; raises ``ArgumentTypeError`` if there is none."""
    row = TYPES.get(kind)
    if row is None:
        raise ArgumentTypeError("dtype", f"must be one of {', '.join(map(str, TYPES.values()))}", kind)
    return row


def to_torch(kind: Any) -> Any:
    """Return PyTorch's dtype for MindSpore's, NumPy's, Python's or a name; None for None.

    Raises ``ArgumentTypeError`` for anything else.

    >>> import numpy as np
    >>> to_torch(float16), to_torch("int32"), to_torch(np.float64), to_torch(float)
    (torch.float16, torch.int32, torch.float64, torch.float32)
    """
    if kind is None or isinstance(kind, torch.dtype):
        return kind
    if isinstance(kind, Type):
        return kind.torch
    if isinstance(kind, type) and kind in _PYTHON:
        return _PYTHON[kind].torch
    return getattr(torch, dtype(kind).name)


def dtype_to_nptype(kind: Any) -> Any:
    """Return the NumPy type of a dtype, such as ``np.float32``."""
    return dtype(kind).numpy.type


def pytype_to_dtype(kind: Any) -> Type:
    """Return the dtype for a Python or NumPy type."""
    return float64 if kind is float else from_torch(to_torch(kind))


def __getattr__(name: str) -> Any:
    raise missing(__name__, name, globals())
