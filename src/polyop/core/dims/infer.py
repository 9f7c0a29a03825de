"""The infer rule of an operator with ``dims=``: output shapes from the entries, and dtypes beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..dtypes import DType, dtype
from ..errors import ArgumentTypeError, InferError
from ..infer import InferRule, check_size, first_device, reads_number
from ..limits import shown
from ..schema import Schema
from ..sizes import same_size, shape_text
from ..spec import Spec
from .dims import Dims

_HINT = (
    "beside dims=, infer= gives the dtype of the output alone: a dtype or the name of a tensor argument, or "
    "a tuple of them for several outputs; a function of specs goes without dims="
)


def infer_from_dims(dims: Dims, schema: Schema, infer: Any = None) -> FromDims:
    """Return the infer rule of ``dims``.

    ``infer`` gives the dtypes of the outputs: a dtype, the name of a tensor argument with the same dtype,
    or a tuple with one of these per output. Without it, they are the dtype of the first tensor that is
    passed.

    Raises ``InferError`` for another ``infer``, such as a function: it would give the shapes a second time.
    """
    return FromDims(dims, schema, infer)


class FromDims:
    """The shapes of the outputs are those of :class:`Dims`; also checks the shapes of all arguments."""

    repeatable = True

    def __init__(self, dims: Dims, schema: Schema, infer: Any = None) -> None:
        self.dims, self.schema, self.subject = dims, schema, f"{schema.qualified_name}: dims"
        outputs = len(schema.fresh)
        values = infer if isinstance(infer, (tuple, list)) else (infer,) * outputs
        if len(values) != outputs:
            rule = f"must give {outputs} dtypes, one per output"
            raise InferError(f"{schema.qualified_name}: infer", rule, shown(infer), hint=_HINT)
        self.dtypes = tuple(map(self._dtype_source, values))

    def reads_number(self, name: str, kernel: Any) -> bool:
        """Whether a number decides the shapes: one that ``dims=`` names."""
        del kernel
        return name in re.findall(r"\w+", str(self.dims))

    def _dtype_source(self, value: Any) -> DType | int | None:
        """Return a dtype, or the position of the argument that has it, or None for the first tensor's."""
        names = {self.schema.arguments[i].name: i for i in self.schema.tensor_positions}
        if value is None or (isinstance(value, str) and value in names):
            return None if value is None else names[value]
        try:
            return dtype(value)
        except ArgumentTypeError:
            rule = f"must give a dtype or name a tensor argument, one of {list(names)}"
            raise InferError(f"{self.schema.qualified_name}: infer", rule, shown(value), hint=_HINT) from None

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per output; raises ``InferError``."""
        shapes = [_shape(arguments[i]) for i in self.schema.tensor_positions]
        attributes = {attribute.name: arguments[i] for i, attribute in self.schema.attributes()}
        sizes = self.dims.match(shapes, attributes)
        device = first_device(arguments)
        return tuple(
            check_size(Spec(shape, self._dtype(source, arguments), device), self.subject, None)
            for shape, source in zip(self.dims.output_shapes(sizes, attributes), self.dtypes, strict=True)
        )

    def _dtype(self, source: DType | int | None, arguments: Sequence[Any]) -> DType:
        if isinstance(source, DType):
            return source
        positions = self.schema.tensor_positions if source is None else (source,)
        for position in positions:
            for spec in _specs(arguments[position]):
                return spec.dtype
        names = " and ".join(self.schema.arguments[i].name for i in positions)
        reason = f"{names} is absent" if names else "there is no tensor argument"
        rule = f"the dtype of the output cannot be derived, because {reason}"
        raise InferError(self.subject, rule, hint=_HINT)


class DisagreementError(InferError):
    """``dims=`` and what infers beside it give an output two shapes."""


class BesideDims:
    """The rule of ``dims=`` beside a function that infers too: the function gives the dtypes.

    Both give the shapes: a call for which they differ is refused.
    """

    def __init__(self, rule: FromDims, function: InferRule, name: str, where: object = None) -> None:
        """Take both rules; ``name`` and ``where`` say in errors what the function is, and where."""
        self.rule, self.function, self.name, self.where = rule, function, name, where
        self.repeatable = function.repeatable

    def reads_number(self, name: str, kernel: Any) -> bool:
        """Whether a number decides what one of the two rules gives."""
        return self.rule.reads_number(name, kernel) or reads_number(self.function, name, kernel)

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per output; raises ``InferError``, also where the two disagree about a shape."""
        outputs, others = self.rule(arguments), self.function(arguments)
        subject = self.rule.schema.qualified_name
        check_agreement(subject, outputs, [other.shape for other in others], self.name, self.where)
        return tuple(Spec(x.shape, y.dtype, x.device) for x, y in zip(outputs, others, strict=True))


def check_agreement(
    subject: str, outputs: Sequence[Spec], shapes: Sequence[Sequence[Any]], name: str, where: object = None
) -> None:
    """Raise ``DisagreementError`` unless the outputs by ``dims=`` have the shapes that ``name`` gives."""
    for number, (output, shape) in enumerate(zip(outputs, shapes, strict=True)):
        if len(output.shape) != len(shape) or not all(map(same_size, output.shape, shape)):
            rule = f"dims= gives output {number} the shape {shape_text(output.shape)}"
            raise DisagreementError(subject, f"{rule}, and {name} {shape_text(shape)}", where=where)


def _specs(value: Any) -> Iterator[Spec]:
    """Yield the specs of an argument: one, none if it is absent, several for a list."""
    if isinstance(value, Spec):
        yield value
    elif isinstance(value, (tuple, list)):
        yield from (item for item in value if isinstance(item, Spec))


def _shape(value: Any) -> Any:
    """Return the shape of an argument, None if it is absent, a tuple of them for a list."""
    if isinstance(value, (tuple, list)):
        return tuple(map(_shape, value))
    return value.shape if isinstance(value, Spec) else None
