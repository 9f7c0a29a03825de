"""Refuse calls with DTensors: plain tensors beside them, two meshes, shards without any claim."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from ....call.host import tensors_of
from ....call.operator import Operator
from ....core.errors import FallbackWarning, HostError
from ....kernels.base import LoopKernelBase
from ....sharding.of_call import is_claimed
from ....sharding.placement import Placements, placements_text
from ....sharding.plan import Plan, plan
from ....sharding.rule import ShardingRule


def mesh_of(operator: Operator, arguments: Sequence[Any]) -> Any:
    """Return the mesh of all DTensors; raises ``HostError`` for two meshes, and for a plain tensor."""
    rows = _tensors(operator, arguments)
    derivatives = _derivatives(operator)
    first, mesh = next((name, x.device_mesh) for name, x in rows if isinstance(x, DTensor))
    for name, x in rows:
        if not isinstance(x, DTensor):
            if x.dim() and name not in derivatives:
                raise _plain(operator, name, x, first)
        elif x.device_mesh != mesh:
            rule = f"{name} must be on the mesh of {first}, {mesh}"
            hint = "bring both to one mesh: DTensor.from_local(local, mesh, placements)"
            raise HostError(operator.name, rule, x.device_mesh, where=operator.origin, hint=hint)
    return mesh


def _derivatives(operator: Operator) -> set[str]:
    """Return the arguments of a derived operator that are gradients of outputs, or tangents.

    Autograd gives whole zeros for an output that is not used.
    """
    schema = operator.schema
    names = [argument.name for argument in schema.tensor_arguments]
    kernels = [kernel for kernel in operator.kernels if isinstance(kernel, LoopKernelBase)]
    return {*names[len(names) - kernels[0].linear_tensors :]} if kernels else set()


def _plain(operator: Operator, name: str, x: torch.Tensor, first: str) -> HostError:
    rule = f"{name} must be a DTensor, as {first} is"
    seen = f"{type(x).__name__} of shape {tuple(x.shape)}"
    hint = (
        f"if every device has the whole of {name}: DTensor.from_local({name}, mesh, [Replicate()]); if only "
        f"one device has it: distribute_tensor({name}, mesh, [Replicate()]); they take one placement per "
        "axis of the mesh"
    )
    subject = operator.part_of or operator.name  # the author called the operator that the part belongs to
    return HostError(subject, rule, seen, where=operator.origin, hint=hint)


def need_claims(operator: Operator, arguments: Sequence[Any]) -> None:
    """Raise ``HostError`` if an input is sharded, and nothing says how the operator is split."""
    if not is_claimed(operator):
        for name, x in _tensors(operator, arguments):
            if isinstance(x, DTensor) and not all(p.is_replicate() or p.is_partial() for p in x.placements):
                raise _unclaimed(operator, name, x.placements)


def _tensors(operator: Operator, arguments: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return the tensors of a call with the names of their arguments."""
    return [
        row
        for position in operator.schema.tensor_positions
        for row in tensors_of(operator, operator.schema.arguments[position], arguments[position])
    ]


_gathered: set[str] = set()


def warn_of_gathering(operator: Operator, rule: ShardingRule, inputs: Sequence[Any]) -> None:
    """Give a ``FallbackWarning``, once for each operator, if it is sharded and no dimension can be split."""
    if rule.splits or operator.dims is None or operator.name in _gathered:
        return
    if not any(isinstance(x, DTensor) and any(p.is_shard() for p in x.placements) for x in inputs):
        return
    _gathered.add(operator.name)
    text = (
        f"{operator.name}: a sharded tensor is gathered, and each device computes the whole, because "
        f"{operator.dims} lets no dimension of the call be split; claim one with parallel=, sum=, max=, min= "
        "or halo=, or give it the whole tensor"
    )
    warnings.warn(FallbackWarning(text), stacklevel=2)


def _unclaimed(operator: Operator, name: str, placements: Any) -> HostError:
    rule = f"argument {name} is sharded, and nothing says how the operator is split"
    whole = (
        "give it the whole tensor (x.full_tensor(), x.redistribute(mesh, [Replicate()])), or call it in "
        "torch.distributed.tensor.experimental.local_map, which runs it on the local tensors"
    )
    hint = (
        'dims= with parallel= says which dimensions may be split, and batch="elementwise" that all may be; '
        f"or {whole}"
    )
    seen = f"placements {', '.join(map(str, placements))}"
    if operator.part_of:
        rule = f"argument {name} is sharded, and nothing says how what is saved for a gradient is split"
        hint = (
            "use backward() or torch.autograd.grad, which differentiate the calls of the devices, in place "
            f"of torch.func, forward mode and vmap; or {whole}"
        )
    return HostError(operator.part_of or operator.name, rule, seen, where=operator.origin, hint=hint)


def plan_of(
    operator: Operator,
    rule: ShardingRule,
    mesh: tuple[int, ...],
    placements: Sequence[Placements],
    written: Sequence[int],
) -> Plan:
    """Return the plan of a call; raises ``HostError`` if an input that is written would have to be moved."""
    fixed = [placements[k] for k in written]
    wanted = (*(None,) * (len(rule.outputs) - len(written)), *fixed)
    try:
        return plan(rule, mesh, placements, wanted, fixed=written)
    except LookupError:
        raise moved(operator, rule, map(placements_text, fixed)) from None


def moved(operator: Operator, rule: ShardingRule, layouts: Iterable[object]) -> HostError:
    """Return the error for tensors that are written in place, and do not lie as a strategy needs them."""
    rule_text = "writes a tensor in place, and cannot do that where its elements are"
    seen = " and ".join(map(str, layouts))
    hint = (
        "redistribute the tensor first, to a layout of "
        f"{'; '.join(map(str, rule.strategies))}; or return a new tensor"
    )
    return HostError(operator.name, rule_text, seen, where=operator.origin, hint=hint)
