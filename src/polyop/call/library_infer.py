"""Output shapes and dtypes from a library's ``<Func>InferShape`` and ``<Func>InferType``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.dims.infer import check_agreement
from ..core.infer import DefaultRule, InferRule, ShapeAndDtype
from ..core.schema import Schema
from ..core.spec import Spec, are_numbers
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

    return DefaultRule(shapes, str(kernel), kernel), DefaultRule(types, str(kernel), kernel)


class LibraryBesideDims:
    """The infer rule of ``dims=`` for a kernel whose library infers too.

    ``dims=`` gives the shapes. ``InferType`` gives the dtypes, where the library has it and the author says
    nothing. The shapes of ``InferShape`` have to be the same; symbols are not passed to it.
    Whether the library has these functions is read at a call, so that a definition builds no source.
    """

    repeatable = True

    def __init__(
        self, rule: InferRule, schema: Schema, kernel: Kernel, halves: tuple[DefaultRule, DefaultRule]
    ) -> None:
        """Wrap ``rule``, that of ``dims=``; ``halves`` are those of the library of ``kernel``."""
        self.rule, self.subject = rule, schema.qualified_name
        self.kernel: Any = kernel
        self.library = ShapeAndDtype(*halves, len(schema.fresh), schema.qualified_name)

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per output; raises ``InferError``, also where the two disagree about a shape."""
        outputs, kernel = self.rule(arguments), self.kernel
        if kernel.has_infer_shape and are_numbers(arguments):
            shapes = self.library.shapes(arguments)
            check_agreement(self.subject, outputs, shapes, f"{kernel.name}InferShape")
        if not kernel.has_infer_type:
            return outputs
        dtypes = self.library.dtypes(arguments)
        return tuple(Spec(x.shape, dtype, x.device) for x, dtype in zip(outputs, dtypes, strict=True))
