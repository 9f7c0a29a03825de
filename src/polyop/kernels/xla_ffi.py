"""XLA FFI handlers as kernels: ``XLA_FFI_Error* Handler(XLA_FFI_CallFrame*)``, as ``jax.ffi`` takes them.

JAX calls a handler as the plain custom call that it is. For other hosts the native core builds XLA's call
frame (csrc/hosts/xla_kernel.cc), so they need no part of JAX.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from ..binary.hashes import known_digest
from ..core.dtypes import dtype
from ..core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    KernelError,
    LibraryError,
    SchemaError,
    UnsupportedError,
    printable,
)
from ..core.limits import shown
from ..core.lru_cache import LruCache
from ..core.schema import Schema
from ..core.spec import Spec
from .base import Accepts
from .c_function import MOST_LAUNCHES, CFunctionKernel, keep, read_capsule
from .library import LibraryKernel, prebuilt
from .reference_name import split_reference
from .source import is_source, source

OLDEST, NEWEST = (0, 1), (0, 3)
"""The versions of XLA's interface whose handlers are called; XLA takes the same ones."""
_OF_SCHEMA = {"int": "int64", "SymInt": "int64", "float": "float64", "bool": "bool"}
_CAPSULES = (b"xla._CUSTOM_CALL_TARGET", None)  # jaxlib's name, and that of jax.ffi.pycapsule


class XlaHandler(CFunctionKernel):
    """A handler at an address; ``types`` are dtypes of attributes, by name.

    The constructor asks the handler for its version. Raises ``LibraryError`` if it is built against another
    one or does not answer, ``UnsupportedError`` if it has a state.
    """

    def __init__(
        self,
        address: int,
        place: tuple[str, str],
        accepts: Accepts,
        types: Mapping[str, str],
        label: str = "",
    ) -> None:
        super().__init__(address, place[1], accepts)
        self.types, self.path = dict(types), Path(place[0])
        self.label = label or f"{self.path.name or 'code'}:{self.name}"
        self._declared, self._alone = frozenset(types), os.urandom(8)
        self._lengths: frozenset[str] = frozenset()
        self._check()

    def _check(self) -> None:
        rule = f"must be built against version {_text(OLDEST)} to {_text(NEWEST)} of XLA's FFI"
        try:
            major, minor, stateful = _core.xla_metadata(self._address)
        except RuntimeError as problem:
            raise LibraryError(self, rule, f"an error when asked for it: {problem}") from None
        if major < 0:
            hint = "it ignores XLA_FFI_Metadata_Extension; is it an XLA FFI handler?"
            raise LibraryError(self, rule, "no answer", hint=hint)
        if not OLDEST <= (major, minor) <= NEWEST:
            hint = "build it again with the headers of a jaxlib of these versions"
            raise LibraryError(self, rule, _text((major, minor)), hint=hint)
        if stateful:
            rule = "makes a state, and polyop does not serve XLA_FFI_State_Set and XLA_FFI_State_Get"
            raise UnsupportedError(self, rule, hint="call it through jax.ffi.ffi_call")

    def __str__(self) -> str:
        """Return ``file:function`` and the kind."""
        return printable(f"{self.label} (XLA FFI)")

    def __repr__(self) -> str:
        """Return the file and the symbol."""
        return f"XlaHandler({str(self.path)!r}, {self.name!r})"

    def content(self) -> Iterator[bytes]:
        """Yield the types of attributes, the handler's name, and a digest of the library's bytes."""
        yield repr(sorted(self.types.items())).encode()
        if self.path.is_file():
            yield self.name.encode()
            yield known_digest(self.path).encode()
        else:  # code that this process made: no other handler is known to be the same
            yield self._alone

    def for_schema(self, schema: Schema, where: Any) -> XlaHandler:
        """Return the kernel for an operator with this schema, which gives attributes their types.

        Raises ``SchemaError`` if the operator writes an argument.
        """
        if schema.mutates:
            rule = f"writes an argument, and {self} gets its inputs and outputs as separate memory"
            raise SchemaError(schema.qualified_name, rule, where=where, hint="return a new tensor instead")
        bound = copy.copy(self)
        of_schema = {
            argument.name: _OF_SCHEMA[argument.type.base]
            for _, argument in schema.attributes()
            if argument.type.base in _OF_SCHEMA
        }
        bound.types = {**of_schema, **self.types}
        bound._lengths = frozenset(a.name for a in schema.arguments if a.type.is_tensor)  # noqa: SLF001
        bound._launches = LruCache(MOST_LAUNCHES)  # noqa: SLF001
        return bound

    def encode(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes that the handler gets: NumPy scalars, arrays and texts.

        None and the lengths of lists of tensors are left out. Raises ``KernelError`` for a value that does
        not fit its type, or has none.
        """
        unknown = sorted(self._declared - set(attributes))
        if unknown:
            names = ", ".join(sorted(attributes)) or "there are none"
            raise KernelError(self, f"types= names {', '.join(unknown)}, no attribute of the operator", names)
        given = {k: v for k, v in attributes.items() if k not in self._lengths and v is not None}
        return {name: self._encoded(name, value) for name, value in given.items()}

    def _encoded(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            return value
        own = value.dtype if isinstance(value, (np.generic, np.ndarray)) else None
        kind = own if own is not None else self.types.get(name)
        array = _converted(value, None if kind is None else dtype(kind).numpy)
        if array is None:
            rule = f"the attribute {name} must be a number, a text or a list of numbers"
            rule += f" of type {kind}" if kind is not None else ""
            raise KernelError(self, rule, shown(value))
        return array if array.ndim else array[()]

    def new_launch(
        self,
        inputs: tuple[Spec | None, ...],
        outputs: tuple[Spec, ...],
        attributes: Mapping[str, Any],
        allocated: list[tuple[list[int], int]],
    ) -> Any:
        """Return a new launch. Raises ``KernelError`` for what XLA cannot pass."""
        names = ["" if spec is None else spec.dtype.name for spec in (*inputs, *outputs)]
        values = [_native(name, value) for name, value in self.encode(attributes).items()]
        cuda = self.device == "cuda"
        try:
            return _core.make_xla_launch(
                self._address, names, len(inputs), allocated, values, cuda, str(self)
            )
        except RuntimeError as problem:
            raise KernelError(self, str(problem)) from None


def _converted(value: Any, kind: Any) -> Any | None:
    """Return a number or a list of numbers as an array of a dtype, None if it does not fit."""
    try:
        with np.errstate(over="raise"):  # 1e300 is no float32
            array = np.asarray(value, kind)
    except (TypeError, ValueError, ArithmeticError):
        return None
    if array.ndim > 1 or array.dtype.kind not in "biufV" or (array.size == 0 and kind is None):
        return None
    exact = array.dtype.kind in "biu"
    return None if exact and array.tolist() != np.asarray(value).tolist() else array


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _native(name: str, value: Any) -> tuple[str, str, bytes, int, bool]:
    if isinstance(value, str):
        return name, "", value.encode(), 0, False
    array = np.asarray(value)
    return name, dtype(array.dtype).name, array.tobytes(), array.size, array.ndim == 0


def xla_ffi(
    handler: Any,
    *,
    types: Mapping[str, Any] | None = None,
    device: str | None = None,
    dtypes: Sequence[Any] | None = None,
) -> XlaHandler:
    """Return the kernel of an XLA FFI handler: ``XLA_FFI_Error* Handler(XLA_FFI_CallFrame*)``.

    ``handler``  ``"lib.so:Handler"``; ``"source.cc:Handler"``, compiled with jaxlib's headers; a kernel of
                 ``polyop.prebuilt`` or ``source``; a capsule (``jax.ffi.pycapsule(...)``, a value of
                 ``registrations()``); or the address of the function,
                 whose code the caller keeps alive.
    ``types``    dtypes of attributes, by name. Without, an ``int`` is int64, a ``float`` float64, and a NumPy
                 scalar what it is.
    ``device``   ``"cpu"`` or ``"cuda"``; without it, what the library has code for.

    A handler is asked for its version by a call, so a function that is no handler may crash the process.

    >>> import numpy as np, polyop
    >>> norm = polyop.xla_ffi("rms_norm.cc:RmsNorm", types={"eps": "float32"})  # doctest: +SKIP
    >>> rms = polyop.operator(
    ...     "doc::rms(Tensor x, float eps=1e-6) -> Tensor", norm, infer="x"
    ... )  # doctest: +SKIP

    Raises ``LibraryError`` for a handler of another version of XLA's FFI, ``UnsupportedError`` for one with a
    state, and what ``polyop.prebuilt`` and ``polyop.source`` raise.
    """
    names = {name: dtype(kind).name for name, kind in (types or {}).items()}
    accepted = None if dtypes is None else tuple(dtype(value) for value in dtypes)
    if isinstance(handler, str):
        handler = _from_text(handler)
    if isinstance(handler, LibraryKernel):
        address, place = handler.address, (handler.file, handler.name)
        accepts = Accepts(device or handler.device, accepted or handler.declared_dtypes or None)
        label = handler.label
    else:
        address = _address(handler)
        keep(handler, address)
        file, symbol, offset = _core.symbol_at(address)
        place, accepts = (file, symbol or f"+{offset:#x}"), Accepts(device or "cpu", accepted)
        label = ""
    if accepts.device not in ("cpu", "cuda"):
        raise ArgumentValueError("xla_ffi", "the device must be 'cpu' or 'cuda'", repr(accepts.device))
    return XlaHandler(address, place, accepts, names, label)


def _from_text(text: str) -> Any:
    path, function = split_reference(text, "xla_ffi")
    if is_source(path):
        return source(path, function=function, include_paths=_headers())
    return prebuilt(path, function)


def _headers() -> list[str]:
    """Return the folder of jaxlib's headers, if jaxlib is installed."""
    import importlib.util

    spec = importlib.util.find_spec("jaxlib")
    folders = spec.submodule_search_locations if spec else None
    return [f"{folder}/include" for folder in folders or ()]


def _address(handler: Any) -> int:
    if isinstance(handler, Mapping):
        stages = sorted(set(handler) - {"execute"})
        if stages or "execute" not in handler:
            rule = "calls the stage execute alone, and the bundle has others"
            hint = "call it through jax.ffi.ffi_call"
            raise UnsupportedError("xla_ffi", rule, ", ".join(stages) or "no execute", hint=hint)
        handler = handler["execute"]
    if isinstance(handler, int) and not isinstance(handler, bool) and handler > 0:
        return handler
    if type(handler).__name__ != "PyCapsule":
        rule = "must be 'lib.so:Handler', a kernel of polyop.prebuilt or source, a capsule or an address"
        raise ArgumentTypeError("xla_ffi", rule, f"{shown(handler)} ({type(handler).__name__})")
    name, address = read_capsule(handler)
    if name not in _CAPSULES:
        raise ArgumentTypeError("xla_ffi", "must be a capsule of an XLA FFI handler", f"one of {name!r}")
    return address
