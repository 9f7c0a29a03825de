"""Python kernels that a graph runs: they must not use MindSpore, or the process would hang.

A graph waits for its Python kernel. A MindSpore function called in the kernel waits for the graph. To
raise an error instead, a profile function watches for calls of MindSpore's Python functions, and
``check`` is called when polyop receives a MindSpore tensor.
"""

from __future__ import annotations

import functools
import os.path
import sys
import threading
from typing import Any

import mindspore

from ...call import foreign
from ...core.errors import HostError

_FOLDER = os.path.join(os.path.dirname(mindspore.__file__), "")  # noqa: PTH118, PTH120 - compared as a text
_WRAPPERS = ("ops/op_info_register.py", "ops/operations/_ms_kernel.py")  # of decorated functions
_HARMLESS = {_FOLDER + name for name in ("common/dtype.py", "context.py", "log.py", *_WRAPPERS)}
_ALLOWED = {"__instancecheck__", "__subclasscheck__", "__del__"}  # the garbage collector calls __del__
_thread = threading.local()


def start() -> None:
    """Watch every Python kernel that a compiled program runs."""
    foreign.watch(lambda operator, run: functools.partial(_watched, operator.part_of or operator.name, run))


def check() -> None:
    """Raise ``HostError`` if this thread is running a Python kernel for a graph."""
    name = getattr(_thread, "operator", None)
    if name is not None:
        rule = "its Python function uses MindSpore while a compiled program runs it, and would wait forever"
        hint = "use NumPy in it, or call the operator outside the graph"
        raise HostError(name, rule, hint=hint)


def _watched(name: str, run: foreign.Run, arrays: list[Any]) -> None:
    profiler, outer = sys.getprofile(), getattr(_thread, "operator", None)
    _thread.operator = name
    if profiler is None:  # a profiler of the user is left alone, and nothing is watched
        sys.setprofile(_watch)
    try:
        run(arrays)
    finally:
        _thread.operator = outer
        sys.setprofile(profiler)


def _watch(frame: Any, event: str, argument: Any) -> None:
    del argument
    file = frame.f_code.co_filename
    if event == "call" and file.startswith(_FOLDER) and file not in _HARMLESS and not _allowed(frame):
        check()


def _allowed(frame: Any) -> bool:
    while frame is not None and frame.f_code is not _watched.__code__:
        if frame.f_code.co_name in _ALLOWED:
            return True
        frame = frame.f_back
    return False
