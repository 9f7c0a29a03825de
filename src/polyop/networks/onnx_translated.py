"""Find out which operators ``torch.onnx.export`` translates, from PyTorch's own registry."""

from __future__ import annotations

import functools
import importlib
import logging
from typing import Any

from ..core.errors import HostError
from . import foreign_operator

_BRANCHES = ("cond", "scan", "while_loop")


def has(name: str) -> bool:
    """Return whether the exporter has a translation of ``aten::gelu``.

    It is said of the operator, not of the arguments of a call. The exporter translates what
    :func:`decompositions` leave.

    Raises ``HostError`` without onnxscript.
    """
    if name.startswith("higher_order::"):
        return name.removeprefix("higher_order::") in _BRANCHES
    return bool(_registry().is_registered(foreign_operator.overload(name)))


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
    log = logging.getLogger(registration.__name__)
    level = log.level
    log.setLevel(logging.ERROR)  # it tells of packages that are not installed
    try:
        registry = registration.ONNXRegistry.from_torchlib()
    finally:
        log.setLevel(level)
    return registry


def line(name: str) -> str:
    """Return the line that lets the exporter translate an operator."""
    if name.startswith("higher_order::"):
        return foreign_operator.NOTHING
    table = f"{{torch.ops.{foreign_operator.attribute(name)}: your_function}}"
    return f"torch.onnx.export(..., custom_translation_table={table})"
