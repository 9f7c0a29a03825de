"""Gradients by PyTorch's autograd, for the checks. Import this file only where PyTorch is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...call.host import tensors_of
from ...core.errors import GradientError
from ...core.texts import first_line
from ..case import Case, NotRunError
from . import torch_tensors


def _identity(tensor: Any) -> Any:
    return tensor


def _tensors(case: Case, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Return the tensors that require gradients, by name."""
    tensors: dict[str, Any] = {}
    for position in case.operator.schema.tensor_positions:
        argument = case.operator.schema.arguments[position]
        tensors.update(tensors_of(case.operator, argument, arguments[position]))
    return {name: tensor for name, tensor in tensors.items() if tensor.requires_grad}


def _smooth(tensors: list[Any]) -> list[Any]:
    """Return the tensors that can have gradients."""
    return [tensor for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]


def _grad(outputs: list[Any], leaves: list[Any], grads: list[Any], **options: Any) -> tuple[Any, ...]:
    """Return the gradients of the leaves, None where there is none; outputs without a graph are left out."""
    pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if o.requires_grad]
    if not pairs or not leaves:
        return (None,) * len(leaves)
    roots, weights = zip(*pairs, strict=True)
    leaf_grads: tuple[Any, ...] = torch.autograd.grad(roots, leaves, weights, allow_unused=True, **options)
    return leaf_grads


def _weights(case: Case, cotangents: list[Any]) -> list[Any]:
    return _smooth([torch_tensors.to_torch(cotangent, case.torch_device) for cotangent in cotangents])


def gradients(case: Case, cotangents: list[Any], layout: Callable[[Any], Any] = _identity) -> dict[str, Any]:
    """Return the input gradients by name; ``layout`` lays out inputs and output gradients."""
    leaves = _tensors(case, torch_tensors.arguments(case, gradients=True))

    def laid_out(name: str, value: Any) -> Any:
        tensor = leaves.get(name)
        if tensor is None:
            tensor = torch_tensors.to_torch(value, case.torch_device)
        return layout(tensor) if tensor.ndim else tensor

    outputs = _smooth(case.call(case.map(laid_out)))
    grads = [layout(v) if v.ndim else v for v in _weights(case, cotangents)]
    return _named(case, leaves, _grad(outputs, list(leaves.values()), grads))


def of_outputs(
    case: Case, arguments: tuple[Any, ...], outputs: list[Any], cotangents: list[Any]
) -> dict[str, Any]:
    """Return the input gradients by name; ``outputs`` are the results of a call with these arguments."""
    leaves = _tensors(case, arguments)
    return _named(case, leaves, _grad(_smooth(outputs), list(leaves.values()), _weights(case, cotangents)))


def of_sum(case: Case) -> dict[str, Any]:
    """Return the input gradients of the sum of all outputs; the output gradients then have stride 0."""
    arguments = torch_tensors.arguments(case, gradients=True)
    leaves = _tensors(case, arguments)
    total = sum(output.sum() for output in _smooth(case.call(arguments)))
    return _named(case, leaves, _grad([total], list(leaves.values()), [torch.ones_like(total)]))


def _named(case: Case, leaves: dict[str, Any], grads: tuple[Any, ...]) -> dict[str, Any]:
    arrays: dict[str, Any] = {name: None for name, _ in case.tensors()}
    for name, grad in zip(leaves, grads, strict=True):
        arrays[name] = None if grad is None else torch_tensors.to_arrays([grad])[0]
    return arrays


def second_order(case: Case, cotangents: list[Any], weights: dict[str, Any]) -> dict[str, Any]:
    """Return the gradients of the weighted sum of the input gradients.

    Raises ``NotRunError`` where the gradient rule is not differentiable itself.
    """
    arguments = torch_tensors.arguments(case, gradients=True)
    leaves = _tensors(case, arguments)
    outputs = _smooth(case.call(arguments))
    try:
        first = _grad(outputs, list(leaves.values()), _weights(case, cotangents), create_graph=True)
        pairs = [
            (g, weights[n]) for n, g in zip(leaves, first, strict=True) if g is not None and g.requires_grad
        ]
        if not pairs:
            return {}
        grads = [g for g, _ in pairs]
        along = [torch_tensors.to_torch(w, case.torch_device).to(g.dtype) for g, w in pairs]
        second = _grad(grads, list(leaves.values()), along)
    except GradientError as problem:
        text = first_line(problem)
        raise NotRunError(f"the gradient rule is not differentiable: {text}") from None
    return _named(case, leaves, second)


def forward(case: Case, name: str, along: Any) -> list[Any]:
    """Return the output tangents for the tangent ``along`` of the input ``name``."""
    from torch.autograd import forward_ad

    with forward_ad.dual_level():

        def dual(other: str, value: Any) -> Any:
            tensor = torch_tensors.to_torch(value, case.torch_device)
            if other != name:
                return tensor
            return forward_ad.make_dual(
                tensor, torch_tensors.to_torch(along, case.torch_device).to(tensor.dtype)
            )

        outputs = case.call(case.map(dual))
        parts = [forward_ad.unpack_dual(x) for x in outputs]
        tangents = [torch.zeros_like(p.primal) if p.tangent is None else p.tangent for p in parts]
        return torch_tensors.to_arrays([t.detach() for t in tangents])
