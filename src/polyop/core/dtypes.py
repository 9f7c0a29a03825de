"""The dtypes of tensors, one row each.

The order of ``DTYPES`` is fixed: the native core and exported libraries identify a dtype by its position, so
new rows go at the end. ``make golden`` writes the rows into include/polyop/dtypes.h.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from .errors import ArgumentTypeError
from .limits import shown
from .texts import did_you_mean

DTypeLike: TypeAlias = Any
"""A :class:`DType`, its name, a NumPy dtype or type, or a framework's dtype object."""


@dataclass(frozen=True, slots=True)
class DType:
    """An element type. ``str()`` is its name, ``.numpy`` the NumPy dtype. Two are equal if their names are.

    ``dlpack`` is DLPack's (type code, bits). ``c`` is the C type of an element in the memory of loop kernels,
    "" for those that :mod:`polyop.loops` lacks or takes apart. ``tolerance`` is the relative difference that
    another order of the same additions can make. Then the numbers that others have for it: MindSpore's
    ``TypeId`` (0: none), PyTorch's ``ScalarType``, CANN's ``aclDataType``, which is the graph engine's
    ``DataType`` too, ONNX's ``TensorProto.DataType``, XLA's ``PrimitiveType`` (-1: none, or one with
    another layout in memory).
    """

    name: str
    dlpack: tuple[int, int] = field(compare=False)
    kind: str = field(compare=False)
    c: str = field(compare=False)
    tolerance: float = field(compare=False)
    type_id: int = field(compare=False)
    torch: int = field(compare=False)
    cann: int = field(compare=False)
    onnx: int = field(compare=False)
    xla: int = field(compare=False)
    numpy: np.dtype[Any] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Find the NumPy dtype, which has the same name."""
        object.__setattr__(self, "numpy", np.dtype(getattr(ml_dtypes, self.name, self.name)))

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
    #     name               DLPack          kind       C         tolerance  TypeId  torch  CANN  ONNX  XLA
    DType("bool",            (BOOL, 8),      "bool",    "u8",     0.0,          30,    11,   12,    9,   1),
    DType("int8",            (INT, 8),       "int",     "i8",     0.0,          32,     1,    2,    3,   2),
    DType("int16",           (INT, 16),      "int",     "i16",    0.0,          33,     2,    6,    5,   3),
    DType("int32",           (INT, 32),      "int",     "i32",    0.0,          34,     3,    3,    6,   4),
    DType("int64",           (INT, 64),      "int",     "i64",    0.0,          35,     4,    9,    7,   5),
    DType("uint8",           (UINT, 8),      "int",     "u8",     0.0,          37,     0,    4,    2,   6),
    DType("uint16",          (UINT, 16),     "int",     "u16",    0.0,          38,    27,    7,    4,   7),
    DType("uint32",          (UINT, 32),     "int",     "u32",    0.0,          39,    28,    8,   12,   8),
    DType("uint64",          (UINT, 64),     "int",     "u64",    0.0,          40,    29,   10,   13,   9),
    DType("float16",         (FLOAT, 16),    "float",   "f16",    1e-2,         42,     5,    1,   10,  10),
    DType("float32",         (FLOAT, 32),    "float",   "f32",    1e-4,         43,     6,    0,    1,  11),
    DType("float64",         (FLOAT, 64),    "float",   "f64",    1e-8,         44,     7,   11,   11,  12),
    DType("bfloat16",        (BFLOAT, 16),   "float",   "bf16",   5e-2,         45,    15,   27,   16,  16),
    DType("complex64",       (COMPLEX, 64),  "complex", "",       1e-4,         47,     9,   16,   14,  15),
    DType("complex128",      (COMPLEX, 128), "complex", "",       1e-8,         48,    10,   17,   15,  18),
    DType("float8_e4m3fn",   (10, 8),        "float",   "f8e4m3", 0.2,           0,    24,   36,   17,  20),
    DType("float8_e5m2",     (12, 8),        "float",   "f8e5m2", 0.4,           0,    23,   35,   19,  19),
    DType("float8_e4m3fnuz", (11, 8),        "float",   "",       0.2,           0,    26,   -1,   18,  25),
    DType("float8_e5m2fnuz", (13, 8),        "float",   "",       0.4,           0,    25,   -1,   20,  24),
    DType("float8_e8m0fnu",  (14, 8),        "float",   "f8e8m0", 1.0,           0,    44,   37,   -1,  33),
    # of a byte each: DLPack's own has 4 bits, and XLA, ONNX and PyTorch pack two into a byte
    DType("float4_e2m1fn",   (17, 8),        "float",   "f4e2m1", 1.0,           0,    -1,   -1,   -1,  -1),
)  # fmt: skip

ALIASES = {  # another spelling, in lower case -> the name of a row
    "half": "float16", "float": "float32", "single": "float32", "double": "float64",
    "bfloat": "bfloat16", "int": "int32", "uint": "uint32", "long": "int64", "short": "int16",
    "byte": "uint8", "char": "int8", "bool_": "bool", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip

TAKEN = "bool, integers, float4 to float64, bfloat16, complex64, complex128"
"""The dtypes in few words."""

PACKED = "_x2"
"""How PyTorch's names end of dtypes that pack two elements into an item."""

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
    if name.endswith(PACKED):
        rule = f"must have an element of its own in each item, and {name} packs two into a byte"
        hint = "pass the bytes: x.view(torch.uint8); b & 15 and b >> 4 are the words of the two in a byte b"
        return ArgumentTypeError("dtype", rule, shown(value), hint=hint)
    if not isinstance(value, str):
        return ArgumentTypeError("dtype", f"must be one that kernels take: {TAKEN}", shown(value))
    near = did_you_mean(name, [*_BY_NAME, *ALIASES], cutoff=0.7)
    rule = "must be a known name" if near else f"must be one of {', '.join(_BY_NAME)}"
    return ArgumentTypeError("dtype", rule, shown(value), hint=near)


def dtype_of_type_id(number: int) -> DType | None:
    """Return the dtype with this MindSpore ``TypeId``, or None."""
    return _BY_TYPE_ID.get(number)
