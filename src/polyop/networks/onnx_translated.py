"""Find out which calls of a network ``torch.onnx.export`` translates, and which it does not."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any

from ..core.errors import HostError
from . import foreign_operator
from .onnx_call import NO_TRANSLATION, Told, is_known, of_operator, quiet, tried

_BRANCHES = ("cond", "scan", "while_loop")


def asked(name: str, arguments: Mapping[str, Any]) -> Told:
    """Return whether a call, as of ``aten::gelu``, can go to ONNX: it is exported alone (onnx_call.py).

    Where only the run tells a size or a number, nothing is exported: the answer is that of the operator.

    Raises ``HostError`` without onnxscript.
    """
    if name.startswith("higher_order::"):
        is_there = name.removeprefix("higher_order::") in _BRANCHES
        return Told(is_there, "" if is_there else NO_TRANSLATION)
    operator = foreign_operator.overload(name)
    is_translated = bool(_registry().is_registered(operator))
    if is_known(operator, arguments):
        return tried(operator, arguments, is_translated=is_translated)
    return of_operator("as only the run tells its sizes or numbers", is_translated=is_translated)


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
