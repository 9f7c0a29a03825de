"""Objects of CANN's C interface (``aclTensor``, ``aclScalar`` ...), made from Python values."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

import numpy as np

from ...core.dtypes import DTYPES, DType, dtype
from ...core.errors import LibraryError, UnsupportedError
from ...core.schema import Argument

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
_ARRAYS: dict[str, tuple[str, Any]] = {  # base type of a list: (object's name, C type of an item)
    "int": ("IntArray", ctypes.c_int64),
    "bool": ("BoolArray", ctypes.c_bool),
    "float": ("FloatArray", ctypes.c_float),
}


class Symbols:
    """Functions looked up by name in several libraries, in order."""

    def __init__(self, libraries: Sequence[ctypes.CDLL], subject: str) -> None:
        """Search ``libraries`` in order; ``subject`` is named in errors."""
        self.libraries, self.subject = tuple(libraries), subject

    def find(self, name: str) -> Any | None:
        """Return the function, or None."""
        functions = (getattr(library, name, None) for library in self.libraries)
        return next((function for function in functions if function is not None), None)

    def get(self, name: str, result: Any = ctypes.c_int) -> Any:
        """Return the function with its result type; raises ``LibraryError``."""
        function = self.find(name)
        if function is None:
            hint = "link it with the library that has it (libnnopbase.so of CANN has aclCreateTensor)"
            raise LibraryError(
                self.subject, f"has no function {name}, and nothing that it is linked with", hint=hint
            )
        function.restype = result
        return function


Written: TypeAlias = "tuple[np.ndarray[Any, Any], int]"
"""An array that the operator writes, and the address that it got: an array passed twice may have two."""


class Memory(Protocol):
    """The memory that holds an operator's tensors: the caller's, or a device's."""

    def address(self, array: np.ndarray[Any, Any]) -> int:
        """Return the address that the operator gets for the array."""

    def workspace(self, size: int) -> int:
        """Return the address of ``size`` bytes that live until the end of the call."""

    def finish(self, written: Sequence[Written], stream: int | None) -> None:
        """Wait for the operator and copy the arrays that it wrote back to the caller's."""

    def release(self) -> None:
        """Free what was allocated."""


class HostMemory:
    """The caller's memory: arrays are passed by their address."""

    def __init__(self) -> None:
        """Start without workspaces."""
        self._workspaces: list[Any] = []

    def address(self, array: np.ndarray[Any, Any]) -> int:
        """Return the array's own address."""
        return int(array.ctypes.data)

    def workspace(self, size: int) -> int:
        """Return the address of new bytes."""
        self._workspaces.append(np.empty(size, np.uint8))
        return int(self._workspaces[-1].ctypes.data)

    def finish(self, written: Sequence[Written], stream: int | None) -> None:
        """Do nothing: the second phase has written the arrays."""

    def release(self) -> None:
        """Drop the workspaces."""
        self._workspaces.clear()


class Objects:
    """The C objects of one call. ``of`` makes one; the end of ``alive`` destroys all."""

    def __init__(self, name: str, symbols: Symbols, memory: Memory) -> None:
        """Make objects for the operator ``name``."""
        self.name, self.symbols, self.memory = name, symbols, memory
        self._created: list[tuple[str, int]] = []  # (kind, address), destroyed in reverse order
        self._references: list[Any] = []  # Python objects whose memory C reads
        self._copies: list[tuple[Any, Any]] = []  # (array, the dense copy passed in its place)
        self.written: list[Written] = []

    @contextmanager
    def alive(self) -> Iterator[Objects]:
        """Write back arrays that were passed as copies, and destroy the objects at the end."""
        try:
            yield self
            for array, copy in self._copies:
                array[...] = copy
        finally:
            for kind, address in reversed(self._created):
                self.symbols.get(f"aclDestroy{kind}")(ctypes.c_void_p(address))
            self.memory.release()

    def of(self, argument: Argument, value: Any) -> Any:
        """Return the C argument for a value; None becomes a null pointer."""
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
        self._references.append(value)
        return value

    def _create(self, kind: str, *arguments: Any) -> int:
        address = self.symbols.get(f"aclCreate{kind}", ctypes.c_void_p)(*arguments)
        if not address:
            raise LibraryError(self.name, f"aclCreate{kind} gave no object", hint=recent_error(self.symbols))
        return int(address)

    def _own(self, kind: str, address: int) -> int:
        self._created.append((kind, address))
        return address

    def _tensor(self, array: np.ndarray[Any, Any], writes: bool) -> int:
        original = array
        if not _is_expressible(array):
            array = np.array(array, order="C")
            if writes:
                self._copies.append((original, array))
        self._keep(array)
        address = self.memory.address(array)
        if writes:
            self.written.append((array, address))
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
        tensors = [None if a is None else self._tensor(a, writes) for a in arrays]
        items = self._keep((ctypes.c_void_p * len(tensors))(*tensors))
        # the list owns its tensors
        return ctypes.c_void_p(
            self._own("TensorList", self._create("TensorList", items, ctypes.c_uint64(len(tensors))))
        )

    def _array(self, argument: Argument, values: Sequence[Any]) -> Any:
        row = _ARRAYS.get(argument.type.base)
        if row is None:
            rule = (
                f"has an argument {argument.name} of type {argument.type}, which no two-phase function takes"
            )
            raise UnsupportedError(self.name, rule)
        kind, item = row
        items = self._keep((item * len(values))(*values))
        return ctypes.c_void_p(self._own(kind, self._create(kind, items, ctypes.c_uint64(len(values)))))

    def _scalar(self, value: Any) -> Any:
        number, name = next(
            (c_type(value), name) for kind, c_type, name in _SCALARS if isinstance(value, kind)
        )
        address = self._create("Scalar", ctypes.byref(self._keep(number)), ctypes.c_int32(dtype(name).cann))
        return ctypes.c_void_p(self._own("Scalar", address))


def acl_dtype(row: DType) -> int:
    """Return the number of a dtype in CANN's enumeration; raises ``UnsupportedError``."""
    if row.cann < 0:
        taken = ", ".join(one.name for one in DTYPES if one.cann >= 0)
        raise UnsupportedError("aclnn", f"has no dtype {row}", hint=f"it has {taken}")
    return row.cann


def recent_error(symbols: Symbols) -> str | None:
    """Return CANN's message for its last error, or None."""
    message: Callable[[], bytes | None] | None = symbols.find("aclGetRecentErrMsg")
    if message is None:
        return None
    message.restype = ctypes.c_char_p  # type: ignore[attr-defined] # a function of ctypes
    text = message()
    return text.decode(errors="replace").strip() or None if text else None


def _is_expressible(array: np.ndarray[Any, Any]) -> bool:
    """Whether an ``aclTensor`` can describe the array: native bytes, strides of whole elements, from 0."""
    return all(s >= 0 and s % array.itemsize == 0 for s in array.strides) and array.dtype.isnative


def _dense(shape: Sequence[int]) -> list[int]:
    """Return the strides of a dense array, in elements."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _int64s(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values)
