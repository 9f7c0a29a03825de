"""Find out which calls of a network ``torch.onnx.export`` translates, and which it does not."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any

from ..core.errors import HostError
from . import foreign_operator
from .corresponding import IGNORED
from .corresponding_expression import Unknown
from .onnx_call import leaves, problem_of, quiet

_BRANCHES = ("cond", "scan", "while_loop")


def refusal(name: str, arguments: Mapping[str, Any]) -> str:
    """Return why the exporter does not translate a call of ``aten::gelu``, or nothing if it does.

    The call is exported alone (:func:`polyop.networks.onnx_call.problem_of`). Where only the run tells a size
    or a number, the answer is that of the operator.

    Raises ``HostError`` without onnxscript.
    """
    if name.startswith("higher_order::"):
        return "" if name.removeprefix("higher_order::") in _BRANCHES else _NO_TRANSLATION
    operator = foreign_operator.overload(name)
    is_known = bool(_registry().is_registered(operator))
    read = [value for name, value in arguments.items() if name not in IGNORED]
    if any(isinstance(one, Unknown) for one in leaves(read)):
        return "" if is_known else _NO_TRANSLATION
    problem = problem_of(operator, arguments)
    return problem if is_known or not problem else _NO_TRANSLATION


_NO_TRANSLATION = "torch.onnx.export has no translation of it"


def decompositions() -> Any:
    """Return PyTorch's table of decompositions, without those of operators that the exporter translates.

    Raises ``HostError`` without onnxscript.
    """
    module = importlib.import_module("torch.onnx._internal.exporter._decomp")
    return module.create_onnx_friendly_decomposition_table(module.get_onnx_implemented_overloads(_registry()))


@functools.cache
def _registry() -> Any:
    try:
        importlib.import_module("onnxscript")
    except ImportError as problem:
        hint = "pip install 'polyop[onnx]'"
        raise HostError("onnx", f"its translations need onnxscript: {problem}", hint=hint) from None
    registration = importlib.import_module("torch.onnx._internal.exporter._registration")
    with quiet():
        return registration.ONNXRegistry.from_torchlib()


def line(name: str) -> str:
    """Return the line that lets the exporter translate an operator."""
    if name.startswith("higher_order::"):
        return foreign_operator.NOTHING
    table = f"{{torch.ops.{foreign_operator.attribute(name)}: your_function}}"
    return f"torch.onnx.export(..., custom_translation_table={table})"
