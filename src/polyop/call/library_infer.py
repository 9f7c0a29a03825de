"""Shapes and dtypes as a library gives them: its ``InferShape`` and ``InferType``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.infer import DefaultRule
from ..core.schema import Schema
from .operator import Kernel
from .prepare import AttributeValues


def library_halves(
    schema: Schema, kernels: Sequence[Kernel], values: AttributeValues
) -> tuple[DefaultRule, DefaultRule] | None:
    """Return shape and dtype halves that ask the first library kernel, or None without one.

    They are given the attributes that ``Init`` and the kernel are given: ``values`` has those of no call.
    """
    kernel: Any = next((k for k in kernels if k.native), None)
    if kernel is None:
        return None
    tensors, count = schema.tensor_positions, len(schema.fresh)

    def split(arguments: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        return [arguments[i] for i in tensors], values.of_call(schema, kernel.device, arguments)

    def shapes(arguments: Sequence[Any]) -> Any:
        return kernel.infer_shapes(*split(arguments), count)

    def types(arguments: Sequence[Any]) -> Any:
        return kernel.infer_types(*split(arguments), count)

    return DefaultRule(shapes, str(kernel)), DefaultRule(types, str(kernel))
