"""The gradient of a C++ module's function in PyTorch.

Eager: one autograd node per call, which owns the recorded tape. Traced: two pure operators (rules/module).
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.autograd.forward_ad

from ... import _core
from ...call import foreign
from ...call.bound import BoundOperator
from ...call.prepare import normalise
from ...core.arguments import bind
from ...core.errors import GradientError
from ...core.schema import MISSING
from ...core.untraced import untraced
from ...rules.module.recorded import Call, Recorded, failed
from . import autograd_function, batch, tensors
from .autograd_arguments import DIFFERENTIABLE, INHERITED, Layout
from .transforms import is_innermost


def recorded(bound: BoundOperator) -> Recorded | None:
    """Return the gradient rule of an operator if a module records it, else None."""
    rule: Any = bound.operator.gradient
    return rule if isinstance(rule, Recorded) else None


def make_direct(bound: BoundOperator) -> Any:
    """Return the function for eager calls that need gradients."""
    layout = Layout(bound)
    forward, backward = _forward(bound, layout), _backward(bound, layout)
    # With tensors only, autograd calls the native core itself; it calls these two where it cannot proceed.
    lean = _only_tensors(bound) and not bound.schema.mutates
    body = {
        **INHERITED,
        "forward": staticmethod(bound.record_forward if lean else forward),
        "backward": staticmethod(backward),
    }
    kind: Any = type(f"Polyop_{bound.schema.name}", (torch.autograd.Function,), body)
    node = kind._backward_cls
    node.apply = (
        _core.pull_method if lean else backward
    )  # the engine calls it; an own attribute is found sooner
    node.forward_slowly, node.backward_slowly = staticmethod(forward), staticmethod(backward)
    node.settle = staticmethod(_settle)
    node.plain = node.dirty = ()  # defaults: the native core sets them only if there are such outputs
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
            output = run((ctx, _needs_gradient(bound, flat if simple else args)), *args)
        if len(flat) != count:
            ctx.count = len(flat)
        if not only_tensors:
            ctx.rest = [None if isinstance(a, torch.Tensor) else a for a in args]
        return _settle(ctx, output)

    return forward


def _settle(ctx: Any, output: Any) -> Any:
    """Tell autograd which outputs have no gradient, and which were written in place."""
    if ctx.plain:
        ctx.mark_non_differentiable(*ctx.plain)
    if ctx.dirty:
        ctx.mark_dirty(*ctx.dirty)
    if type(output) is tuple:
        ctx.set_materialize_grads(False)
    return output


def _only_tensors(bound: BoundOperator) -> bool:
    # ctx.rest keeps lists too: their lengths tell how flat gradients are laid out
    return all(
        a.type.is_tensor and not a.type.is_list and a.default is MISSING for a in bound.schema.arguments
    )


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.resolve_conj().resolve_neg()


def _needs_gradient(bound: BoundOperator, arguments: tuple[Any, ...]) -> tuple[bool, ...]:
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
    native_backward = _core.backward

    @untraced
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiable(bound, layout, ctx, saved, grads)
        try:
            input_grads = native_backward(ctx.tape, saved, grads)
            if input_grads is NotImplemented:
                input_grads = native_backward(ctx.tape, tuple(map(_dense, saved)), tuple(map(_dense, grads)))
        except RuntimeError as problem:
            if isinstance(problem, GradientError):
                raise
            raise failed(bound.name, problem, bound.operator.origin) from None
        if direct and len(input_grads) == ctx.count:
            return input_grads
        return _spread(layout, ctx, input_grads)

    return backward


def _dense(tensor: Any) -> Any:
    return None if tensor is None else tensors.dense(tensor)


def _spread(layout: Layout, ctx: Any, by_tensor: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return one gradient per flat argument, from one per tensor."""
    remaining = iter(by_tensor)
    flat: list[Any] = []
    for position, argument in enumerate(layout.bound.schema.arguments):
        if not argument.type.is_tensor:
            flat.append(None)
        elif layout.is_list[position] and ctx.rest[position] is not None:
            flat.extend((None, *(next(remaining) for _ in ctx.rest[position])))
        else:
            flat.append(next(remaining))
    return tuple(flat[: ctx.count])


def _differentiable(bound: BoundOperator, layout: Layout, ctx: Any, saved: Any, grads: Any) -> Any:
    """Return gradients that can be differentiated again: ``<name>__backward`` computes them."""
    rule = recorded(bound)
    if rule is None or rule.backward is None:
        raise GradientError(bound.name, "writes an argument in place, and has no second derivative")
    rows, flags, _ = _core.tape_call(ctx.tape)
    remaining = iter(rule.kernel.specs(rows))
    schema = bound.schema
    passed = ctx.rest or [None] * ctx.count
    arguments = [*passed, *(argument.default for argument in schema.arguments[len(passed) :])]
    specs_and_attributes = [
        (tuple(next(remaining) for _ in value) if isinstance(value, (list, tuple)) else next(remaining))
        if argument.type.is_tensor
        else value
        for argument, value in zip(schema.arguments, arguments, strict=True)
    ]
    call = Call.of(schema, specs_and_attributes, flags)
    input_grads = iter(rule.backward(rule.again(call, saved), list(grads), str(call)))
    flat = tuple(next(input_grads) if needed else None for needed in flags)
    return flat if ctx.rest is None and len(flat) == ctx.count else _spread(layout, ctx, flat)


def make_traced(bound: BoundOperator, overload: Any) -> tuple[Any, Any]:
    """Return the functions for the Autograd key and for functorch's front key."""
    schema = bound.schema
    fast, below = bound.fast, torch._C._AutoDispatchBelowAutograd
    forward_ad = torch.autograd.forward_ad

    def saving(args: tuple[Any, ...], kwargs: dict[str, Any], everything: bool) -> Any:
        rule = recorded(bound)
        assert rule is not None
        arguments = normalise(bound.operator, bind(schema, args, kwargs))
        flags = _differentiable_tensors(bound, arguments) if everything else _needs_gradient(bound, arguments)
        positional, keywords = schema.split(tensors.for_torch(schema, arguments))
        outputs = rule.saving_part.torch(*positional, **keywords, polyop_wanted=list(flags))
        return _outputs(bound, arguments, flags, outputs)

    @untraced
    def autograd(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            result = fast(*args)
            if result is not NotImplemented:
                return list(result) if schema.returns_list and isinstance(result, tuple) else result
        needed = torch.is_grad_enabled() and any(_needs_gradient(bound, bind(schema, args, kwargs)))
        if not needed and forward_ad._current_level < 0:
            with below():
                return overload(*args, **kwargs)
        divided = bound.__dict__.get("dtensor_gradient")  # where DTensors are imported
        if divided is not None and forward_ad._current_level < 0:
            arguments = normalise(bound.operator, bind(schema, args, kwargs))
            if any(map(tensors.is_distributed, foreign.flatten(schema, arguments))):
                return divided(arguments)
        return saving(args, kwargs, forward_ad._current_level >= 0)

    layout = Layout(bound)
    map_samples = _map_samples(layout, overload)

    @untraced
    def front(*args: Any, **kwargs: Any) -> Any:
        flat = layout.flatten(normalise(bound.operator, bind(schema, args, kwargs)))
        if not _has_samples(flat):
            return saving(args, kwargs, everything=True)
        result = map_samples(*flat)  # nothing is saved for a gradient at this level
        return list(result) if schema.returns_list else result

    return _with_jvp(bound, overload, autograd, front)


def _with_jvp(bound: BoundOperator, overload: Any, autograd: Any, front: Any) -> tuple[Any, Any]:
    """Return the functions that call these two, or in forward mode the author's ``jvp=``, if there is one."""
    given_autograd, given_front = autograd_function.make(bound, overload)

    @untraced
    def either_autograd(*args: Any, **kwargs: Any) -> Any:
        given = torch.autograd.forward_ad._current_level >= 0 and bound.operator.jvp is not None
        return (given_autograd if given else autograd)(*args, **kwargs)

    @untraced
    def either_front(*args: Any, **kwargs: Any) -> Any:
        given = bound.operator.jvp is not None and is_innermost("Jvp")
        return (given_front if given else front)(*args, **kwargs)

    return either_autograd, either_front


def _map_samples(layout: Layout, overload: Any) -> Any:
    """Return the call at a level of vmap, of which the outputs go to the levels below."""
    body = {
        **INHERITED,
        "forward": staticmethod(lambda *flat: layout.call(overload, flat)),
        "setup_context": staticmethod(lambda ctx, inputs, output: None),
        "vmap": staticmethod(functools.partial(batch.vmap, layout, overload)),
    }
    kind: Any = type(f"Polyop_{layout.bound.schema.name}_vmap", (torch.autograd.Function,), body)
    return kind.apply


def _has_samples(flat: tuple[Any, ...]) -> bool:
    """Whether the transform that is being done is vmap, and a tensor has its samples."""
    functorch = torch._C._functorch
    top = functorch.peek_interpreter_stack()
    if top is None or top.key() != functorch.TransformType.Vmap:
        return False
    return any(
        isinstance(x, torch.Tensor)
        and functorch.is_batchedtensor(x)
        and functorch.maybe_get_level(x) == top.level()
        for x in flat
    )


def _differentiable_tensors(bound: BoundOperator, arguments: tuple[Any, ...]) -> tuple[bool, ...]:
    flags: list[bool] = []
    for position in bound.schema.tensor_positions:
        value = arguments[position]
        items = value if isinstance(value, (list, tuple)) else (value,)
        flags.extend(isinstance(item, torch.Tensor) and item.dtype in DIFFERENTIABLE for item in items)
    return tuple(flags)


def _outputs(bound: BoundOperator, arguments: tuple[Any, ...], flags: Any, outputs: Any) -> Any:
    """Return the outputs of the saving operator without the saved tensors, as the overload returns them."""
    schema = bound.schema
    if not schema.returns_list:
        own = tuple(outputs[: len(schema.returns)])
        return own[0] if len(own) == 1 else own or None
    rule = recorded(bound)
    assert rule is not None
    specs = tensors.map_arguments(tensors.spec, arguments)
    derived = Call.of(schema, specs, flags).derive(rule.kernel)
    return list(outputs) if derived is None else list(outputs[: len(derived.outputs)])
