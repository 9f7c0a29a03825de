"""PyTorch tensors. Import this file only where PyTorch is used."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import torch

from ...call.bound import BoundOperator
from ..case import Array, Case
from . import torch_gradient
from .framework import DemoRow, quiet_fallbacks, stacked
from .torch_tensors import arguments, to_arrays, to_torch


def run(case: Case) -> list[Array]:
    """Call the operator on tensors; return all results as arrays."""
    return to_arrays(case.call(arguments(case)))


def gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the gradients of autograd."""
    return torch_gradient.gradients(case, list(cotangents))


def forward(case: Case, name: str, along: Array) -> list[Array]:
    """Return the output tangents for the tangent ``along`` of the input ``name``."""
    return torch_gradient.forward(case, name, along)


def _program(case: Case) -> Any:
    """Return the compiled call, with a new code object: PyTorch limits the compilations of each."""
    bound = case.bound

    def program(*args: Any, **keywords: Any) -> Any:
        return bound(*args, **keywords)

    code = program.__code__.replace(co_name=f"program_{next(_numbers)}")
    renamed = types.FunctionType(code, program.__globals__, code.co_name, None, program.__closure__)
    return torch.compile(renamed, fullgraph=True, backend="aot_eager", dynamic=True)


_numbers = count(1)


def compiled(case: Case) -> list[Array]:
    """Call it inside ``torch.compile``, as a full graph with dynamic sizes."""
    return to_arrays(case.call(arguments(case), _program(case)))


def compiled_gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the gradients through a compiled call."""
    inputs = arguments(case, gradients=True)
    outputs = case.call(inputs, _program(case))
    return torch_gradient.of_outputs(case, inputs, outputs, list(cotangents))


def batched(samples: Sequence[Case]) -> list[Array]:
    """Call it under ``torch.vmap``."""
    first = samples[0]
    batches = [to_torch(value, first.torch_device) for _, value in stacked(samples).tensors()]

    def one(*tensors: Any) -> Any:
        return tuple(first.call(first.with_tensors(tensors)))

    with quiet_fallbacks():
        return to_arrays(list(torch.vmap(one)(*batches)))


def demo(bound: BoundOperator, x: Array) -> Iterator[DemoRow]:
    """Yield the calls of an operator of one tensor, with values and gradients."""

    def gradient(function: Callable[[Any], Any]) -> Any:
        leaf = torch.tensor(x, requires_grad=True)
        function(leaf).sum().backward()
        return leaf.grad

    tensor = torch.tensor(x)
    yield "PyTorch", bound(tensor), gradient(bound), lambda: bound(tensor)
    yield "torch.ops", bound.torch(tensor), gradient(bound.torch), lambda: bound.torch(tensor)
    compiled = torch.compile(bound, fullgraph=True, backend="aot_eager")
    yield "torch.compile", compiled(tensor), gradient(compiled), lambda: compiled(tensor)
