"""Gradients of DTensors where nothing is claimed of what the forward call saves: those of the local calls.

    forward     x: S(0), w: R    ->  local x, w    ->  operator  ->  local out    ->  out: S(0)
    backward    d_x: S(0), d_w: P(sum)  <-  local d_x, d_w  <-  its gradient  <-  local d_out  <-  d_out: S(0)

The forward call's plan says both. Autograd differentiates the local call, as it does with plain tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Replicate

from ....call.bound import BoundOperator
from ....call.foreign import flatten
from ....core.untraced import untraced
from ....sharding import placement as own
from ....sharding.rule import AxisStrategy
from .. import tensors
from . import layouts
from .dispatch import Divisions
from .local import replaced


def is_transposable(strategy: AxisStrategy) -> bool:
    """Whether the gradient of the local call is the slice's part of the whole gradient.

    Gradients of a halo belong to the neighbours, and a largest element has its gradient on one device only.
    """
    combined = (p.op == "sum" for p in strategy.outputs if isinstance(p, own.Partial))
    return not strategy.has_halo and not strategy.placed and all(combined)


def call_of(bound: BoundOperator, overload: Any) -> Callable[..., Any]:
    """Return the function that runs a call of DTensors under autograd. It takes the bound arguments."""
    divisions = Divisions(bound, overload, is_transposable)
    schema = bound.schema

    @untraced
    def call(arguments: tuple[Any, ...]) -> Any:
        division = divisions(arguments)
        local, mesh = division.local, division.mesh
        rows = zip(flatten(schema, arguments), local.inputs, strict=True)
        inputs = [_local(x, mesh, placed, local.strategies, bound.name) for x, placed in rows]
        coordinate = mesh.get_coordinate()
        if coordinate is None:  # this process has no part in the mesh
            empty = [torch.empty(0, dtype=spec.tensor_meta.dtype) for spec in division.results]
            outputs: Sequence[Any] = Constant.apply(empty, *inputs)
        elif 0 in (sizes := local.sizes(tuple(coordinate), inputs)):
            outputs = Constant.apply(local.without_elements(sizes), *inputs)
        else:
            positional, keywords = schema.split(replaced(schema, arguments, inputs))
            outputs = tensors.as_outputs(overload(*positional, **keywords))
        wrapped = [_whole(*row) for row in zip(outputs, division.results, strict=True)]
        if schema.returns_list:
            return wrapped
        return wrapped[0] if len(wrapped) == 1 else tuple(wrapped)

    return call


def _local(
    x: Any, mesh: Any, placed: own.Placements, strategies: Sequence[AxisStrategy], name: str
) -> torch.Tensor:
    """Return the local tensor of an input; devices that have the whole of it get addends of its gradient."""
    if not isinstance(x, DTensor):
        x = DTensor.from_local(x, mesh, [Replicate()] * mesh.ndim)
    target = layouts.spec_with(mesh, placed, x._spec.tensor_meta)
    if target != x._spec:
        layouts.observe(x._spec, target, name)
        x = x.redistribute(placements=target.placements)
    grads = [
        own.Partial("sum") if placement == own.REPLICATE and strategy.name else placement
        for placement, strategy in zip(placed, strategies, strict=True)
    ]
    return x.to_local(grad_placements=layouts.torch_placements(grads))


def _whole(local: torch.Tensor, spec: Any) -> Any:
    """Return the DTensor of an output."""
    shape, stride, _ = spec.tensor_meta
    x = DTensor.from_local(local.contiguous(), spec.mesh, spec.placements, shape=shape, stride=stride)
    grads = tuple(Replicate() if p.is_partial() else p for p in spec.placements)
    return _Placed.apply(x, grads) if x.requires_grad else x


class _Placed(torch.autograd.Function):  # type: ignore[misc]
    """The identity whose gradient has given placements; ``from_local`` alone has no second derivative."""

    @staticmethod
    def forward(ctx: Any, x: Any, grads: tuple[Any, ...]) -> Any:
        ctx.grads = grads
        ctx.set_materialize_grads(False)  # autograd's zeros are plain tensors
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None if grad is None else grad.redistribute(placements=ctx.grads), None


class Constant(torch.autograd.Function):  # type: ignore[misc]
    """Outputs that do not depend on the inputs, which get gradients of zeros.

    Every device takes part in the collectives of the gradient, one with an empty slice too.
    """

    @staticmethod
    def forward(ctx: Any, outputs: Sequence[torch.Tensor], *inputs: torch.Tensor) -> Any:
        """Return the outputs."""
        ctx.inputs = [(x.shape, x.dtype, x.device) for x in inputs]
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        """Return zeros, which have such gradients too."""
        zeros = [torch.zeros(shape, dtype=kind, device=device) for shape, kind, device in ctx.inputs]
        return None, *Constant.apply(zeros, *grads)
