"""Kernels in a shared library: the C function of seven arguments and its companions.

For a kernel ``Func`` the library may also export the companions ``FuncInit`` (runs once for each set of
specs), ``FuncInferShape`` and ``FuncInferType``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from ..binary.hashes import known_digest
from ..binary.open import open_library
from ..core.dtypes import dtype_of_type_id
from ..core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    InferError,
    KernelError,
    LibraryError,
    printable,
)
from ..core.limits import shown
from ..core.lru_cache import LruCache
from ..core.spec import WITH_C_FUNCTIONS, Spec, one_of
from ..core.versions import MARKER
from . import tvm_ffi
from .base import Accepts, flatten
from .c_function import MOST_WITH_INIT, CFunctionKernel

if TYPE_CHECKING:
    from pathlib import Path

Specs = list[tuple[list[int], str]]


def _rows(specs: Sequence[Spec | None]) -> Specs:
    return [([], "") if s is None else (list(s.shape), s.dtype.name) for s in specs]


class LibraryKernel(CFunctionKernel):
    """The function ``name`` of the library at ``path``.

    The constructor opens the library and checks that it exports the function, and that companions have
    the right types. Raises ``LibraryError``, ``ArgumentTypeError`` and ``ArgumentValueError``.
    """

    def __init__(
        self,
        path: str | Path,
        name: str,
        accepts: Accepts | None = None,
        label: str = "",
    ) -> None:
        super().__init__(0, name, accepts or Accepts())
        self.file, self.label = str(path), label
        if not isinstance(name, str):
            seen = f"{shown(name)} ({type(name).__name__})"
            raise ArgumentTypeError(f"library {path}", "the function's name must be a text", seen)
        if self.accepts.device not in WITH_C_FUNCTIONS:
            rule = f"the device must be {one_of(WITH_C_FUNCTIONS)}"
            raise ArgumentValueError(str(self), rule, repr(self.accepts.device))
        self._handle = handle = open_library(self.file)
        self._address = _core.find_symbol(handle, self.name)
        if not self._address:
            from ..binary import diagnose

            raise diagnose.missing_symbol(diagnose.read(self.file), self.name, handle)
        self._init = _core.find_symbol(handle, f"{self.name}Init")
        if self._init:
            self._launches = LruCache(MOST_WITH_INIT)
        self._infer_shape = _core.find_symbol(handle, f"{self.name}InferShape")
        self._infer_type = _core.find_symbol(handle, f"{self.name}InferType")
        has_companion = self._init or self._infer_shape or self._infer_type
        if has_companion or not _core.find_symbol(handle, MARKER):
            from ..binary import diagnose

            file = diagnose.read(self.file)
            diagnose.check_companions(file, self.name)
            self.strings = diagnose.strings_of(file)

    def __str__(self) -> str:
        """Return ``file:function``."""
        return printable(self.label or f"{os.path.basename(self.file)}:{self.name}")

    def __repr__(self) -> str:
        """Return the file and the function."""
        return f"LibraryKernel({self.file!r}, {self.name!r})"

    def content(self) -> Iterator[bytes]:
        """Yield the function's name and a digest of the library's bytes."""
        yield self.name.encode()
        yield known_digest(self.file).encode()

    @property
    def path(self) -> Path:
        """The library's file."""
        from pathlib import Path

        return Path(self.file)

    def symbol(self, name: str) -> int:
        """Return the address of another symbol of the library, or 0."""
        return int(_core.find_symbol(self._handle, name))

    @property
    def has_init(self) -> bool:
        """Whether the library has ``<Func>Init``."""
        return bool(self._init)

    @property
    def has_infer_shape(self) -> bool:
        """Whether the library has ``<Func>InferShape``."""
        return bool(self._infer_shape)

    @property
    def has_infer_type(self) -> bool:
        """Whether the library has ``<Func>InferType``."""
        return bool(self._infer_type)

    def initialise(self, specs: Sequence[Spec | None], extra: Any) -> None:
        """Run ``<Func>Init``, if the library has it; raises ``KernelError`` when it fails."""
        if not self._init:
            return
        subject = f"{self}: {self.name}Init"
        try:
            code, text = _core.call_init(self._init, _rows(specs), extra)
        except Exception as problem:
            raise KernelError(subject, f"threw a C++ exception: {problem}") from None
        if code:
            raise KernelError(subject, f"failed with code {code}{': ' + text if text else ''}")
        if self.device == "opencl" and extra.workspaces():
            raise KernelError(subject, "asks for workspaces, which a kernel for OpenCL allocates itself")

    def infer_shapes(
        self, inputs: Sequence[Any], attributes: Mapping[str, Any], outputs: int
    ) -> list[list[int]]:
        """Return the output shapes that ``<Func>InferShape`` gives.

        Symbolic sizes are specialised: the C++ function sees numbers. Raises ``InferError``.
        """
        subject = f"{self}: {self.name}InferShape"
        if not self._infer_shape:
            rule = "is missing, and no out_shape was given (the operator does not support dynamic shape yet)"
            raise InferError(subject, rule, where=self.file, hint="give out_shape, or export that function")
        rows = [([], "") if s is None else ([int(n) for n in s.shape], s.dtype.name) for s in flatten(inputs)]
        try:
            shapes = _core.call_infer_shape(self._infer_shape, rows, self.extra_of(attributes), outputs != 1)
        except Exception as problem:
            raise InferError(subject, f"failed: {problem}", where=self.file) from None
        if any(size < 0 for shape in shapes for size in shape):
            raise InferError(
                subject, "gave an unknown size for inputs whose sizes are known", shapes, where=self.file
            )
        return [list(shape) for shape in shapes]

    def infer_types(self, inputs: Sequence[Any], attributes: Mapping[str, Any], outputs: int) -> list[Any]:
        """Return the output dtypes that ``<Func>InferType`` gives. Raises ``InferError``."""
        subject = f"{self}: {self.name}InferType"
        if not self._infer_type:
            rule = "is missing, and no out_dtype was given. Please add infer type function"
            raise InferError(subject, rule, where=self.file, hint="give out_dtype, or export that function")
        types = [0 if s is None else s.dtype.type_id for s in flatten(inputs)]
        try:
            numbers = _core.call_infer_type(self._infer_type, types, self.extra_of(attributes), outputs != 1)
        except Exception as problem:
            raise InferError(subject, f"failed: {problem}", where=self.file) from None
        dtypes = [dtype_of_type_id(number) for number in numbers]
        if None in dtypes:
            raise InferError(
                subject, "returned a TypeId that is no dtype of a tensor", numbers, where=self.file
            )
        return dtypes


_CUDA_MARKS = (b".nv_fatbin", b"libcudart.so", b"libc10_cuda.so", b".hip_fatbin", b"libamdhip64.so")


def device_of_library(path: str | Path) -> str:
    """Return ``"cuda"`` for a library with code for CUDA or HIP, or that needs either, else ``"cpu"``."""
    import mmap

    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return "cuda" if any(data.find(mark) >= 0 for mark in _CUDA_MARKS) else "cpu"


def prebuilt(
    path: str | Path | Any,
    function: str | None = None,
    *,
    device: str | None = None,
    dtypes: Sequence[Any] | None = None,
) -> LibraryKernel | tvm_ffi.TvmFfiKernel:
    """Return the kernel ``function`` of a built library, or the kernel of a ``tvm_ffi.Function``.

    If the library has no function of that name, but exports it for tvm-ffi, that one is the kernel. Without
    ``device`` it is ``"cuda"`` if the library has CUDA code, else ``"cpu"``. ``dtypes`` are those that the
    kernel takes, None for all. Raises ``LibraryError`` for a file that is no usable library or lacks the
    function, ``ArgumentTypeError`` for one that POLYOP_LIBRARY_PATHS does not allow.
    """
    from ..core.dtypes import dtype

    accepted = None if dtypes is None else tuple(dtype(value) for value in dtypes)
    if tvm_ffi.is_function(path):
        if function is not None:
            rule = "a tvm_ffi.Function is given without a function's name"
            raise ArgumentTypeError("prebuilt", rule, shown(function))
        return tvm_ffi.TvmFfiKernel.of_object(path, Accepts(device or "cpu", accepted))
    if not str(path):
        raise LibraryError("prebuilt", "the path is empty")
    tvm_ffi.prepare_for(path)
    open_library(path)  # before its bytes are read, because this error says what is wrong with the file
    accepts = Accepts(device or device_of_library(path), accepted)
    name: Any = function  # LibraryKernel refuses what is no text
    ffi = tvm_ffi.TvmFfiKernel.of_library(path, name, accepts) if isinstance(name, str) else None
    return ffi or LibraryKernel(path, name, accepts)
