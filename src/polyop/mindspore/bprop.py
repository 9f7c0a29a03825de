"""A ``bprop`` as a node of PyTorch's autograd: a cell's own, and a ``Custom``'s in a graph."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..core.errors import GradientError
from .custom_gradient import checked, filled
from .interpose import call_script, wrap, wrap_traced

Function = Callable[..., Any]


def bridge(
    subject: str,
    compute: Function,
    bprop: Function,
    parameters: Sequence[Any] = (),
    *,
    attributes: bool = False,
) -> Function:
    """Return a function that computes and has ``bprop(*inputs, out, dout)`` as its gradient.

    ``parameters`` are what ``compute`` reads beside its arguments; ``bprop`` then returns a
    dict of their gradients, too. With ``attributes`` what it returns for an argument that is no
    tensor counts for nothing, as in an operator's gradient rule. The class is made here, before
    any tracing: PyTorch's compiler traces functions of such a class, but not the making of one.
    """
    count = len(parameters)
    least, most = _arguments(bprop)

    def forward(ctx: Any, *args: Any) -> Any:
        inputs = args[: len(args) - count]
        out = call_script(compute, *inputs)
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
        if not least <= len(inputs) + 2 <= most:
            rule = f"is called with {len(inputs)} inputs, out and dout"
            raise GradientError(subject, rule, f"a bprop of {_range(least, most)} arguments")
        mine, of_parameters = _parts(subject, call_script(bprop, *inputs, *results))
        if attributes and len(mine) == len(inputs):
            mine = [g if isinstance(x, torch.Tensor) else None for g, x in zip(mine, inputs, strict=True)]
        return checked(subject, mine, inputs) + _of(subject, of_parameters, parameters)

    # PyTorch's compiler leaves ctx out where the call has as many inputs as forward has parameters
    forward.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    node: Any = type("Bprop", (torch.autograd.Function,), body)
    return lambda *args: wrap(node.apply(*args, *parameters))


def of_cell(cell: Any) -> Function:
    """Return ``cell.construct`` with ``cell.bprop`` as its gradient.

    Its parameters are those of the attribute ``internal_params``, or all that it has.
    """
    listed = getattr(cell, "internal_params", None) or cell.parameters()
    parameters = [p for p in listed if p.requires_grad]
    return bridge(f"{type(cell).__name__}.bprop", cell.construct, cell.bprop, parameters)


def _arguments(function: Function) -> tuple[int, float]:
    """Return how many positional arguments a function takes at least and at most."""
    try:
        taken = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C: it says so itself
        return 0, math.inf
    positional = [p for p in taken if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    most = math.inf if any(p.kind == p.VAR_POSITIONAL for p in taken) else len(positional)
    return sum(p.default is p.empty for p in positional), most


def _range(least: int, most: float) -> str:
    return str(least) if least == most else f"{least} to {most}" if most < math.inf else f"at least {least}"


def _parts(subject: str, result: Any) -> tuple[Any, dict[Any, Any]]:
    """Return the inputs' gradients and the parameters'."""
    if not isinstance(result, tuple):
        rule = "must return a tuple with one gradient for each input, even for one"
        raise GradientError(subject, rule, type(result).__name__)
    if len(result) == 2 and isinstance(result[1], dict):
        return result[0], result[1]
    return result, {}


def _of(subject: str, found: dict[Any, Any], parameters: Sequence[Any]) -> tuple[Any, ...]:
    by_identity = {id(key): value for key, value in found.items()}
    strangers = [key for key in found if not any(key is p for p in parameters)]
    if strangers:
        names = ", ".join(getattr(key, "name", type(key).__name__) for key in strangers)
        known = ", ".join(p.name for p in parameters) or "none"
        raise GradientError(subject, f"gradients of parameters must be of this cell's ({known})", names)
    return checked(subject, [by_identity.get(id(p)) for p in parameters], parameters)
