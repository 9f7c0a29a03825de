"""The function behind ``EXEC_NPU_CMD`` of ``pytorch_npu_helper.hpp`` in rehearsal.

The header imports this module at its first call, and calls the C function at ``ADDRESS`` with the
structures of ``include/polyop/npu``.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ...call.host import load
from ...core.dtypes import DTYPES, DType
from ...core.errors import UnsupportedError
from ...core.untraced import untraced
from . import registry
from .arguments import match
from .rehearsal import ascend
from .row import Row
from .run import launch, run

load("torch")  # registers the functions that PyTorch's compiler must not trace

SAMPLES = {
    row.name: row
    for row in (Row("aclnnAddCustom(Tensor x, Tensor y, Tensor(a!) z) -> ()", lambda xp, x, y: x + y),)
}
"""Operators of CANN's tutorials, which its library lacks. An author's operator of the same name wins."""

_DTYPES = {row.name: row for row in DTYPES}


class _Value(ctypes.Structure):
    """One argument: ``polyop::npu::Value`` in C++."""


_Value._fields_ = [
    ("kind", ctypes.c_int64),
    ("whole", ctypes.c_int64),
    ("number", ctypes.c_double),
    ("imaginary", ctypes.c_double),
    ("data", ctypes.c_void_p),
    ("count", ctypes.c_int64),
    ("sizes", ctypes.POINTER(ctypes.c_int64)),
    ("strides", ctypes.POINTER(ctypes.c_int64)),
    ("dtype", ctypes.c_char_p),
]


def _tensor(value: Any) -> np.ndarray[Any, Any]:
    """Return an array over the tensor's memory."""
    kind = _dtype(value).numpy
    shape, steps = tuple(value.sizes[: value.count]), value.strides[: value.count]
    if 0 in shape:
        return np.empty(shape, kind)
    extent = 1 + sum((size - 1) * step for size, step in zip(shape, steps, strict=True))
    memory = (ctypes.c_char * (extent * kind.itemsize)).from_address(value.data)
    array: np.ndarray[Any, Any] = np.ndarray(
        shape, kind, memory, strides=[step * kind.itemsize for step in steps]
    )
    return array


def _list(value: Any) -> list[Any]:
    items = ctypes.cast(value.data, ctypes.POINTER(_Value))
    return [_read(items[i]) for i in range(value.count)]


def _dtype(value: Any) -> DType:
    name = value.dtype.decode()
    if name not in _DTYPES:
        raise UnsupportedError(f"dtype {name}", "has no counterpart in rehearsal")
    return _DTYPES[name]


_KINDS = (  # in the order of polyop::npu::Kind
    lambda value: None,
    _tensor,
    _list,
    lambda value: value.whole,
    lambda value: value.number,
    lambda value: bool(value.whole),
    lambda value: ctypes.string_at(value.data, value.count).decode(),
    _dtype,
    lambda value: complex(value.number, value.imaginary),
)


def _read(value: Any) -> Any:
    return _KINDS[value.kind](value)


def _execute(name: str, arguments: list[Any]) -> None:
    ascend(above=2)  # checks POLYOP_ASCEND; the warning names the line that called C++
    if name in SAMPLES and not registry.known(name):
        run(SAMPLES[name], match(SAMPLES[name], arguments))
    else:
        launch(name, arguments)


@untraced
def _entry(name: bytes, values: Any, count: int, message: int, capacity: int) -> int:
    """Return 0, or 1 with the error's text in ``message``: no exception may pass through C++."""
    try:
        _execute(name.decode(), [_read(values[i]) for i in range(count)])
    except BaseException as problem:  # noqa: BLE001 - C++ raises every error again, an interrupt too
        text = str(problem) or type(problem).__name__
        # cut to the capacity, without half a character at the end
        encoded = text.encode()[: capacity - 1].decode(errors="ignore").encode()
        ctypes.memmove(message, encoded + b"\0", len(encoded) + 1)
        return 1
    return 0


_ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_Value), ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64
)(_entry)

ADDRESS: int = ctypes.cast(_ENTRY, ctypes.c_void_p).value or 0
"""The address of the entry, which C++ reads."""
