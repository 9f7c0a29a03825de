"""One way of calling an operator: its attributes, and which tensors there are."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from ...call import foreign
from ...call.choose import need_somewhere
from ...call.host import specs
from ...call.operator import Operator
from ...call.prepare import normalise
from ...core.spec import Spec
from . import tensors
from .recent import Recent

_sites: Recent[Site] = Recent()


def site_of(bound: Any, arguments: Sequence[Any]) -> Site:
    """Return the site of a call with bound and normalised arguments; equal calls share one.

    Raises ``ArgumentTypeError`` for an attribute that has no text.
    """
    operator: Operator = bound.operator
    # the text of the values tells 1 from 1.0 and True, and 0.0 from -0.0, as equality does not
    key = (id(operator), repr(foreign.described(operator.schema, arguments)))
    found = _sites.get(key)
    if found is None:  # it keeps the operator alive, and so the key its own
        found = _sites.put(key, Site(bound, arguments))
    return found


class Site:
    """An operator with attributes, called on flat arrays.

    Inputs are the tensors that are present, in schema order, lists opened; outputs are the new
    tensors, then the new values of the arguments that the schema writes. Two sites are equal
    when they are of one operator and have equal texts.
    """

    def __init__(self, bound: Any, arguments: Sequence[Any]) -> None:
        """Take bound and normalised arguments; only their tensors' presence is kept."""
        self.bound = bound
        self.operator: Operator = bound.operator
        self.text = foreign.call_text(bound, arguments)
        self._given = json.loads(self.text)[2]
        self.base = self
        self._key: tuple[Any, ...] = (id(self.operator), self.text)
        self._outputs: tuple[Spec, ...] | None = None
        self._plain = not self.operator.schema.mutates

    def __hash__(self) -> int:
        """Return a hash of the operator's identity and the text."""
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        """Whether both are calls of one operator with equal attributes."""
        return isinstance(other, Site) and self._key == other._key

    def __repr__(self) -> str:
        """Return the operator's name."""
        return self.operator.name

    def flatten(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return the tensors among arguments."""
        return tuple(foreign.flatten(self.operator.schema, arguments))

    def arguments(self, flat: Sequence[Any]) -> tuple[Any, ...]:
        """Return arguments in schema order with these in the places of the tensors."""
        found = foreign.unflatten(self.operator.schema, self._given, flat)
        return normalise(self.operator, found)

    def places(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return one value per argument, those of tensors (lists opened into tuples) from ``values``."""
        found = foreign.unflatten(self.operator.schema, self._given, values)
        rows = zip(self.operator.schema.arguments, found, strict=True)
        return tuple(value if argument.type.is_tensor else None for argument, value in rows)

    def settled(self, flat: Sequence[Any]) -> Site:
        """Return the site for these inputs: with outputs, where asking again can give others.

        JAX takes what it was told of a call for granted, so that a site with other outputs must be
        another one. ``base`` is the site for any inputs.
        """
        if self.operator.infer.repeatable:
            return self
        made = copy.copy(self.base)
        made._outputs = tuple(self.base.outputs(flat))  # noqa: SLF001
        made._key = (*self.base._key, made._outputs)  # noqa: SLF001
        return made

    def outputs(self, flat: Sequence[Any]) -> Sequence[Spec]:
        """Return the specs of all outputs; raises what the infer rule does."""
        if self._outputs is not None:
            return self._outputs
        arguments = specs(tensors, self.operator, self.arguments(flat))  # type: ignore[arg-type]
        return (*self.operator.infer(arguments), *foreign.written(self.operator.schema, arguments))

    def check(self, flat: Sequence[Any]) -> None:
        """Raise ``NoKernelError`` where no kernel takes arrays like these, wherever the program runs."""
        arguments = specs(tensors, self.operator, self.arguments(flat))  # type: ignore[arg-type]
        inputs = tuple(arguments[i] for i in self.operator.schema.tensor_positions)
        need_somewhere(self.operator, inputs, tuple(self.outputs(flat)))

    def aliases(self, flat: Sequence[Any]) -> dict[int, int]:
        """Return which output takes the place of which input."""
        written = foreign.written(self.operator.schema, self.places(range(len(flat))))
        first = len(self.outputs(flat)) - len(written)
        return {number: first + k for k, number in enumerate(written)}

    def returned(self, outputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return flat outputs as a call gives them: by the schema, then what else was written.

        JAX's arrays never change, so that an argument written in place comes back as a new one.
        """
        schema = self.operator.schema
        if self._plain or (schema.returns_list and not schema.returns[0].type.alias):
            return tuple(outputs)
        fresh = len(schema.fresh)
        new, left = iter(outputs[:fresh]), iter(outputs[fresh:])
        by_argument = {
            i: tuple(next(left) for _ in given) if isinstance(given, list) else next(left)
            for i, (argument, given) in enumerate(zip(schema.arguments, self._given, strict=True))
            if argument.type.writes and given
        }
        made = [
            by_argument.pop(schema.alias_of(i), None) if result.type.alias else next(new)
            for i, result in enumerate(schema.returns)
        ]
        return (*made, *by_argument.values())
