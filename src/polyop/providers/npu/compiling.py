"""The functions of a module for Ascend in graphs of ``torch.compile``.

PyTorch's compiler cannot look into a function of C++. It is told to put these into the graph: tracing runs
them on tensors without data, and finds the operators that they call, with their gradients.
"""

from __future__ import annotations

import re
import sys
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

    if _COMPILER in sys.modules:
        allow(_COMPILER)
    elif functions:
        Arrival(_COMPILER, allow).wait()


def _returns_tensors(value: Any) -> bool:
    """Whether it is a function of pybind11 whose results are tensors, as its docstring begins with."""
    if not isinstance(value, BuiltinFunctionType):
        return False
    call = rf"(?m)^(?:\d+\. )?{re.escape(value.__name__)}\(.*\) -> (.+)$"
    results = re.findall(call, value.__doc__ or "")
    return bool(results) and all("Tensor" in result for result in results)
