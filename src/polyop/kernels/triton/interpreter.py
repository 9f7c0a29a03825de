"""Triton's interpreter on arrays: it runs a kernel as Python, one program of the grid after the other.

Triton chooses between compiler and interpreter when a function is decorated (``TRITON_INTERPRET=1``). Here
a function that was decorated for the compiler is interpreted too, with the ``@triton.jit`` functions that
it calls. The interpreter changes ``triton.language`` while it runs, so calls wait for each other.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...core import locks
from ...core.dtypes import dtype

_lock = locks.shared("runs of Triton's interpreter", locks.Level.RUN)


def run(function: Any, grid: tuple[int, ...], values: Mapping[str, Any]) -> None:
    """Run a function for every program of ``grid``. ``values`` are its arguments; arrays are in place.

    Raises Triton's ``InterpreterError``.
    """
    interpreter = importlib.import_module("triton.runtime.interpreter")
    if not isinstance(function, interpreter.InterpretedFunction):
        function = interpreter.InterpretedFunction(function.fn)
    with _lock, _calls_interpreted(interpreter):
        function[grid](**{name: _argument(value) for name, value in values.items()})


def _argument(value: Any) -> Any:
    return _Memory(value) if isinstance(value, np.ndarray) else value


@contextlib.contextmanager
def _calls_interpreted(interpreter: Any) -> Iterator[None]:
    """Interpret functions for the compiler too, as ``tl.sum`` is; called directly, they only raise."""
    kind = importlib.import_module("triton.runtime.jit").JITFunction

    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        changes = interpreter._patch_lang(function.fn)  # noqa: SLF001 - what its own functions do
        try:
            return interpreter.InterpretedFunction(function.fn).rewrite()(*args, **kwargs)
        finally:
            if changes is not None:
                changes.restore()

    original = kind.__call__
    kind.__call__ = call
    try:
        yield
    finally:
        kind.__call__ = original


class _Memory:
    """An array as the interpreter takes tensors: by address and dtype. It is on the CPU, so never copied."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        self.dtype = dtype(array.dtype).name

    def data_ptr(self) -> int:
        return int(self._array.ctypes.data)

    def _self(self, *_: Any, **__: Any) -> _Memory:
        return self

    def _zero(self) -> int:
        return 0

    untyped_storage = cpu = new_empty = set_ = copy_ = _self
    storage_offset = size = stride = _zero
