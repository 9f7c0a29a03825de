"""The collectives of a call and of its gradient.

The gradient of an input gets the layout of that input. Where an input is whole on devices that compute
different slices, each has an addend of its gradient:

    forward     x: S(0), w: R              ->  out: S(0)
    backward    x: S(0), w: R, d_out: S(0) ->  d_x: S(0), d_w: P(sum), then an all-reduce of d_w
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..call.operator import Operator
from ..call.rule import Rule, saving_of
from ..call.uses import Uses, used_by_rule
from ..core.spec import Spec
from ..rules.loops.gradient import GradientRule
from .of_call import sharding_rule
from .placement import REPLICATE, Partial, Placement, Placements, Shard
from .plan import Plan, plan, plan_with, spec_bytes
from .rule import AxisStrategy, ShardingRule
from .transition import Collective, transition


@dataclass(frozen=True)
class TensorLayout:
    """A tensor of a call: its name, the spec of the whole, and a placement for each mesh axis."""

    name: str
    spec: Spec
    placements: Placements

    @property
    def gradient(self) -> TensorLayout:
        """The gradient, which is laid out like the tensor; that of a partial tensor is whole."""
        whole = tuple(REPLICATE if isinstance(p, Partial) else p for p in self.placements)
        return TensorLayout(f"gradient of {self.name}", self.spec, whole)


@dataclass(frozen=True)
class Call:
    """A forward call on a mesh: how it is split along each axis, its flat inputs and outputs."""

    operator: Operator
    arguments: Sequence[Any]
    rule: ShardingRule
    strategies: tuple[AxisStrategy, ...]
    mesh: tuple[int, ...]
    inputs: Sequence[TensorLayout]
    outputs: Sequence[TensorLayout]

    def forward(self) -> tuple[Collective, ...]:
        """Return the collectives of the call, with those that bring its outputs to their layouts."""
        layouts = [tensor.placements for tensor in self.inputs]
        chosen = plan_with(self.rule, self.mesh, self.strategies, layouts, _layouts(self.outputs))
        assert chosen is not None  # it was planned with these layouts
        return tuple(by_name(chosen, self.inputs, self.outputs))

    def backward(self) -> tuple[Collective, ...]:
        """Return the collectives of the gradients of all inputs of floating point."""
        rule = self.operator.gradient
        if rule is None:
            return ()
        return tuple(self._of_part() if isinstance(rule, GradientRule) else self._by_strategies())

    def _of_part(self) -> Iterator[Collective]:
        """Yield the collectives of ``<name>__backward``, as the derived rule calls it."""
        saving = saving_of(self.operator, self.arguments)
        operator = self.operator if saving is None else saving.operator
        kept = [*self.outputs, *self._temporaries(operator)]
        gradients = [tensor.gradient for tensor in self.outputs]
        absent = [None] * (len(kept) - len(gradients))
        vjp: Any = operator.gradient
        call = vjp.at(self.arguments).part_call(
            self.arguments,
            [tensor.spec for tensor in kept],
            [*(tensor.spec for tensor in gradients), *absent],
            (True,) * len(self.arguments),
        )
        if call is None:  # no output is of floating point
            return
        flat = iter(self.inputs)
        positions = operator.schema.tensor_positions
        inputs = [None if self.arguments[i] is None else next(flat) for i in positions]
        wanted = [None if tensor is None else tensor.gradient for tensor in inputs]
        for target, number in zip(wanted, call.plan.shared_with, strict=True):
            if target is not None and number is not None:
                source = gradients[number].placements
                yield from transition(
                    target.name, spec_bytes(target.spec), self.mesh, source, target.placements
                )
        if any(call.plan.computed):
            tensors = [*inputs, *kept, *gradients, *absent]
            rows = zip(tensors, call.arguments[: len(tensors)], strict=True)
            read = [tensor for tensor, argument in rows if tensor is not None and argument is not None]
            targets = [t if flag else None for t, flag in zip(wanted, call.plan.computed, strict=True)]
            rule = sharding_rule(call.part.operator, call.arguments)
            chosen = plan(rule, self.mesh, [t.placements for t in read], _layouts(targets))
            yield from by_name(chosen, read, targets)

    def _temporaries(self, operator: Operator) -> list[TensorLayout]:
        """Return what the operator gives beside the outputs, laid out as its own plan does."""
        if operator is self.operator:
            return []
        rule = sharding_rule(operator, self.arguments)
        more = len(rule.outputs) - len(self.outputs)
        wanted = [*(tensor.placements for tensor in self.outputs), *[None] * more]
        chosen = plan(rule, self.mesh, [tensor.placements for tensor in self.inputs], wanted)
        rows = list(zip(rule.outputs, chosen.outputs, strict=True))[len(self.outputs) :]
        return [TensorLayout(f"saved {i}", spec, placements) for i, (spec, placements) in enumerate(rows)]

    def _by_strategies(self) -> Iterator[Collective]:
        """Yield the collectives of an author's gradient, which splits as the forward call does."""
        uses = self._uses()
        inputs = [tensor for tensor, flag in zip(self.inputs, uses.inputs, strict=True) if flag]
        outputs = uses.outputs
        flags = outputs if isinstance(outputs, tuple) else (outputs,) * len(self.outputs)
        kept = [tensor for tensor, flag in zip(self.outputs, flags, strict=False) if flag]
        real = [tensor.spec.dtype.is_floating for tensor in self.inputs]
        rule = _adjoint_rule(self.rule, uses.inputs, flags)
        strategies = tuple(_adjoint(one, uses.inputs, flags) for one in self.strategies)
        targets = [t.gradient if flag else None for t, flag in zip(self.inputs, real, strict=True)]
        gradients = [tensor.gradient for tensor in self.outputs]
        read = [*inputs, *kept, *gradients]
        layouts = [tensor.placements for tensor in read]
        chosen = plan_with(rule, self.mesh, strategies, layouts, _layouts(targets))
        assert chosen is not None  # no input of an adjoint strategy is partial
        yield from by_name(chosen, read, targets)

    def _uses(self) -> Uses:
        """Return which flat inputs, and which outputs, the gradient rule reads."""
        rule, schema = self.operator.gradient, self.operator.schema
        uses = None
        if isinstance(rule, Rule):
            uses = rule.reads(self.arguments, len(self.outputs))
        if uses is None:
            uses = used_by_rule(rule, len(schema.arguments))
        flags: list[bool] = []
        for position in schema.tensor_positions:
            value = self.arguments[position]
            items = value if isinstance(value, (tuple, list)) else (value,)
            flags += [uses.inputs[position]] * sum(item is not None for item in items)
        return Uses(tuple(flags), uses.outputs)


def _layouts(tensors: Sequence[TensorLayout | None]) -> list[Placements | None]:
    return [None if tensor is None else tensor.placements for tensor in tensors]


def _adjoint_rule(
    rule: ShardingRule, inputs_read: Sequence[bool], outputs_read: Sequence[bool]
) -> ShardingRule:
    """Return the tensors of a gradient: what it reads, then the gradients of the outputs; and its results."""
    inputs = (
        *itertools.compress(rule.inputs, inputs_read),
        *itertools.compress(rule.outputs, outputs_read),
        *rule.outputs,
    )
    return ShardingRule(rule.operator, inputs, rule.inputs, ())


def _adjoint(
    strategy: AxisStrategy, inputs_read: Sequence[bool], outputs_read: Sequence[bool]
) -> AxisStrategy:
    """Return the strategy of a gradient that splits as the forward call does.

    An input that is whole in a split gets a sum. An output that is a sum has one gradient, which every slice
    needs; so does a largest or smallest element.
    """
    results = tuple(REPLICATE if isinstance(p, Partial) else p for p in strategy.outputs)
    sources = (REPLICATE if isinstance(p, Partial) else p for p in strategy.inputs)
    inputs = (
        *itertools.compress(sources, inputs_read),
        *itertools.compress(results, outputs_read),
        *results,
    )
    missing: Placement = Partial("sum") if strategy.name else REPLICATE
    gradients = tuple(p if isinstance(p, Shard) else missing for p in strategy.inputs)
    return replace(strategy, inputs=inputs, outputs=gradients)


def by_name(
    chosen: Plan, inputs: Sequence[TensorLayout], outputs: Sequence[TensorLayout | None]
) -> Iterator[Collective]:
    """Yield the collectives of a plan by the tensors' names."""
    names = {f"input {i}": tensor.name for i, tensor in enumerate(inputs)}
    names |= {f"output {i}": tensor.name for i, tensor in enumerate(outputs) if tensor is not None}
    yield from (replace(one, tensor=names[one.tensor]) for one in chosen.collectives)
