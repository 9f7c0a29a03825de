"""``DataType``: the pairs of dtype and format in the rows of operator information."""

from __future__ import annotations

import difflib
from typing import Any, Final, TypeAlias

Member: TypeAlias = tuple[str, str] | tuple[str, str, str]
"""A dtype, a format and, for several tensors, "tuple" or "list"."""

SUFFIXES: Final[dict[str, tuple[str, ...]]] = {  # end of a member's name -> format [, container]
    "None": ("",),
    "Default": ("DefaultFormat",),
    "5HD": ("NC1HWC0",),
    "FracZ": ("FRACTAL_Z",),
    "FracNZ": ("FRACTAL_NZ",),
    "C1HWNCoC0": ("C1HWNCoC0",),
    "NCHW": ("NCHW",),
    "NHWC": ("NHWC",),
    "HWCN": ("HWCN",),
    "NDHWC": ("NDHWC",),
    "ChannelLast": ("ChannelLast",),
    "Default_Tuple": ("DefaultFormat", "tuple"),
    "Default_List": ("DefaultFormat", "list"),
    "NCDHW": ("NCDHW",),
    "NDC1HWC0": ("NDC1HWC0",),
    "NC1HWC0": ("NC1HWC0",),
    "DHWCN": ("DHWCN",),
    "FRACTAL_Z_3D": ("FRACTAL_Z_3D",),
    "FracZNLSTM": ("FRACTAL_ZN_LSTM",),
    "FracZNRNN": ("FRACTAL_ZN_RNN",),
    "ND_RNNBIAS": ("ND_RNN_BIAS",),
}

_ALL: Final = tuple(SUFFIXES)[:13]
_BYTE: Final = (*_ALL, "NCDHW", "NDC1HWC0", "NC1HWC0")
_FLOAT: Final = (
    *_ALL, "NCDHW", "DHWCN", "NDC1HWC0", "FRACTAL_Z_3D", "FracZNLSTM", "FracZNRNN", "ND_RNNBIAS",
)  # fmt: skip
_COMPLEX: Final = ("Default", "Default_Tuple")

PREFIXES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {  # start of the name -> dtype, its suffixes
    "None": ("", ("None", "Default")),
    "BOOL": ("bool", _ALL),
    "I8":   ("int8", _BYTE),
    "U8":   ("uint8", _BYTE),
    "I16":  ("int16", _ALL),
    "U16":  ("uint16", _ALL),
    "I32":  ("int32", (*_ALL, "NDC1HWC0", "NCDHW")),
    "U32":  ("uint32", _ALL),
    "I64":  ("int64", _ALL),
    "U64":  ("uint64", _ALL),
    "F16":  ("float16", _FLOAT),
    "F32":  ("float32", _FLOAT),
    "F64":  ("float64", _ALL),
    "BF16": ("bfloat16", _FLOAT),
    "C64":  ("complex64", _COMPLEX),
    "C128": ("complex128", _COMPLEX),
}  # fmt: skip

MEMBERS: Final[dict[str, tuple[str, ...]]] = {
    f"{prefix}_{suffix}": (name, *SUFFIXES[suffix])
    for prefix, (name, suffixes) in PREFIXES.items()
    for suffix in suffixes
}
"""Every member by its name."""


class _Table(type):
    """The type of ``DataType``: makes the members attributes of the class, so that completion lists them."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _Table:
        return super().__new__(cls, name, bases, {**namespace, **MEMBERS})

    def __getattr__(cls, name: str) -> Member:
        near = difflib.get_close_matches(name, MEMBERS, n=4) or list(MEMBERS)[:4]
        raise AttributeError(f"DataType has no member {name!r}; the nearest are {', '.join(near)}")


class DataType(metaclass=_Table):
    """Cells for ``CustomRegOp.dtype_format``: the 204 members ``DataType.<dtype>_<format>``.

    ``None`` as a dtype or format means any. polyop's tensors are dense and row-major; the formats ``None``,
    ``Default``, ``NCHW`` and ``NCDHW`` accept them.

    >>> DataType.F32_Default
    ('float32', 'DefaultFormat')
    >>> DataType.I32_Default_List
    ('int32', 'DefaultFormat', 'list')

    An unknown member raises ``AttributeError`` with the nearest names.
    """
