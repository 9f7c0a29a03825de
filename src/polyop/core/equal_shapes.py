"""Check that all tensors of an elementwise operator have the same shape.

An elementwise C kernel of two inputs counts the elements of one input, and reads as many of the other.
Tensors of different shapes would make it read out of bounds. So ``batch="elementwise"`` adds this check to
the infer rule, unless the author's ``infer=`` function decides which shapes fit. Every host evaluates the
infer rule before it prepares a call, and tracers evaluate it with symbolic sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .errors import InferError
from .infer import FromSpecs, InferRule
from .schema import Schema
from .sizes import same_size, shape_text
from .spec import Spec

_HINT = (
    "where the kernel takes other shapes, give infer= a function of the specs: it raises for shapes that do "
    "not fit, and returns the output's Spec"
)


def elementwise_rule(rule: InferRule, schema: Schema, batch: object) -> InferRule:
    """Return ``rule``, with the check added if ``batch`` is ``"elementwise"`` and no function infers shapes.

    That is, ``infer=`` is the name of an argument, or absent because the operator has no new outputs.
    """
    author_rule = rule.rule if isinstance(rule, FromSpecs) else None
    if batch != "elementwise" or callable(author_rule) or (author_rule is None and schema.fresh):
        return rule
    return EqualShapes(rule, schema)


class EqualShapes:
    """An infer rule that requires one shape of all tensors that are passed."""

    def __init__(self, rule: InferRule, schema: Schema) -> None:
        """Wrap ``rule``, which infers the outputs once the shapes are checked."""
        self.rule, self.schema, self.repeatable = rule, schema, rule.repeatable

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per output; raises ``InferError`` that names each tensor and its shape."""
        tensors = list(self._tensors(arguments))
        if not all(_same_shape(tensors[0][1].shape, spec.shape) for _, spec in tensors[1:]):
            rule = 'batch="elementwise": all tensors must have one shape'
            seen = ", ".join(f"{name} {shape_text(spec.shape)}" for name, spec in tensors)
            raise InferError(self.schema.qualified_name, rule, seen, hint=_HINT)
        return self.rule(arguments)

    def _tensors(self, arguments: Sequence[Any]) -> Iterator[tuple[str, Spec]]:
        """Yield the name and spec of each tensor, also of those in lists."""
        for position in self.schema.tensor_positions:
            name, value = self.schema.arguments[position].name, arguments[position]
            if isinstance(value, Spec):
                yield name, value
            elif isinstance(value, (list, tuple)):
                rows = ((f"{name}[{number}]", item) for number, item in enumerate(value))
                yield from ((label, item) for label, item in rows if isinstance(item, Spec))


def _same_shape(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return len(left) == len(right) and all(map(same_size, left, right))
