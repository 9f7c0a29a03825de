"""Run one call on this device: redistribute, exchange edges, compute, cut, and wrap the results."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from ....call.bound import BoundOperator
from ....call.foreign import flatten
from ....call.host import specs
from ....call.prepare import normalise
from ....core.locks import cached_property
from ....core.schema import Schema
from ....sharding.of_call import sharding_rule
from ....sharding.placement import REPLICATE, Placements
from ....sharding.rule import AxisStrategy, ShardingRule
from .. import tensors
from . import layouts, refusals
from . import symbolic as symbolic_sizes
from .halo import Exchange, exchanges
from .local import LocalCall, run_local


@dataclass(frozen=True)
class Division:
    """How calls with the same specs, placements and attributes are run.

    ``moves`` has for each flat input the spec that it has and the one that it is brought to, None where it
    stays. ``results`` has the spec of each new output.
    """

    bound: BoundOperator
    mesh: Any
    moves: tuple[tuple[Any, Any] | None, ...]
    exchanges: tuple[Exchange, ...]
    local: LocalCall
    results: tuple[Any, ...]

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        """Return the new outputs as the overload does."""
        schema, name = self.bound.schema, self.bound.name
        inputs = flatten(schema, arguments)
        locals_: list[Any] = [x._local_tensor if isinstance(x, DTensor) else x for x in inputs]
        if self.stays and self.local.is_plain(locals_):
            outputs: Any = self.local.on_plain(locals_)
        else:
            for k, move in enumerate(self.moves):
                if move is not None:
                    locals_[k] = layouts.redistributed(locals_[k], *move, name)
            outputs = self._outputs(arguments, locals_)
        wrapped = [layouts.wrap(*row) for row in zip(outputs, self.results, strict=True)]
        if schema.returns_list:
            return wrapped
        return wrapped[0] if len(wrapped) == 1 else tuple(wrapped) or None

    @cached_property
    def stays(self) -> bool:
        """Whether the local tensors are what the kernel takes, and its outputs what belongs to the device."""
        alone = self.mesh.get_coordinate() is None
        return not (alone or any(self.moves) or self.exchanges or any(self.local.pieces))

    def _outputs(self, arguments: tuple[Any, ...], locals_: list[Any]) -> Any:
        """Return the local outputs; ``locals_`` are in the layouts of the plan."""
        coordinate = self.mesh.get_coordinate()
        if coordinate is None:  # this process has no part in the mesh
            return [torch.empty(0, dtype=spec.tensor_meta.dtype) for spec in self.results]
        for exchange in self.exchanges:
            locals_[exchange.input] = exchange(locals_[exchange.input], self.mesh, coordinate)
        return run_local(self.local, tuple(coordinate), arguments, locals_)


def divide(
    bound: BoundOperator,
    overload: Any,
    arguments: tuple[Any, ...],
    usable: Callable[[AxisStrategy], bool] | None = None,
) -> Division:
    """Return how a call is run, by strategies that are ``usable``; raises ``HostError`` if it cannot be."""
    operator, schema = bound.operator, bound.schema
    mesh = refusals.mesh_of(operator, arguments)
    shape = tuple(mesh.shape)
    inputs = list(flatten(schema, arguments))
    refusals.need_claims(operator, arguments)
    normal = normalise(operator, specs(tensors, operator, arguments))
    fresh = operator.infer(normal)
    global_inputs = list(flatten(schema, normal))
    symbolic = symbolic_sizes.is_symbolic(global_inputs)
    rule = sharding_rule(operator, symbolic_sizes.with_numbers(operator, normal) if symbolic else normal)
    refusals.warn_of_gathering(operator, rule, inputs)
    if symbolic:
        rule = symbolic_sizes.for_all_sizes(operator, rule)
    written = tuple(_written_inputs(schema, arguments))
    placements = [_placements(x, mesh) for x in inputs]
    if usable is not None:
        rule = dataclasses.replace(rule, strategies=tuple(filter(usable, rule.strategies)))
    writable = _writable(rule, written)
    chosen = refusals.plan_of(operator, writable, shape, placements, written)
    moves = tuple(_move(x, mesh, needed) for x, needed in zip(inputs, chosen.inputs, strict=True))
    if any(moves[k] for k in written):  # slices in another order, as of FSDP over tensor parallel
        raise refusals.moved(operator, writable, (inputs[k].placements for k in written))
    if symbolic:
        symbolic_sizes.add_conditions(chosen, shape, global_inputs, operator)
    results = tuple(
        layouts.spec_with(mesh, placed, layouts.dense_meta(spec.shape, tensors.TORCH_DTYPES[spec.dtype.name]))
        for spec, placed in zip(fresh, chosen.outputs, strict=False)
    )
    return Division(
        bound,
        mesh,
        moves,
        tuple(exchanges(rule, chosen, shape)),
        LocalCall.of(bound, overload, rule, chosen, shape, fresh, normal),
        results,
    )


def _placements(x: Any, mesh: Any) -> Placements:
    return layouts.own_placements(x._spec) if isinstance(x, DTensor) else (REPLICATE,) * mesh.ndim


def _writable(rule: ShardingRule, written: Sequence[int]) -> ShardingRule:
    """Return the rule with the strategies that write a tensor where it is: without a halo around it."""

    def stays(strategy: AxisStrategy) -> bool:
        results = strategy.outputs[len(strategy.outputs) - len(written) :]
        return all(strategy.inputs[k] == result for k, result in zip(written, results, strict=True))

    if not written:
        return rule
    kept = tuple(one for one in rule.strategies if not one.has_halo and not one.placed and stays(one))
    return dataclasses.replace(rule, strategies=kept)


def _move(x: Any, mesh: Any, placements: Placements) -> tuple[Any, Any] | None:
    """Return the spec of an input and the one that it is brought to; None if it has it."""
    if isinstance(x, DTensor):
        source = x._spec
    else:  # every device has the whole
        source = layouts.spec_with(mesh, (REPLICATE,) * mesh.ndim, layouts.dense_meta(x.shape, x.dtype))
    target = layouts.spec_with(mesh, placements, source.tensor_meta)
    return None if target == source else (source, target)


def _written_inputs(schema: Schema, arguments: Sequence[Any]) -> Iterator[int]:
    """Yield the number of each flat input that the operator writes."""
    numbers = itertools.count()
    for position in schema.tensor_positions:
        value = arguments[position]
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if item is not None:
                number = next(numbers)
                if schema.arguments[position].type.writes:
                    yield number
