"""The ``autograd.Function`` behind an operator: backward, forward mode, vmap."""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.autograd.forward_ad

from ...call.bound import BoundOperator
from ...call.operator import Operator
from ...call.prepare import normalise
from ...call.rule import no_gradient, saving_of
from ...core.arguments import bind
from ...core.errors import GradientError
from ...core.untraced import untraced
from ...rules.module.pure_operators import SavingTangent
from . import batch
from .autograd_arguments import Layout
from .leaving import CALLERS
from .tensors import for_torch
from .transforms import depth, is_innermost


def make(bound: BoundOperator, overload: Any) -> tuple[Any, Any]:
    """Return what the Autograd key and functorch's front key call."""
    schema = bound.schema
    layout = Layout(bound)
    below = torch._C._AutoDispatchBelowAutograd

    @untraced
    def forward(*flat: Any) -> Any:
        with below():
            return layout.call(overload, flat)

    kind: Any = type(
        f"Polyop_{schema.name}",
        (torch.autograd.Function,),
        {
            "forward": staticmethod(forward),
            "setup_context": staticmethod(layout.save_with_forward),
            "backward": staticmethod(layout.backward),
            "jvp": staticmethod(functools.partial(_jvp, layout)),
            "vmap": staticmethod(functools.partial(batch.vmap, layout, overload)),
        },
    )
    # the base class's apply: autograd.Function.apply inspects signatures on every call
    c_apply = super(torch.autograd.Function, kind).apply
    forward_ad = torch.autograd.forward_ad
    fast = bound.fast
    packed = bound.operator.returns_tuple and len(schema.returns) == 1

    @untraced
    def autograd(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            result = fast(*args)  # no second trip through the dispatcher when nothing else is on
            if result is not NotImplemented:
                return result[0] if packed and isinstance(result, tuple) else result
        needs_gradient = torch.is_grad_enabled() and _wants_gradient(args, kwargs)
        if not needs_gradient and forward_ad._current_level < 0:
            with below():
                return overload(*args, **kwargs)
        arguments = normalise(bound.operator, bind(schema, args, kwargs))
        return differentiated(c_apply, arguments, backward=forward_ad._current_level < 0)

    def differentiated(apply: Any, arguments: tuple[Any, ...], *, backward: bool) -> Any:
        saving = saving_of(bound.operator, arguments) if backward else None
        if saving is not None:  # it also gives temporaries, which its gradient reads
            positional, keywords = schema.split(for_torch(schema, arguments))
            result = saving.torch(*positional, **keywords)[: len(schema.returns)]
            return result[0] if len(schema.returns) == 1 else result
        result = apply(*layout.flatten(arguments))
        return list(result) if schema.returns_list else result

    CALLERS[differentiated.__code__] = "saving"

    @untraced
    def front(*args: Any, **kwargs: Any) -> Any:
        arguments = normalise(bound.operator, bind(schema, args, kwargs))
        return differentiated(kind.apply, arguments, backward=is_innermost("Grad"))

    return autograd, front


def _wants_gradient(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, torch.Tensor):
            if value.requires_grad:
                return True
        elif isinstance(value, (list, tuple)) and _wants_gradient(tuple(value), {}):
            return True
    return False


@untraced
def _jvp(layout: Layout, ctx: Any, *tangents: Any) -> Any:
    """Return the output tangents, from ``jvp=`` or by transposing the gradient rule."""
    operator = layout.bound.operator
    _refuse_nested_forward(operator)
    saved = layout.saved(ctx) if operator.jvp is None else layout.saved_for_jvp(ctx)
    flat, outputs = (tuple(map(_primal, values)) for values in saved)
    if operator.jvp is not None:
        packed = outputs if operator.several else outputs[0]
        result = operator.jvp(*layout.unflatten(flat), packed, layout.unflatten(flat, tangents))
        if isinstance(operator.jvp, SavingTangent) and len(result) < len(outputs):
            result += tuple(_transpose(layout, ctx, flat, outputs, tangents)[len(result) :])
        return result
    if operator.gradient is None:
        raise no_gradient(operator)
    result = _transpose(layout, ctx, flat, outputs, tangents)
    return result if operator.several else result[0]


def _refuse_nested_forward(operator: Operator) -> None:
    # inside jvp() of a Function, PyTorch drops the tangents of outer forward levels: a zero, silently
    if depth("Jvp") > 1:
        rule = "forward mode inside forward mode loses the inner tangent in PyTorch"
        hint = "use reverse mode for one of them: jacfwd(grad(f)), or hessian(f)"
        raise GradientError(operator.name, rule, where=operator.origin, hint=hint)


def _primal(value: Any) -> Any:
    # What is saved still carries this level's tangent: an operator in the rule would ask for
    # its own tangent in turn, and two that are each other's gradient would never end.
    if not isinstance(value, torch.Tensor):
        return value
    return torch.autograd.forward_ad.unpack_dual(value, level=0).primal


def _transpose(layout: Layout, ctx: Any, flat: Any, outputs: Any, tangents: Any) -> tuple[Any, ...]:
    # The rule is linear in the output gradient u. With g(u) = J^T u, the gradient of
    # <g(u), t> with respect to u is J t: forward mode from reverse mode, exactly.
    zeros = tuple(
        torch.zeros_like(x) if kept is None else torch.zeros(kept[0], dtype=kept[1], device=kept[2])
        for x, kept in zip(outputs, ctx.outputs, strict=True)
    )
    smooth = [i for i, x in enumerate(zeros) if x.is_floating_point() or x.is_complex()]
    chosen: list[Any] = []

    def pull(*grads: Any) -> tuple[Any, ...]:
        output_grads = list(zeros)
        for i, grad in zip(smooth, grads, strict=True):
            output_grads[i] = grad
        input_grads = layout.gradients(flat, outputs, output_grads)
        chosen[:] = [t for g, t in zip(input_grads, tangents, strict=True) if t is not None and g is not None]
        return tuple(g for g, t in zip(input_grads, tangents, strict=True) if t is not None and g is not None)

    try:
        gradients, push = torch.func.vjp(pull, *(zeros[i] for i in smooth))
        pushed = push(tuple(chosen)) if gradients else tuple(zeros[i] for i in smooth)
    except GradientError as problem:
        operator = layout.bound.operator
        rule = "forward mode needs jvp=, as the gradient rule is not differentiable itself"
        raise GradientError(operator.name, rule, where=operator.origin, hint=str(problem)) from None
    tangent = dict(zip(smooth, pushed, strict=True))
    return tuple(tangent.get(i) for i in range(len(zeros)))
