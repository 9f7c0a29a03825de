"""Output shapes and dtypes from a library's ``<Func>InferShape`` and ``<Func>InferType``."""

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
    """Return the shape half and the dtype half of an infer rule, or None without a native kernel.

    They call the functions of the first native kernel, with the attributes that ``Init`` and the kernel
    get: those in ``values``, which no call passes, and those of the call.
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
