"""Tell ``torch.compile`` the functions of a project for Ascend, and the names of Ascend's backends.

PyTorch's compiler cannot look into a function of C++. It is told to put these into the graph: tracing runs
them on tensors without data, and finds the operators that they call, with their gradients.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, ModuleType
from typing import Any

import torch

from ...call.arrival import Arrival

_COMPILER = "torch._dynamo"


def offer(module: ModuleType) -> None:
    """Put the functions of the module that return tensors into graphs, once the compiler is imported."""
    functions = [value for value in vars(module).values() if _returns_tensors(value)]

    def allow(_: str) -> None:
        for function in functions:
            torch.compiler.allow_in_graph(function)

    if functions:
        _with_compiler(allow)


def name_backends(*names: str) -> None:
    """Give :func:`backend` the names of Ascend's backends, once the compiler is imported."""

    def register(_: str) -> None:
        for name in names:
            torch._dynamo.register_backend(backend, name=name)  # noqa: SLF001 - as torch_npu registers its own

    _with_compiler(register)


def backend(graph: Any, inputs: Any) -> Any:
    """Compile a graph in rehearsal: PyTorch's own backend, without a code generator."""
    return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)  # noqa: SLF001 - the name is not exported


def _with_compiler(function: Callable[[str], object]) -> None:
    if _COMPILER in sys.modules:
        function(_COMPILER)
    else:
        Arrival(_COMPILER, function).wait()


def _returns_tensors(value: Any) -> bool:
    """Whether it is a function of pybind11 whose results are tensors, as its docstring begins with."""
    if not isinstance(value, BuiltinFunctionType):
        return False
    call = rf"(?m)^(?:\d+\. )?{re.escape(value.__name__)}\(.*\) -> (.+)$"
    results = re.findall(call, value.__doc__ or "")
    return bool(results) and all("Tensor" in result for result in results)
