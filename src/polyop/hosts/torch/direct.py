"""The gradient path of a plain eager call: no dispatcher, one node, native launch.

The native call has already checked that nothing but gradients is wanted, so a ``Function``
with a combined ``forward`` through the C-level ``apply`` is enough; it costs about half of
one with ``setup_context``.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any, cast

import torch

from ...call.bound import BoundOperator
from ...call.prepare import normalise
from ...call.rule import Rule, apply_rule, check_gradient, check_real, may_save
from ...call.uses import Uses
from ...core.arguments import bind
from ...core.untraced import untraced
from ...rules.module.recorded import Recorded
from .autograd_arguments import DIFFERENTIABLE, INHERITED, UNREAD, Layout
from .module_gradient import make_direct
from .run import run


def attach(bound: BoundOperator) -> None:
    """Set what the native call does when gradients are wanted."""
    schema = bound.schema
    layout = Layout(bound)
    if isinstance(bound.operator.gradient, Recorded):
        bound.differentiate = make_direct(bound)
        return
    if schema.mutates or schema.returns_list or layout.has_lists or not schema.tensor_positions:
        bound.differentiate = None  # through torch.ops
        return
    if _is_of_loops(bound.operator.gradient):
        from . import planned  # here, as it loads the loop compiler

        apply = planned.make(bound, layout)
        bound.differentiate = _saving(bound, apply) if may_save(bound.operator) else apply
        bound.forget()  # a plan has the function that was just replaced
        return
    only_tensors = all(a.type.is_tensor and not a.type.is_optional for a in schema.arguments)
    single = len(schema.returns) == 1 and not bound.operator.returns_tuple
    make = _lean if only_tensors and single and layout.uses() == _inputs_only(schema) else _general
    body = {name: staticmethod(function) for name, function in make(bound, layout).items()}
    kind: Any = type(f"Polyop_{schema.name}", (torch.autograd.Function,), {**INHERITED, **body})
    # the engine calls apply() of the backward class; the inherited one looks backward up each time
    kind._backward_cls.apply = body["backward"].__func__
    apply = super(torch.autograd.Function, kind).apply
    bound.differentiate = apply


def _is_of_loops(rule: Any) -> bool:
    """Whether a gradient is derived from the loops of a kernel."""
    return isinstance(rule, Rule) and "saving" in rule.part_kinds


def _saving(bound: BoundOperator, apply: Any) -> Any:
    """Return what calls the operator that also returns temporaries, if there is one."""
    schema, count = bound.schema, len(bound.schema.arguments)
    rule = cast("Rule", bound.operator.gradient)
    single = len(schema.returns) == 1 and not bound.operator.returns_tuple
    own = itemgetter(0 if single else slice(len(schema.returns)))

    @untraced
    def differentiate(*args: Any) -> Any:
        saving = rule.saving(args if len(args) == count else bind(schema, args, {}))
        if saving is None:
            return apply(*args)

        @untraced
        def call(*args: Any) -> Any:
            return own(saving(*args))

        bound.plan_gradient((call,), bound.differentiate, *args)
        return call(*args)

    return differentiate


def _inputs_only(schema: Any) -> Uses:
    return Uses((True,) * len(schema.arguments), False)


def _lean(bound: BoundOperator, _: Layout) -> dict[str, Any]:
    """Return the common case, written out: tensors in, one tensor out, a rule that reads the inputs."""
    native_forward, operator = bound.forward, bound.operator
    rule: Any = operator.gradient
    names, same_shapes = [a.name for a in bound.schema.arguments], bound.same_shapes

    @untraced
    def forward(ctx: Any, *args: Any) -> Any:
        output = native_forward(ctx, *args)
        if output is NotImplemented:
            output = run(bound, args)
        if output.dtype not in DIFFERENTIABLE:
            ctx.mark_non_differentiable(output)
        return output

    @untraced
    def backward(ctx: Any, grad: Any) -> Any:
        inputs = ctx.saved_tensors
        input_grads = rule(*inputs, UNREAD, grad)
        if same_shapes(input_grads, inputs):
            return input_grads
        if type(input_grads) is not tuple or len(input_grads) != len(names):
            return apply_rule(operator, inputs, (UNREAD,), (grad,))  # raises
        for name, value, result in zip(names, inputs, input_grads, strict=True):
            if result is not None and (not isinstance(result, torch.Tensor) or result.shape != value.shape):
                check_gradient(operator, name, result, value.shape, torch.Tensor)
            check_real(operator, name, result, value)
        return input_grads

    return {"forward": forward, "backward": backward}


def _general(bound: BoundOperator, layout: Layout) -> dict[str, Any]:
    schema, launch, operator = bound.schema, bound.launch, bound.operator
    count, as_tuple = len(schema.arguments), bound.operator.returns_tuple

    @untraced
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.argument_count = len(args)
        full = normalise(operator, args if len(args) == count else bind(schema, args, {}))
        output = launch(*args)
        if output is NotImplemented:
            output = run(bound, full)
        layout.save(ctx, full, output)
        return (output,) if as_tuple and not isinstance(output, tuple) else output

    @untraced
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return layout.backward(ctx, *grads)[: ctx.argument_count]

    return {"forward": forward, "backward": backward}
