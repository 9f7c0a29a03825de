"""A hand-written ``bprop`` as a node of PyTorch's autograd: that of a cell, or of a ``Custom`` in a graph."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..core.errors import GradientError
from .capture import is_capturing
from .custom_gradient import checked, filled
from .grad import depth
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
    """Return a function that calls ``compute`` and has ``bprop(*inputs, out, dout)`` as its gradient.

    ``parameters`` are tensors that ``compute`` reads beside its arguments; ``bprop`` then also
    returns a dict of their gradients. With ``attributes``, the gradient of an argument that is no
    tensor is ignored, as in an operator's gradient rule.

    Call this before tracing: PyTorch's compiler traces calls of an ``autograd.Function`` class, but
    not the creation of one.
    """
    count = len(parameters)
    minimum, maximum = _positional_range(bprop)

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
        if not minimum <= len(inputs) + 2 <= maximum:
            rule = f"is called with {len(inputs)} inputs, out and dout"
            raise GradientError(subject, rule, f"a bprop of {_range_text(minimum, maximum)} arguments")
        input_grads, by_parameter = _split_result(subject, call_script(bprop, *inputs, *results))
        if attributes and len(input_grads) == len(inputs):
            rows = zip(input_grads, inputs, strict=True)
            input_grads = [g if isinstance(x, torch.Tensor) else None for g, x in rows]
        parameter_grads = _parameter_gradients(subject, by_parameter, parameters)
        return checked(subject, input_grads, inputs) + parameter_grads

    # PyTorch's compiler omits ctx if a call has as many inputs as forward has parameters
    forward.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    node: Any = type("Bprop", (torch.autograd.Function,), body)

    def apply(*args: Any) -> Any:
        if depth() > 1 and is_capturing():  # PyTorch's compiler would return zeros
            rule = "its second derivative cannot be computed inside a graph"
            raise GradientError(subject, rule, hint="compute it in PYNATIVE_MODE, without jit")
        return wrap(node.apply(*args, *parameters))

    return apply


def of_cell(cell: Any) -> Function:
    """Return ``cell.construct`` with ``cell.bprop`` as its gradient.

    The gradient covers the parameters in the attribute ``internal_params``, or all of the cell's.
    """
    listed = getattr(cell, "internal_params", None) or cell.parameters()
    parameters = [p for p in listed if p.requires_grad]
    return bridge(f"{type(cell).__name__}.bprop", cell.construct, cell.bprop, parameters)


def _positional_range(function: Function) -> tuple[int, float]:
    """Return the smallest and the largest number of positional arguments that a function takes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C: it checks its arguments itself
        return 0, math.inf
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    maximum = math.inf if any(p.kind == p.VAR_POSITIONAL for p in parameters) else len(positional)
    return sum(p.default is p.empty for p in positional), maximum


def _range_text(minimum: int, maximum: float) -> str:
    if minimum == maximum:
        return str(minimum)
    return f"{minimum} to {maximum}" if maximum < math.inf else f"at least {minimum}"


def _split_result(subject: str, result: Any) -> tuple[Any, dict[Any, Any]]:
    """Return the gradients of the inputs, and those of the parameters by parameter."""
    if not isinstance(result, tuple):
        rule = "must return a tuple with one gradient for each input, even for one"
        raise GradientError(subject, rule, type(result).__name__)
    if len(result) == 2 and isinstance(result[1], dict):
        return result[0], result[1]
    return result, {}


def _parameter_gradients(
    subject: str, by_parameter: dict[Any, Any], parameters: Sequence[Any]
) -> tuple[Any, ...]:
    by_identity = {id(key): value for key, value in by_parameter.items()}
    unknown = [key for key in by_parameter if not any(key is p for p in parameters)]
    if unknown:
        names = ", ".join(getattr(key, "name", type(key).__name__) for key in unknown)
        own = ", ".join(p.name for p in parameters) or "none"
        raise GradientError(subject, f"gradients of parameters must be of this cell's ({own})", names)
    return checked(subject, [by_identity.get(id(p)) for p in parameters], parameters)
