"""Kernels that other tools hand over as function pointers: numba, ctypes, cffi, scipy.

The function has the contract of ``polyop/abi.h``, as a function of a library has. Where the tool knows the
types of its parameters, they are checked.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from _ctypes import CFuncPtr
from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import _core
from ..binary.hashes import known_digest
from ..core.dtypes import DTYPES, DType
from ..core.errors import ArgumentTypeError, ArgumentValueError
from ..core.origin import caller
from . import described
from .base import Accepts
from .c_function import CFunctionKernel, keep, read_capsule
from .c_parameters import CONTRACT, declaration

_BASES = {
    "int": "int32",
    "int32_t": "int32",
    "long": f"int{8 * ctypes.sizeof(ctypes.c_long)}",
    "longlong": "int64",
    "int64_t": "int64",
    "intptr_t": "int64",
    "ssize_t": "int64",
    "unsignedchar": "uint8",
    "signedchar": "int8",
    "void_p": "void*",  # as scipy writes types of ctypes
    "char_p": "char*",
}


class _Pointer(NamedTuple):
    """A function pointer: its tool, its address, and the types of its parameters and result where known."""

    tool: str
    address: int
    parameters: tuple[str, ...] | None = None
    result: str | None = None
    python: Any = None


class FunctionPointerKernel(CFunctionKernel):
    """A C function at an address, which another tool made; what owns it is kept alive.

    Raises ``ArgumentTypeError`` if its types are known and are not those of the contract, and
    ``ArgumentValueError`` for a null pointer.
    """

    def __init__(self, value: Any) -> None:
        pointer = _read(value)
        assert pointer is not None
        self._pointer, self._symbol = pointer, _core.symbol_at(pointer.address)
        name = getattr(pointer.python, "__name__", None) or self._symbol[1]
        super().__init__(pointer.address, name or "function", Accepts(dtypes=_dtypes(pointer)))
        if not pointer.address:
            raise ArgumentValueError(self, "must point to a function", "a null pointer", where=caller())
        self._check()
        keep(value, pointer.address)
        self._alone = os.urandom(8)

    def __str__(self) -> str:
        """Return the tool and the function's name."""
        return f"{self._pointer.tool} {self.name}"

    def content(self) -> Iterator[bytes]:
        """Yield the Python function that was compiled, or the library's digest and the place in it.

        Any other function differs from all others, also in the next process.
        """
        file, symbol, offset = self._symbol
        if self._pointer.python is not None:
            yield from described.value(self._pointer.python)
            yield from described.globals_of(self._pointer.python)
            yield repr(self._pointer.parameters).encode()
            return
        from pathlib import Path

        if file and Path(file).is_file():
            yield f"{symbol} {offset}".encode()
            yield known_digest(file).encode()
        else:
            yield self._alone

    def _check(self) -> None:
        where = caller()
        parameters, result = self._pointer.parameters, self._pointer.result
        hint = f"a kernel is {declaration('f')}"
        if parameters is not None and len(parameters) != len(CONTRACT):
            rule, seen = f"must have {len(CONTRACT)} parameters", str(len(parameters))
            raise ArgumentTypeError(self, rule, seen, where=where, hint=hint)
        for (name, text, accepted), seen in zip(CONTRACT, parameters or (), strict=False):
            if not re.fullmatch(accepted, seen):
                raise ArgumentTypeError(
                    f"{self}: parameter {name}", f"must be {text}", seen, where=where, hint=hint
                )
        if result not in (None, "int32"):
            rule = "must return int, where 0 is success"
            raise ArgumentTypeError(self, rule, result, where=where, hint=hint)


def _dtypes(pointer: _Pointer) -> tuple[DType, ...] | None:
    """Return the dtype that the type of ``params`` says, ``float32**``.

    None for ``void**``, for bytes (``uint8**``), which C uses for memory of any type, and for unknown types.
    """
    if pointer.parameters is None or len(pointer.parameters) != len(CONTRACT):
        return None
    base = pointer.parameters[1].removesuffix("**").lower()
    name = {"float": "float32", "double": "float64", "_bool": "bool"}.get(base, base)
    rows = tuple(row for row in DTYPES if row.name == name != "uint8")
    return rows or None


def is_function_pointer(value: Any) -> bool:
    """Whether a value is a function pointer of a tool that is known here."""
    return _read(value, check=False) is not None


def _read(value: Any, *, check: bool = True) -> _Pointer | None:
    kind = type(value)
    name, package = kind.__name__, kind.__module__.partition(".")[0]
    for applies, read in (
        (isinstance(value, CFuncPtr), _of_ctypes),
        (name == "CFunc" and package == "numba", _of_numba),
        (name == "PyCapsule", _of_capsule),
        (name == "LowLevelCallable" and isinstance(value, tuple), _of_scipy),
        (package == "_cffi_backend" and _is_cffi_function(value), _of_cffi),
        (type(getattr(value, "__self__", None)).__name__ == "Lib" and _is_cffi_lib(value), _of_cffi_lib),
    ):
        if applies:
            return read(value) if check else _Pointer("", 0)
    return None


_PYTHON_LOCK = 4  # FUNCFLAG_PYTHONAPI of ctypes


def _of_ctypes(value: Any, tool: str = "ctypes") -> _Pointer:
    if type(value)._flags_ & _PYTHON_LOCK:
        rule = "needs Python's lock, without which kernels run"
        raise ArgumentTypeError("ctypes function of PyDLL", rule, where=caller(), hint="use ctypes.CDLL")
    address = ctypes.cast(value, ctypes.c_void_p).value or 0
    parameters = None if value.argtypes is None else tuple(map(_of_ctype, value.argtypes))
    return _Pointer(tool, address, parameters, _of_ctype(value.restype))  # the result is int by default


def _of_ctype(kind: Any) -> str:
    """Return a type of ctypes as a text, ``int64**``."""
    if not isinstance(kind, type):
        return "void" if kind is None else "a Python function"
    if issubclass(kind, ctypes._Pointer):  # noqa: SLF001
        return f"{_of_ctype(kind._type_)}*"
    if not issubclass(kind, ctypes._SimpleCData):  # noqa: SLF001
        return kind.__name__
    code: str = kind._type_  # type: ignore[attr-defined]
    if code in ("P", "z"):
        return "void*" if code == "P" else "char*"
    if code in "bhilqBHILQ":
        return f"{'u' if code.isupper() else ''}int{8 * ctypes.sizeof(kind)}"
    return kind.__name__.removeprefix("c_")


def _of_numba(value: Any) -> _Pointer:
    python = getattr(value, "__wrapped__", None)
    try:
        function = value.ctypes
    except (NotImplementedError, TypeError) as problem:
        subject = f"numba.cfunc {getattr(python, '__name__', '')}"
        rule = "must have parameters of C: integers and pointers"
        raise ArgumentTypeError(subject, rule, str(problem), where=caller()) from None
    return _of_ctypes(function, "numba.cfunc")._replace(address=value.address, python=python)


def _of_capsule(value: Any, tool: str = "PyCapsule") -> _Pointer:
    text, address = read_capsule(value)
    signature = re.fullmatch(r"([^()]+)\((.*)\)", (text or b"").decode(errors="replace").strip())
    if signature is None:
        rule = "must have the signature of its C function as its name"
        raise ArgumentTypeError(tool, rule, repr(text), where=caller())
    parameters = tuple(_of_text(part) for part in signature[2].split(","))
    return _Pointer(tool, address, parameters, _of_text(signature[1]))


def _of_text(text: str) -> str:
    """Return a type as C writes it, ``const int64_t * *``, without blanks and under its name here."""
    plain = re.sub(r"\b(const|struct|volatile)\b|\s", "", text)
    base = plain.rstrip("*")
    return _BASES.get(base, base) + plain[len(base) :]


def _of_scipy(value: Any) -> _Pointer:
    if value.user_data is not None:
        rule = "has user data, which a kernel does not get"
        hint = "pass a tensor or an attribute of the schema"
        raise ArgumentTypeError("LowLevelCallable", rule, where=caller(), hint=hint)
    return _of_capsule(tuple.__getitem__(value, 0), "LowLevelCallable")  # its own method refuses


def _is_cffi_function(value: Any) -> bool:
    kind = sys.modules["_cffi_backend"].typeof(value) if type(value).__name__.startswith("_CData") else None
    item = kind.item if kind is not None and kind.kind == "pointer" else None
    return kind is not None and (kind.kind == "function" or (item is not None and item.kind == "function"))


def _of_cffi(value: Any) -> _Pointer:
    backend = sys.modules["_cffi_backend"]
    kind = backend.typeof(value)
    address = int(backend.FFI().cast("uintptr_t", value))
    return _Pointer("cffi", address, tuple(_of_text(a.cname) for a in kind.args), _of_text(kind.result.cname))


def _is_cffi_lib(value: Any) -> bool:
    return type(value.__self__).__module__.partition(".")[0] == "_cffi_backend" and callable(value)


def _of_cffi_lib(value: Any) -> _Pointer:
    # a function of a compiled module is a method that converts arguments; the pointer is asked for by name
    return _of_cffi(sys.modules["_cffi_backend"].FFI().addressof(value.__self__, value.__name__))
