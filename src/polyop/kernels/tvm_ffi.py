"""Functions of tvm-ffi: exported by a library, or objects of its Python package."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .. import _core
from ..binary.elf import TVM_FFI
from ..binary.hashes import known_digest
from ..binary.open import open_library
from ..binary.tvm_ffi import mentions, need_runtime, open_runtime
from ..core.errors import ArgumentValueError, KernelError, printable
from ..core.spec import Spec
from .base import Accepts
from .c_function import ROW_OF_DTYPE, CFunctionKernel

_MAX_FRAMES = 8  # of the backtrace of an object, which does not show where the function begins


class TvmFfiKernel(CFunctionKernel):
    """A function of tvm-ffi. It gets the inputs, then the attributes, then the outputs, and returns None."""

    def __init__(self, address: int, function: Any, label: str, accepts: Accepts | None, path: str) -> None:
        """Wrap the symbol at ``address`` of the library at ``path``; 0 and "" for an object ``function``."""
        super().__init__(address, label.rpartition(":")[2], accepts or Accepts())
        self._function, self.label, self.file = function, label, path
        if self.device not in ("cpu", "cuda"):
            raise ArgumentValueError(str(self), "the device must be 'cpu' or 'cuda'", repr(self.device))
        self._alone = os.urandom(8)
        self._runtime = need_runtime(path or label)

    @classmethod
    def of_object(cls, function: Any, accepts: Accepts | None = None) -> TvmFfiKernel:
        """Return the kernel of a ``tvm_ffi.Function``, which is kept alive."""
        return cls(0, function, "tvm_ffi.Function", accepts, "")

    @classmethod
    def of_library(cls, path: str | Path, name: str, accepts: Accepts | None) -> TvmFfiKernel | None:
        """Return the function that the library exports for tvm-ffi under ``name``; None without one.

        A plain function of that name comes first.
        """
        handle = open_library(path)
        address = 0 if _core.find_symbol(handle, name) else _core.find_symbol(handle, TVM_FFI + name)
        return cls(address, None, f"{Path(path).name}:{name}", accepts, str(path)) if address else None

    def __str__(self) -> str:
        """Return ``file:function``."""
        return printable(self.label)

    def content(self) -> Iterator[bytes]:
        """Yield the name and a digest of the library; an object differs from all others."""
        yield self.label.encode()
        if self.file:
            yield known_digest(self.file).encode()
        else:
            yield self._alone

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return why these specs are refused, or None."""
        if any(isinstance(value, tuple) for value in inputs):
            return "takes no list of tensors, because it is a function of tvm-ffi"
        return super().refuse(inputs, outputs)

    def failure(self, code: int, text: str, threw: bool) -> str:
        """Return what a failed call broke: the function's own error with its backtrace, or its result."""
        del code
        message, *frames = text.split("\n  File ")
        begin = len(frames) if self.file else -_MAX_FRAMES
        own = next((i for i, frame in enumerate(frames) if f" in {TVM_FFI}" in frame), begin)
        text = "\n  File ".join([message, *frames[own:]])  # without the frames of who called it
        return f"the kernel threw {text}" if threw else text

    def new_launch(
        self,
        inputs: tuple[Spec | None, ...],
        outputs: tuple[Spec, ...],
        attributes: Mapping[str, Any],
        allocated: list[tuple[list[int], int]],
    ) -> Any:
        extra = self.extra_of(attributes)
        dtypes = [-1 if spec is None else ROW_OF_DTYPE[spec.dtype.name] for spec in (*inputs, *outputs)]
        signature = (dtypes, len(inputs), list(attributes))
        handle = 0 if self._function is None else self._function.__chandle__()
        try:
            return _core.make_tvm_ffi_launch(
                self._address, handle, self._runtime, signature, allocated, extra, str(self)
            )
        except RuntimeError as problem:
            raise KernelError(self, str(problem)) from None


def is_function(value: Any) -> bool:
    """Whether ``value`` is a ``tvm_ffi.Function``; where the package is not imported, nothing is."""
    package = sys.modules.get("tvm_ffi")
    return package is not None and isinstance(value, package.Function)


def prepare_for(path: str | Path) -> None:
    """Open tvm-ffi's own library where the one at ``path`` may need it and it is installed."""
    if Path(path).is_file() and Path(path).stat().st_size and mentions(path):
        open_runtime()
