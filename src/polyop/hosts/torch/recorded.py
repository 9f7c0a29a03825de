"""The gradient of a C++ module's function: recorded where it runs, two pure operators where it is traced."""

from __future__ import annotations

from typing import Any

import torch
import torch.autograd.forward_ad

from ... import _core
from ...call.bound import BoundOperator
from ...call.prepare import normalise
from ...core.arguments import bind
from ...core.errors import GradientError
from ...core.schema import MISSING
from ...core.untraced import untraced
from ...rules.module.recorded import Call, Recorded, failed
from . import tensors
from .autograd import DIFFERENTIABLE, INHERITED
from .layout import Layout


def recorded(bound: BoundOperator) -> Recorded | None:
    """Return the rule of an operator whose gradient is recorded."""
    rule: Any = bound.operator.gradient
    return rule if isinstance(rule, Recorded) else None


def make_direct(bound: BoundOperator) -> Any:
    """Return what runs a plain call of which gradients are wanted."""
    layout = Layout(bound)
    forward, backward = _forward(bound, layout), _backward(bound, layout)
    # nothing but tensors: the native core is called by autograd itself, and these where it declines
    lean = _only_tensors(bound) and not bound.schema.mutates
    body = {
        **INHERITED,
        "forward": staticmethod(bound.record_forward if lean else forward),
        "backward": staticmethod(backward),
    }
    kind: Any = type(f"Polyop_{bound.schema.name}", (torch.autograd.Function,), body)
    node = kind._backward_cls
    node.apply = _core.pull_method if lean else backward  # the engine calls it; found here once
    node.forward_slowly, node.backward_slowly = staticmethod(forward), staticmethod(backward)
    node.settle = staticmethod(_settle)
    node.plain = node.dirty = ()  # what the native core sets only where there is some
    node.rest, node.count = None, len(bound.schema.arguments)
    apply = super(torch.autograd.Function, kind).apply
    schema = bound.schema
    if not layout.has_lists and not schema.mutates and not schema.returns_list:
        return apply

    def call(*args: Any) -> Any:
        arguments = normalise(bound.operator, bind(schema, args, {}))
        result = apply(*layout.flatten(arguments))
        return bound.pack(tensors.as_outputs(result))

    return call


def _forward(bound: BoundOperator, layout: Layout) -> Any:
    run = bound.record
    simple = not layout.has_lists
    only_tensors = _only_tensors(bound)
    count = len(bound.schema.arguments)

    @untraced
    def forward(ctx: Any, *flat: Any) -> Any:
        args = flat if simple else layout.unflatten(flat)
        if bound.schema.mutates:
            _check_leaves(bound, args)
        output = run(ctx, *args)
        if output is NotImplemented:
            args = tensors.map_arguments(_plain, normalise(bound.operator, bind(bound.schema, args, {})))
            _check_leaves(bound, args)
            output = run((ctx, _wanted(bound, flat if simple else args)), *args)
        if len(flat) != count:
            ctx.count = len(flat)
        if not only_tensors:
            ctx.rest = [None if isinstance(a, torch.Tensor) else a for a in args]
        return _settle(ctx, output)

    return forward


def _settle(ctx: Any, output: Any) -> Any:
    """Tell autograd what the native core has found out about the outputs."""
    if ctx.plain:
        ctx.mark_non_differentiable(*ctx.plain)
    if ctx.dirty:
        ctx.mark_dirty(*ctx.dirty)
    if type(output) is tuple:
        ctx.set_materialize_grads(False)
    return output


def _only_tensors(bound: BoundOperator) -> bool:
    # a list is kept as well: its length tells how gradients are laid out
    return all(
        a.type.is_tensor and not a.type.is_list and a.default is MISSING for a in bound.schema.arguments
    )


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.resolve_conj().resolve_neg()


def _wanted(bound: BoundOperator, arguments: tuple[Any, ...]) -> tuple[bool, ...]:
    flags: list[bool] = []
    for position in bound.schema.tensor_positions:
        value = arguments[position]
        items = value if isinstance(value, (list, tuple)) else (value,)
        flags.extend(isinstance(item, torch.Tensor) and item.requires_grad for item in items)
    return tuple(flags)


def _check_leaves(bound: BoundOperator, arguments: tuple[Any, ...]) -> None:
    for argument, value in zip(bound.schema.arguments, arguments, strict=False):
        items = value if isinstance(value, (list, tuple)) else (value,)
        for item in items:
            if (
                argument.type.writes
                and isinstance(item, torch.Tensor)
                and item.requires_grad
                and item.is_leaf
            ):
                rule = "A leaf tensor that need grad is being used in an inplace operator"
                subject = f"{bound.name}: argument {argument.name}"
                raise GradientError(subject, rule, hint="call it on a result, or under torch.no_grad()")


def _backward(bound: BoundOperator, layout: Layout) -> Any:
    positions = [i for i, argument in enumerate(bound.schema.arguments) if argument.type.is_tensor]
    direct = len(positions) == len(bound.schema.arguments) and not layout.has_lists
    pull = _core.backward

    @untraced
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiable(bound, layout, ctx, saved, grads)
        try:
            found = pull(ctx.tape, saved, grads)
            if found is NotImplemented:
                found = pull(ctx.tape, tuple(map(_dense, saved)), tuple(map(_dense, grads)))
        except RuntimeError as problem:
            if isinstance(problem, GradientError):
                raise
            raise failed(bound.name, problem, bound.operator.origin) from None
        if direct and len(found) == ctx.count:
            return found
        return _spread(layout, ctx, found)

    return backward


def _dense(tensor: Any) -> Any:
    return None if tensor is None else tensors.dense(tensor)


def _spread(layout: Layout, ctx: Any, found: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return one gradient per flat argument, from one per tensor."""
    left = iter(found)
    made: list[Any] = []
    for position, argument in enumerate(layout.bound.schema.arguments):
        if not argument.type.is_tensor:
            made.append(None)
        elif layout.is_list[position] and ctx.rest[position] is not None:
            made.extend((None, *(next(left) for _ in ctx.rest[position])))
        else:
            made.append(next(left))
    return tuple(made[: ctx.count])


def _differentiable(bound: BoundOperator, layout: Layout, ctx: Any, saved: Any, grads: Any) -> Any:
    """Return gradients that have gradients themselves: through the operator of Backward."""
    rule = recorded(bound)
    if rule is None or rule.backward is None:
        raise GradientError(bound.name, "writes an argument in place, and has no second derivative")
    rows, wanted, _ = _core.tape_call(ctx.tape)
    specs = iter(rule.kernel.specs(rows))
    schema = bound.schema
    given = ctx.rest or [None] * ctx.count
    rest = [*given, *(argument.default for argument in schema.arguments[len(given) :])]
    seen = [
        (tuple(next(specs) for _ in value) if isinstance(value, (list, tuple)) else next(specs))
        if argument.type.is_tensor
        else value
        for argument, value in zip(schema.arguments, rest, strict=True)
    ]
    call = Call.of(schema, seen, wanted)
    found = iter(rule.backward(rule.again(call, saved), list(grads), str(call)))
    flat = tuple(next(found) if flag else None for flag in wanted)
    return flat if ctx.rest is None and len(flat) == ctx.count else _spread(layout, ctx, flat)


def make_traced(bound: BoundOperator, overload: Any) -> tuple[Any, Any]:
    """Return what the Autograd key and functorch's front key call."""
    schema = bound.schema
    fast, below = bound.fast, torch._C._AutoDispatchBelowAutograd
    forward_ad = torch.autograd.forward_ad

    def saving(args: tuple[Any, ...], kwargs: dict[str, Any], everything: bool) -> Any:
        rule = recorded(bound)
        assert rule is not None
        arguments = normalise(bound.operator, bind(schema, args, kwargs))
        wanted = _smooth(bound, arguments) if everything else _wanted(bound, arguments)
        positional, keywords = schema.split(tensors.for_torch(schema, arguments))
        outputs = rule.saving_part.torch(*positional, **keywords, polyop_wanted=list(wanted))
        return _outputs(bound, arguments, wanted, outputs)

    @untraced
    def autograd(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            result = fast(*args)
            if result is not NotImplemented:
                return list(result) if schema.returns_list and isinstance(result, tuple) else result
        wanted = torch.is_grad_enabled() and any(_wanted(bound, bind(schema, args, kwargs)))
        if not wanted and forward_ad._current_level < 0:
            with below():
                return overload(*args, **kwargs)
        return saving(args, kwargs, forward_ad._current_level >= 0)

    @untraced
    def front(*args: Any, **kwargs: Any) -> Any:
        return saving(args, kwargs, everything=True)

    return autograd, front


def _smooth(bound: BoundOperator, arguments: tuple[Any, ...]) -> tuple[bool, ...]:
    flags: list[bool] = []
    for position in bound.schema.tensor_positions:
        value = arguments[position]
        items = value if isinstance(value, (list, tuple)) else (value,)
        flags.extend(isinstance(item, torch.Tensor) and item.dtype in DIFFERENTIABLE for item in items)
    return tuple(flags)


def _outputs(bound: BoundOperator, arguments: tuple[Any, ...], wanted: Any, outputs: Any) -> Any:
    """Return the function's outputs among those of the saving operator, as its overload does."""
    schema = bound.schema
    if not schema.returns_list:
        own = tuple(outputs[: len(schema.returns)])
        return own[0] if len(own) == 1 else own or None
    rule = recorded(bound)
    assert rule is not None
    specs = tensors.map_arguments(tensors.spec, arguments)
    derived = Call.of(schema, specs, wanted).derive(rule.kernel)
    return list(outputs) if derived is None else list(outputs[: len(derived.outputs)])
