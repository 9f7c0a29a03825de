"""What ``torch.onnx.export`` translates: its own registry says it."""

from __future__ import annotations

import functools
import importlib
import logging
from typing import Any

from ..core.errors import HostError
from . import origin


def has(name: str) -> bool:
    """Return whether the exporter has a translation of ``aten::gelu``, or splits it into others that have one.

    It is said of the operator, not of the arguments of a call.

    Raises ``HostError`` without PyTorch's exporter and onnxscript.
    """
    import torch

    if name.startswith("higher_order::"):
        return name.removeprefix("higher_order::") in ("cond", "scan", "while_loop")
    namespace, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), base)
    found = getattr(packet, overload or "default")
    registry, split = _registry()
    return bool(registry.is_registered(found) or found in split)


@functools.cache
def _registry() -> tuple[Any, Any]:
    try:
        import torch

        importlib.import_module("onnxscript")
        registration = importlib.import_module("torch.onnx._internal.exporter._registration")
        log = logging.getLogger(registration.__name__)
        level, _ = log.level, log.setLevel(logging.ERROR)  # it tells of packages that are not installed
        try:
            registry = registration.ONNXRegistry.from_torchlib()
        finally:
            log.setLevel(level)
    except ImportError as problem:
        hint = "pip install 'polyop[onnx]'"
        raise HostError("onnx", f"what is translated is in torch.onnx: {problem}", hint=hint) from None
    return registry, torch.export.default_decompositions()


def line(name: str) -> str:
    """Return the line that lets the exporter translate an operator."""
    return f"custom_translation_table={{torch.ops.{origin.attribute(name)}: your_onnxscript_function}}"
