"""How one call is run on this device: what is redistributed, exchanged, computed, cut and wrapped."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from ....call.bound import BoundOperator
from ....call.foreign import flatten
from ....call.host import map_tensors
from ....call.prepare import normalise
from ....core.schema import Schema
from ....sharding.of_call import sharding_rule
from ....sharding.placement import REPLICATE
from ....sharding.plan import Plan, plan
from ....sharding.rule import ShardingRule
from .. import tensors
from . import checks, layouts
from .halo import Exchange, exchanges
from .local import LocalCall, run_local


@dataclass(frozen=True)
class Division:
    """How calls with the same specs, placements and attributes are run.

    ``targets`` has the spec that each flat input is brought to, None where it stays. ``results`` has the spec
    of each new output.
    """

    bound: BoundOperator
    mesh: Any
    rule: ShardingRule
    plan: Plan
    targets: tuple[Any, ...]
    exchanges: tuple[Exchange, ...]
    local: LocalCall
    results: tuple[Any, ...]

    def is_for(self, arguments: Sequence[Any]) -> bool:
        """Whether it was made for this very mesh; equal ones may have other process groups."""
        return any(
            x.device_mesh is self.mesh
            for x in flatten(self.bound.schema, arguments)
            if isinstance(x, DTensor)
        )

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        """Return the new outputs as the overload does."""
        schema, name = self.bound.schema, self.bound.name
        inputs = list(flatten(schema, arguments))
        locals_: list[Any] = []
        for x, target in zip(inputs, self.targets, strict=True):
            local = x._local_tensor if isinstance(x, DTensor) else x
            locals_.append(local if target is None else layouts.redistributed(local, x._spec, target, name))
        coordinate = self.mesh.get_coordinate()
        if coordinate is None:  # this process has no part in the mesh
            outputs: Any = [torch.empty(0, dtype=spec.tensor_meta.dtype) for spec in self.results]
        else:
            for exchange in self.exchanges:
                locals_[exchange.input] = exchange(locals_[exchange.input], self.mesh, coordinate)
            outputs = run_local(self.local, tuple(coordinate), arguments, locals_)
        wrapped = [layouts.wrap(*row) for row in zip(outputs, self.results, strict=True)]
        if schema.returns_list:
            return wrapped
        return wrapped[0] if len(wrapped) == 1 else tuple(wrapped) or None


def divide(bound: BoundOperator, overload: Any, arguments: tuple[Any, ...]) -> Division:
    """Return how a call is run; raises ``HostError`` if it cannot be."""
    operator, schema = bound.operator, bound.schema
    mesh = checks.mesh_of(operator, arguments)
    specs = map_tensors(operator, arguments, lambda name, value, argument: tensors.spec(value))
    rule = _without_placed(sharding_rule(operator, normalise(operator, specs)))
    inputs = list(flatten(schema, arguments))
    checks.need_claims(operator, inputs)
    replicated = (REPLICATE,) * mesh.ndim
    placements = [layouts.own_placements(x._spec) if isinstance(x, DTensor) else replicated for x in inputs]
    written = list(_written_inputs(schema, arguments))
    wanted = [None] * (len(rule.outputs) - len(written)) + [placements[k] for k in written]
    chosen = plan(rule, tuple(mesh.shape), placements, wanted)
    targets = tuple(_target(x, mesh, needed) for x, needed in zip(inputs, chosen.inputs, strict=True))
    fresh = rule.outputs[: len(rule.outputs) - len(written)]
    results = tuple(
        layouts.spec_with(mesh, placed, layouts.dense_meta(spec.shape, tensors.TORCH_DTYPES[spec.dtype.name]))
        for spec, placed in zip(fresh, chosen.outputs, strict=False)
    )
    return Division(
        bound,
        mesh,
        rule,
        chosen,
        targets,
        tuple(exchanges(rule, chosen, tuple(mesh.shape))),
        LocalCall.of(bound, overload, rule, chosen, tuple(mesh.shape), len(fresh)),
        results,
    )


def _without_placed(rule: ShardingRule) -> ShardingRule:
    strategies = tuple(strategy for strategy in rule.strategies if not strategy.placed)
    return dataclasses.replace(rule, strategies=strategies)


def _target(x: Any, mesh: Any, placements: Any) -> Any:
    """Return the spec that an input is brought to, None if it has it."""
    if not isinstance(x, DTensor):
        return None
    spec = layouts.spec_with(mesh, placements, x._spec.tensor_meta)
    return None if spec == x._spec else spec


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
