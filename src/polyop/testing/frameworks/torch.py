"""PyTorch tensors. Import this file only where PyTorch is used."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import torch

from ...call.bound import BoundOperator
from ...hosts.torch import tensors
from ..case import Array, Case
from . import torch_gradient
from .base import DemoRow, quiet_fallbacks, stacked
from .torch_tensors import arguments, to_arrays


def run(case: Case) -> list[Array]:
    """Call the operator on tensors; return all results as arrays."""
    return to_arrays(case.call(arguments(case)))


def gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the gradients of autograd."""
    return torch_gradient.gradients(case, list(cotangents))


def forward(case: Case, name: str, along: Array) -> list[Array]:
    """Return the output tangents for a tangent of one input."""
    return torch_gradient.forward(case, name, along)


def _program(case: Case) -> Any:
    """Return the call as a function of its own: PyTorch limits the compilations of one code object."""
    bound = case.bound

    def program(*args: Any, **keywords: Any) -> Any:
        return bound(*args, **keywords)

    code = program.__code__.replace(co_name=f"program_{next(_numbers)}")
    own = types.FunctionType(code, program.__globals__, code.co_name, None, program.__closure__)
    return torch.compile(own, fullgraph=True, backend="aot_eager", dynamic=True)


_numbers = count(1)


def _results(case: Case, arguments: tuple[Any, ...], result: Any) -> list[Any]:
    outputs = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
    schema = case.operator.schema
    fresh = outputs if schema.returns_list else [outputs[i] for i in schema.fresh]
    return [*fresh, *case.written(arguments)]


def compiled(case: Case) -> list[Array]:
    """Call it inside ``torch.compile``, as a full graph with dynamic sizes."""
    given = arguments(case)
    args, keywords = case.positional(given)
    return to_arrays(_results(case, given, _program(case)(*args, **keywords)))


def compiled_gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the gradients through a compiled call."""
    given = arguments(case, gradients=True)
    args, keywords = case.positional(given)
    outputs = _results(case, given, _program(case)(*args, **keywords))
    found: dict[str, Array | None] = torch_gradient.of_outputs(case, given, outputs, list(cotangents))
    return found


def batched(samples: Sequence[Case]) -> list[Array]:
    """Call it under ``torch.vmap``."""
    many = stacked(samples)
    first = samples[0]
    given = arguments(many)
    flat: list[Any] = []
    tensors.map_arguments(flat.append, given)

    def one(*values: Any) -> Any:
        left = iter(values)
        inner = tensors.map_arguments(lambda _: next(left), given)
        args, keywords = first.positional(inner)
        return tuple(_results(first, inner, first.bound(*args, **keywords)))

    with quiet_fallbacks():
        return to_arrays(list(torch.vmap(one)(*flat)))


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
