"""Calls on PyTorch's tensors; gradients are autograd's. Import this file only where PyTorch is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...testing.case import Array, Case, as_list
from ...testing.frameworks import torch_tensors


def convert(case: Case, *, gradient: bool) -> tuple[Any, ...]:
    """Return the arguments as tensors on the CPU."""
    return torch_tensors.arguments(case, gradients=gradient)


def timed(
    case: Case, function: Callable[..., Any], arguments: tuple[Any, ...], *, gradient: bool
) -> Callable[[], Any]:
    """Return the call; with ``gradient``, a call and its backward."""
    del case
    if not gradient:
        return lambda: function(*arguments)
    flat = [x for a in arguments for x in (a if isinstance(a, (list, tuple)) else (a,))]
    leaves = [x for x in flat if isinstance(x, torch.Tensor) and x.requires_grad]

    def run() -> Any:
        outputs = [out for out in as_list(function(*arguments)) if out.requires_grad]
        return torch.autograd.grad(
            outputs, leaves, [torch.ones_like(out) for out in outputs], allow_unused=True
        )

    return run


def arrays(case: Case, result: Any) -> list[Array]:
    """Return copies of the results as arrays; a tensor without a gradient is left out."""
    del case
    return torch_tensors.to_arrays([value.detach() for value in as_list(result) if value is not None])
