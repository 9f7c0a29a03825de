"""Compute on one device: run the operator on its slices, and cut the results to what belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from ....call.bound import BoundOperator
from ....core.locks import cached_property
from ....core.schema import Schema
from ....core.spec import Spec
from ....sharding.local_call import local_call
from ....sharding.placement import Partial, Placements, Shard
from ....sharding.plan import Plan
from ....sharding.ranges import Slice, output_offset, slices
from ....sharding.rule import AxisStrategy, ShardingRule
from .. import tensors
from ..run import run

Function = TypeVar("Function", bound=Callable[..., Any])


def per_rank(function: Function) -> Function:
    """Return a function that runs once for each simulated device under PyTorch's ``LocalTensorMode``.

    Elsewhere a process is one device, and the function runs as it is. It must not communicate.
    """
    try:
        from torch.distributed._local_tensor import maybe_run_for_local_tensor
    except ImportError:  # this PyTorch does not simulate devices
        return function
    wrapped: Any = maybe_run_for_local_tensor(function)
    return wrapped  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class LocalCall:
    """The part of a call that runs on one device.

    ``inputs`` and ``outputs`` are the placements of the flat inputs and new outputs, ``specs`` the new
    outputs' specs of the whole. ``normal`` are the arguments as kernels take them, with specs for tensors.
    ``pieces`` has for each mesh axis what its devices compute, None where slices
    have no halo and need not know their place.
    """

    bound: BoundOperator
    overload: Any
    strategies: tuple[AxisStrategy, ...]
    inputs: tuple[Placements, ...]
    outputs: tuple[Placements, ...]
    specs: tuple[Spec, ...]
    normal: tuple[Any, ...]
    pieces: tuple[list[Slice] | None, ...]

    @classmethod
    def of(
        cls,
        bound: BoundOperator,
        overload: Any,
        rule: ShardingRule,
        plan: Plan,
        mesh: Sequence[int],
        fresh: Sequence[Spec],
        normal: tuple[Any, ...],
    ) -> LocalCall:
        """Return the local part of a plan; ``fresh`` are the specs of the new outputs."""
        pieces = tuple(
            slices(rule, strategy, count) if count > 1 and (strategy.has_halo or strategy.placed) else None
            for strategy, count in zip(plan.strategies, mesh, strict=True)
        )
        outputs = plan.outputs[: len(fresh)]
        return cls(bound, overload, plan.strategies, plan.inputs, outputs, tuple(fresh), normal, pieces)

    @cached_property
    def split(self) -> tuple[tuple[int, int], ...]:
        """The inputs that are split, by number, each with the dimension."""
        rows = enumerate(self.inputs)
        return tuple((k, p.dim) for k, row in rows for p in row if isinstance(p, Shard))

    def is_plain(self, inputs: Sequence[Any]) -> bool:
        """Whether the inputs are ordinary tensors with elements, and nobody watches the dispatcher."""
        return (
            all(type(x) is torch.Tensor for x in inputs)
            and all(inputs[k].shape[dim] for k, dim in self.split)
            and not torch._C._len_torch_dispatch_stack()
        )

    def on_plain(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs for inputs that are plain, where no slice has a halo or needs its place."""
        return tensors.as_outputs(run(self.bound, replaced(self.bound.schema, self.normal, inputs)))

    def run(
        self, coordinate: tuple[int, ...], arguments: tuple[Any, ...], inputs: Sequence[Any]
    ) -> list[Any]:
        """Return the new outputs that belong to the device at ``coordinate`` of the mesh."""
        own = self._own(coordinate)
        sizes = self.sizes(coordinate, inputs)
        if 0 in sizes:
            return self.without_elements(sizes)
        plain = not torch._C._len_torch_dispatch_stack() and all(type(x) is torch.Tensor for x in inputs)
        arguments = replaced(self.bound.schema, self.normal if plain else arguments, inputs)
        bound, arguments = local_call(self.bound, self.strategies, own, arguments)
        if plain:  # nobody watches the dispatcher
            result = run(bound, arguments)
        else:
            positional, keywords = bound.schema.split(arguments)
            overload = self.overload if bound is self.bound else bound.torch
            result = overload(*positional, **keywords)
        return [self._cut(output, k, own) for k, output in enumerate(tensors.as_outputs(result))]

    def _own(self, coordinate: tuple[int, ...]) -> list[Slice | None]:
        """Return what the device computes along each mesh axis."""
        return [None if row is None else row[k] for row, k in zip(self.pieces, coordinate, strict=True)]

    def sizes(self, coordinate: tuple[int, ...], inputs: Sequence[Any]) -> list[int | None]:
        """Return how many elements the device computes along each mesh axis; None where nothing is split."""
        return [self._size(axis, piece, inputs) for axis, piece in enumerate(self._own(coordinate))]

    def _size(self, axis: int, piece: Slice | None, inputs: Sequence[Any]) -> int | None:
        if piece is not None:
            return piece.output.size
        for x, placements in zip(inputs, self.inputs, strict=True):
            placement = placements[axis]
            if isinstance(placement, Shard):
                size: int = x.shape[placement.dim]
                return size
        return None

    def _cut(self, output: torch.Tensor, number: int, own: Sequence[Slice | None]) -> torch.Tensor:
        """Return what belongs to the device of an output of an extended slice."""
        for piece, placement in zip(own, self.outputs[number], strict=True):
            if piece is not None and isinstance(placement, Shard):
                output = output.narrow(placement.dim, output_offset(piece), piece.output.size)
        return output.contiguous()

    def without_elements(self, sizes: Sequence[Any]) -> list[torch.Tensor]:
        """Return the new outputs of an empty slice."""
        return [self._without_elements(k, sizes) for k in range(len(self.outputs))]

    def _without_elements(self, number: int, sizes: Sequence[Any]) -> torch.Tensor:
        """Return the output of an empty slice: no elements, or what the reduction starts with."""
        spec = self.specs[number]
        shape, op = list(spec.shape), "sum"
        for size, placement in zip(sizes, self.outputs[number], strict=True):
            if isinstance(placement, Shard):
                shape[placement.dim] = size
            elif isinstance(placement, Partial):
                op = placement.op
        kind = tensors.TORCH_DTYPES[spec.dtype.name]
        return torch.full(shape, _start(op, kind), dtype=kind, device=spec.device)


def _start(op: str, kind: torch.dtype) -> Any:
    """Return what a reduction starts with."""
    if op == "sum":
        return 0
    if kind is torch.bool:
        return op == "min"
    if kind.is_floating_point:
        return float("-inf") if op == "max" else float("inf")
    return torch.iinfo(kind).min if op == "max" else torch.iinfo(kind).max


def replaced(schema: Schema, arguments: Sequence[Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments with the flat ``inputs`` in place of the tensors that are present."""
    remaining = iter(inputs)

    def items(value: Any) -> Iterator[Any]:
        return (None if item is None else next(remaining) for item in value)

    result = list(arguments)
    for position in schema.tensor_positions:
        value = arguments[position]
        if isinstance(value, (list, tuple)):
            result[position] = list(items(value))
        elif value is not None:
            result[position] = next(remaining)
    return tuple(result)


@per_rank
def run_local(
    call: LocalCall, coordinate: tuple[int, ...], arguments: tuple[Any, ...], inputs: Sequence[Any]
) -> list[Any]:
    """Return the outputs of a local call; under ``LocalTensorMode``, those of each simulated device."""
    return call.run(coordinate, arguments, inputs)
