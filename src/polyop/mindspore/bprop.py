"""A cell's own ``bprop`` as a node of PyTorch's autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..core.errors import GradientError
from .custom_gradient import checked, filled
from .interpose import call_script, wrap, wrap_traced


def bridge_of(cell: Any) -> Callable[..., Any]:
    """Return a function that computes ``cell.construct`` and has ``cell.bprop`` as its gradient.

    The class is made here, before any tracing, and holds the cell: PyTorch's compiler traces
    functions of such a class, but neither their making nor a cell among their arguments.
    """
    subject = f"{type(cell).__name__}.bprop"
    parameters = [p for p in getattr(cell, "internal_params", None) or cell.parameters() if p.requires_grad]
    count = len(parameters)

    def forward(ctx: Any, *args: Any) -> Any:
        inputs = args[: len(args) - count]
        out = call_script(cell.construct, *inputs)
        outputs = out if isinstance(out, tuple) else (out,)
        ctx.single = not isinstance(out, tuple)
        ctx.others = [None if isinstance(x, torch.Tensor) else x for x in inputs]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*(x for x in (*inputs, *outputs) if isinstance(x, torch.Tensor)))
        return out

    def backward(ctx: Any, *gradients: Any) -> Any:
        saved = list(ctx.saved_tensors)
        inputs = [wrap_traced(saved.pop(0)) if x is None else x for x in ctx.others]
        outputs = tuple(wrap_traced(x) for x in saved)
        douts = filled(gradients, outputs)
        results = (outputs[0], douts[0]) if ctx.single else (outputs, douts)
        result = call_script(cell.bprop, *inputs, *results)
        mine, of_parameters = _parts(subject, result)
        return checked(subject, mine, inputs) + _of(subject, of_parameters, parameters)

    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    node: Any = type(f"{type(cell).__name__}Bprop", (torch.autograd.Function,), body)
    return lambda *args: wrap(node.apply(*args, *parameters))


def _parts(subject: str, result: Any) -> tuple[Any, dict[Any, Any]]:
    """Return the inputs' gradients and the parameters'."""
    if not isinstance(result, tuple):
        rule = "must return a tuple with one gradient for each input, even for one"
        raise GradientError(subject, rule, type(result).__name__)
    if len(result) == 2 and isinstance(result[1], dict):
        return result[0], result[1]
    return result, {}


def _of(subject: str, found: dict[Any, Any], parameters: list[Any]) -> tuple[Any, ...]:
    by_identity = {id(key): value for key, value in found.items()}
    strangers = by_identity.keys() - {id(p) for p in parameters}
    if strangers:
        names = ", ".join(getattr(key, "name", str(key)) for key in found if id(key) in strangers)
        known = ", ".join(p.name for p in parameters) or "none"
        raise GradientError(subject, f"gradients of parameters must be of this cell's ({known})", names)
    return checked(subject, [by_identity.get(id(p)) for p in parameters], parameters)
