"""Objects of CANN's C interface: from Python values to ``aclTensor`` and its relatives, and back."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from ...core.dtypes import DType, dtype
from ...core.errors import LibraryError, UnsupportedError
from ...core.schema import Argument

DTYPES: dict[str, int] = {  # dtype to aclDataType
    "float32": 0, "float16": 1, "int8": 2, "int32": 3, "uint8": 4, "int16": 6, "uint16": 7, "uint32": 8,
    "int64": 9, "uint64": 10, "float64": 11, "bool": 12, "complex64": 16, "complex128": 17, "bfloat16": 27,
    "float8_e5m2": 35, "float8_e4m3fn": 36, "float8_e8m0fnu": 37,
}  # fmt: skip

FORMAT_ND = 2

C_FLOAT = {("aclnnNanToNum", "nan"), ("aclnnNanToNum", "posinf"), ("aclnnNanToNum", "neginf"),
           ("aclnnInplaceNanToNum", "nan"), ("aclnnInplaceNanToNum", "posinf"),
           ("aclnnInplaceNanToNum", "neginf"), ("aclnnSmoothL1Loss", "beta")}  # fmt: skip
"""Attributes that are ``float`` in C; all others are ``double``."""

_SCALARS: tuple[tuple[type, Any, str], ...] = (
    (bool, ctypes.c_bool, "bool"),
    (int, ctypes.c_int64, "int64"),
    (float, ctypes.c_double, "float64"),
)
_ARRAYS: dict[str, tuple[str, Any]] = {  # base type of a list to the object's name and its items
    "int": ("IntArray", ctypes.c_int64),
    "bool": ("BoolArray", ctypes.c_bool),
    "float": ("FloatArray", ctypes.c_float),
}


class Symbols:
    """Functions by name in several libraries, the first that has one wins."""

    def __init__(self, libraries: Sequence[ctypes.CDLL], subject: str) -> None:
        """Search ``libraries`` in order; ``subject`` is named in errors."""
        self.libraries, self.subject = tuple(libraries), subject

    def find(self, name: str) -> Any | None:
        """Return the function, or None."""
        found = (getattr(library, name, None) for library in self.libraries)
        return next((function for function in found if function is not None), None)

    def get(self, name: str, result: Any = ctypes.c_int) -> Any:
        """Return the function with its result type; raises ``LibraryError``."""
        found = self.find(name)
        if found is None:
            hint = "link it with the library that has it (libnnopbase.so of CANN has aclCreateTensor)"
            raise LibraryError(
                self.subject, f"has no function {name}, and nothing that it is linked with", hint=hint
            )
        found.restype = result
        return found


class Memory(Protocol):
    """Where the operator's tensors are: in the caller's memory, or on a device."""

    def address(self, array: np.ndarray[Any, Any]) -> int:
        """Return where the operator finds the array."""

    def workspace(self, size: int) -> int:
        """Return the address of ``size`` bytes that live until the call is over."""

    def finish(self, written: Sequence[np.ndarray[Any, Any]], stream: int | None) -> None:
        """Wait for the operator and bring the arrays that it wrote back."""

    def release(self) -> None:
        """Free what was allocated."""


class HostMemory:
    """The caller's own memory: arrays are passed as they are."""

    def __init__(self) -> None:
        """Nothing is allocated yet."""
        self._kept: list[Any] = []

    def address(self, array: np.ndarray[Any, Any]) -> int:
        """Return the array's own address."""
        return int(array.ctypes.data)

    def workspace(self, size: int) -> int:
        """Return the address of fresh bytes."""
        self._kept.append(np.empty(size, np.uint8))
        return int(self._kept[-1].ctypes.data)

    def finish(self, written: Sequence[np.ndarray[Any, Any]], stream: int | None) -> None:
        """Nothing is to be done: the second phase has written the arrays."""

    def release(self) -> None:
        """Drop the workspaces."""
        self._kept.clear()


class Objects:
    """The objects of one call; ``of`` makes one, leaving the context destroys all."""

    def __init__(self, name: str, symbols: Symbols, memory: Memory) -> None:
        """Make objects for the operator ``name``."""
        self.name, self.symbols, self.memory = name, symbols, memory
        self._made: list[tuple[str, int]] = []
        self._kept: list[Any] = []
        self._copies: list[tuple[Any, Any]] = []
        self.written: list[Any] = []

    @contextmanager
    def alive(self) -> Iterator[Objects]:
        """Destroy the objects at the end, and write arrays back that were passed as copies."""
        try:
            yield self
            for array, copy in self._copies:
                array[...] = copy
        finally:
            for kind, made in reversed(self._made):
                self.symbols.get(f"aclDestroy{kind}")(ctypes.c_void_p(made))
            self.memory.release()

    def of(self, argument: Argument, value: Any) -> Any:
        """Return the C argument for a value; an absent one is a null pointer."""
        if value is None:
            return ctypes.c_void_p(None)
        kind = argument.type
        if kind.is_tensor and kind.is_list:
            return self._tensor_list(value, kind.writes)
        if kind.is_tensor:
            return ctypes.c_void_p(self._own("Tensor", self._tensor(value, kind.writes)))
        if kind.is_list:
            return self._array(argument, value)
        return self._plain_value(argument, value)

    def _plain_value(self, argument: Argument, value: Any) -> Any:
        base = argument.type.base
        if base == "Scalar":
            return self._scalar(value)
        if isinstance(value, DType):
            return ctypes.c_int32(acl_dtype(value))
        if base == "str":
            return ctypes.c_char_p(self._keep(value.encode()))
        if base == "float" and (self.name, argument.name) in C_FLOAT:
            return ctypes.c_float(value)
        return {"bool": ctypes.c_bool, "float": ctypes.c_double}.get(base, ctypes.c_int64)(value)

    def _keep(self, value: Any) -> Any:
        self._kept.append(value)
        return value

    def _create(self, kind: str, *arguments: Any) -> int:
        made = self.symbols.get(f"aclCreate{kind}", ctypes.c_void_p)(*arguments)
        if not made:
            raise LibraryError(self.name, f"aclCreate{kind} gave no object", hint=recent_error(self.symbols))
        return int(made)

    def _own(self, kind: str, made: int) -> int:
        self._made.append((kind, made))
        return made

    def _tensor(self, array: np.ndarray[Any, Any], writes: bool) -> int:
        given = array
        if not _plain(array):
            array = np.array(array, order="C")
            if writes:
                self._copies.append((given, array))
        self._keep(array)
        if writes:
            self.written.append(array)
        address = self.memory.address(array)
        host = isinstance(self.memory, HostMemory)
        strides = [s // array.itemsize for s in array.strides] if host else _dense(array.shape)
        extent = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True)) if array.size else 0
        dims, steps, storage = _int64s(array.shape), _int64s(strides), _int64s([extent])
        rank, number = ctypes.c_uint64(array.ndim), ctypes.c_int32(acl_dtype(dtype(array.dtype)))
        return self._create(
            "Tensor", dims, rank, number, steps, ctypes.c_int64(0), ctypes.c_int32(FORMAT_ND),
            storage, ctypes.c_uint64(1), ctypes.c_void_p(address),
        )  # fmt: skip

    def _tensor_list(self, arrays: Sequence[Any], writes: bool) -> Any:
        made = [None if a is None else self._tensor(a, writes) for a in arrays]
        items = self._keep((ctypes.c_void_p * len(made))(*made))
        # the list owns its tensors
        return ctypes.c_void_p(
            self._own("TensorList", self._create("TensorList", items, ctypes.c_uint64(len(made))))
        )

    def _array(self, argument: Argument, values: Sequence[Any]) -> Any:
        found = _ARRAYS.get(argument.type.base)
        if found is None:
            rule = (
                f"has an argument {argument.name} of type {argument.type}, which no two-phase function takes"
            )
            raise UnsupportedError(self.name, rule)
        kind, item = found
        items = self._keep((item * len(values))(*values))
        return ctypes.c_void_p(self._own(kind, self._create(kind, items, ctypes.c_uint64(len(values)))))

    def _scalar(self, value: Any) -> Any:
        made, name = next((c(value), name) for kind, c, name in _SCALARS if isinstance(value, kind))
        created = self._create("Scalar", ctypes.byref(self._keep(made)), ctypes.c_int32(DTYPES[name]))
        return ctypes.c_void_p(self._own("Scalar", created))


def acl_dtype(row: DType) -> int:
    """Return the number of a dtype in CANN's enumeration; raises ``UnsupportedError``."""
    if row.name not in DTYPES:
        raise UnsupportedError("aclnn", f"has no dtype {row}", hint=f"it has {', '.join(DTYPES)}")
    return DTYPES[row.name]


def recent_error(symbols: Symbols) -> str | None:
    """Return what CANN says of its last error, or None."""
    message: Callable[[], bytes | None] | None = symbols.find("aclGetRecentErrMsg")
    if message is None:
        return None
    message.restype = ctypes.c_char_p  # type: ignore[attr-defined] # a function of ctypes
    text = message()
    return text.decode(errors="replace").strip() or None if text else None


def _plain(array: np.ndarray[Any, Any]) -> bool:
    """Whether strides are whole elements and forward: others CANN cannot be told."""
    return all(s >= 0 and s % array.itemsize == 0 for s in array.strides) and array.dtype.isnative


def _dense(shape: Sequence[int]) -> list[int]:
    """Return the strides of a dense array, in elements."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _int64s(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values)
