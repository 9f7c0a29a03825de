"""The rule that all tensors of an elementwise operator have one shape.

A C kernel of two inputs counts the elements of one and reads as many of the other. So
``batch="elementwise"`` says more than how ``vmap`` is done: unless a function tells which shapes
fit, no others are passed on. The check is part of the infer rule, which every host asks before it
prepares a call, and which tracers ask with symbolic sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .errors import InferError
from .infer import FromSpecs, InferRule
from .schema import Schema
from .spec import Spec

_HINT = (
    "where the kernel takes other shapes, give infer= a function of the specs: it raises for shapes that do "
    "not fit, and returns the output's Spec"
)


def elementwise_rule(rule: InferRule, schema: Schema, batch: object) -> InferRule:
    """Return ``rule``, or one that also refuses tensors of different shapes.

    That is where ``batch`` is ``"elementwise"`` and no function tells which shapes fit: ``infer=`` is
    the name of an argument, or absent as the operator has no new outputs.
    """
    given = rule.rule if isinstance(rule, FromSpecs) else None
    if batch != "elementwise" or callable(given) or (given is None and schema.fresh):
        return rule
    return EqualShapes(rule, schema)


class EqualShapes:
    """An infer rule that takes tensors of one shape alone; an absent tensor has none."""

    def __init__(self, rule: InferRule, schema: Schema) -> None:
        """Take the rule that is asked for the outputs of shapes that fit."""
        self.rule, self.schema, self.repeatable = rule, schema, rule.repeatable

    def __call__(self, arguments: Sequence[Any]) -> tuple[Spec, ...]:
        """Return one spec per output; raises ``InferError`` that names each tensor and its shape."""
        named = list(self._named(arguments))
        if not all(_same_shape(named[0][1].shape, spec.shape) for _, spec in named[1:]):
            rule = 'batch="elementwise": all tensors must have one shape'
            seen = ", ".join(f"{name} {_shown(spec.shape)}" for name, spec in named)
            raise InferError(self.schema.qualified_name, rule, seen, hint=_HINT)
        return self.rule(arguments)

    def _named(self, arguments: Sequence[Any]) -> Iterator[tuple[str, Spec]]:
        for position in self.schema.tensor_positions:
            name, value = self.schema.arguments[position].name, arguments[position]
            if isinstance(value, Spec):
                yield name, value
            elif isinstance(value, (list, tuple)):
                rows = ((f"{name}[{number}]", item) for number, item in enumerate(value))
                yield from ((label, item) for label, item in rows if isinstance(item, Spec))


def _shown(shape: Sequence[Any]) -> str:
    return f"({', '.join(map(_size, shape))}{',' if len(shape) == 1 else ''})"


def _size(size: Any) -> str:
    hint = getattr(getattr(size, "node", None), "hint", None)  # of PyTorch's symbol: what the tracer saw
    return str(size if hint is None else hint)


def _same_shape(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return len(left) == len(right) and all(map(_same_size, left, right))


def _same_size(left: Any, right: Any) -> bool:
    equal = left == right
    node = getattr(equal, "node", None)
    if node is None:
        return bool(equal)
    # PyTorch's symbols: a size that depends on data is compared when the program runs
    return bool(node.expect_true(__file__, 0))
