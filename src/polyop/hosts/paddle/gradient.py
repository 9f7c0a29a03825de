"""Gradients of eager calls, through Paddle's ``PyLayer``.

An output that a node keeps refers to the node, and Paddle never frees such a circle. So a node keeps outputs
without their history. When a gradient is to be differentiated again, the rule gets outputs of a second call.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import paddle
from paddle.autograd import PyLayer

from ... import _core
from ...call.flat_tensors import flat_gradients
from ...call.foreign import flatten, text_values, unflatten
from ...call.host import map_tensors
from ...call.operator import Operator
from ...call.rule import Rule, apply_rule, check_gradient, list_gradients, no_gradient
from ...call.uses import used_by_rule
from ...core.errors import ArgumentTypeError, GradientError
from ...core.schema import Argument
from ...rules.module.recorded import failed
from . import tensors

Run = Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]
Pull = Callable[[Sequence[Any]], tuple[Any, ...]]


class _Call:
    """A call whose gradient is recorded: ``PyLayer`` gets it, and the tensors one by one."""

    def __init__(self, bound: Any, arguments: tuple[Any, ...], run: Run) -> None:
        """Keep the arguments without their tensors."""
        self.bound, self.run = bound, run
        self.values = text_values(bound.schema, arguments)
        self.pull: Pull | None = None  # of a C++ module, which records while it runs
        self.outputs: tuple[Any, ...] = ()  # without their history

    def arguments(self, flat: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments with these tensors."""
        return unflatten(self.bound.schema, self.values, flat)


class _Node(PyLayer):  # type: ignore[misc]
    """The node of a call in Paddle's gradient."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *flat: Any) -> Any:
        """Run the operator."""
        arguments = call.arguments(flat)
        recorded = _is_recorded(call.bound.operator)
        ctx.set_materialize_grads(not recorded)
        if recorded:
            outputs, call.pull = _record(call.bound, arguments)
        else:
            outputs = call.run(call.bound, arguments)
            call.outputs = tuple(output.detach() for output in outputs)
        constant = [x for x in outputs if not tensors.row_of(x).is_floating]
        if constant:
            ctx.mark_non_differentiable(*constant)
        ctx.save_for_backward(*flat)
        ctx.call, ctx.versions = call, [x.inplace_version for x in (*flat, *call.outputs)]
        return outputs[0] if len(outputs) == 1 else outputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the input gradients."""
        call: _Call = ctx.call
        flat = ctx.saved_tensor()
        arguments = call.arguments(flat)
        _check_unchanged(call, arguments, flat, ctx.versions)
        if call.pull is not None:
            if paddle.is_grad_enabled():
                raise _only_once(call.bound.operator)
            result = call.pull(grads)
        else:
            outputs = call.outputs
            if paddle.is_grad_enabled() and call.bound.operator.gradient is not None:
                outputs = _node_outputs(call.bound, arguments, call.run)
            needed = [_any_needs(value) for value in arguments]
            result = _pull(call.bound.operator, arguments, outputs, needed, grads)
        pairs = zip(flat, flat_gradients(call.bound.schema, arguments, result), strict=True)
        return tuple(None if x.stop_gradient else grad for x, grad in pairs)  # Paddle refuses others


def call(bound: Any, arguments: tuple[Any, ...], run: Run) -> tuple[Any, ...]:
    """Return the outputs of a call whose gradient Paddle records.

    Raises ``GradientError`` for an operator that writes an argument: Paddle has no place for its gradient.
    """
    if bound.schema.mutates:
        rule = "writes an argument in place, which has no gradient, and Paddle needs one of another argument"
        hint = "call it under paddle.no_grad(), or on x.detach()"
        raise GradientError(bound.name, rule, where=bound.operator.origin, hint=hint)
    return _node_outputs(bound, arguments, run)


def _node_outputs(bound: Any, arguments: tuple[Any, ...], run: Run) -> tuple[Any, ...]:
    outputs = _Node.apply(_Call(bound, arguments, run), *flatten(bound.schema, arguments))
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)


def vjp(bound: Any, arguments: tuple[Any, ...], run: Run) -> tuple[tuple[Any, ...], Pull]:
    """Return the outputs, and the function from output gradients to input gradients."""
    operator: Operator = bound.operator
    if operator.gradient is None or operator.schema.mutates:
        raise no_gradient(operator)
    if _is_recorded(operator):
        with paddle.no_grad():
            return _record(bound, arguments)
    wanted = any(map(tensors.needs_gradient, tensors.tensors_in(arguments)))
    record = paddle.is_grad_enabled() and wanted
    outputs = _node_outputs(bound, arguments, run) if record else run(bound, arguments)
    return outputs, functools.partial(_pull, operator, arguments, outputs, None)


def pull_again(
    bound: Any, arguments: tuple[Any, ...], outputs: tuple[Any, ...], grads: Sequence[Any], run: Run
) -> list[Any]:
    """Return the gradient or None of each tensor, of a call of which only the outputs are known."""
    operator: Operator = bound.operator
    if operator.gradient is None:
        raise no_gradient(operator)
    if _is_recorded(operator):
        result = vjp(bound, arguments, run)[1](grads)
    else:
        result = _pull(operator, arguments, outputs, None, grads)
    return flat_gradients(bound.schema, arguments, result)


def _is_recorded(operator: Operator) -> bool:
    return isinstance(operator.gradient, Rule) and operator.gradient.is_recorded


def _pull(
    operator: Operator,
    arguments: tuple[Any, ...],
    outputs: tuple[Any, ...],
    needed: Sequence[bool] | None,
    grads: Sequence[Any],
) -> tuple[Any, ...]:
    input_grads = apply_rule(operator, arguments, outputs, grads, needed)
    rows = zip(operator.schema.arguments, arguments, input_grads, strict=True)
    return tuple(_checked(operator, argument, value, grad) for argument, value, grad in rows)


def _checked(operator: Operator, argument: Argument, value: Any, grad: Any) -> Any:
    if grad is None or value is None or not argument.type.is_tensor:
        return None  # an attribute has an entry in the tuple, but no gradient
    if not argument.type.is_list:
        check_gradient(operator, argument.name, grad, value.shape, paddle.Tensor)
        return grad
    grads = list_gradients(operator, argument.name, value, grad)
    for number, (item, item_grad) in enumerate(zip(value, grads, strict=True)):
        if item_grad is not None:
            check_gradient(operator, f"{argument.name}[{number}]", item_grad, item.shape, paddle.Tensor)
    return tuple(grads)


def _any_needs(value: Any) -> bool:
    return any(map(tensors.needs_gradient, tensors.tensors_in((value,))))


def _check_unchanged(
    call: _Call, arguments: tuple[Any, ...], flat: Sequence[Any], versions: Sequence[int]
) -> None:
    operator = call.bound.operator
    changed = [x.inplace_version != v for x, v in zip((*flat, *call.outputs), versions, strict=True)]
    if any(changed[: len(flat)]):
        rule = "its gradient reads an input that was written in place after the call"
        raise GradientError(operator.name, rule, where=operator.origin, hint="call it on a copy: x.clone()")
    if any(changed):
        rule_of = operator.gradient
        by_call = rule_of.reads(arguments, len(call.outputs)) if isinstance(rule_of, Rule) else None
        read = (by_call or used_by_rule(rule_of, len(arguments))).outputs
        flags = read if isinstance(read, tuple) else (read,) * len(call.outputs)
        if any(flag and new for flag, new in zip(flags, changed[len(flat) :], strict=True)):
            rule = "its gradient reads an output that was written in place after the call"
            hint = "write into a copy: y.clone()"
            raise GradientError(operator.name, rule, where=operator.origin, hint=hint)


def _only_once(operator: Operator) -> GradientError:
    rule = "its gradient was recorded, and cannot be differentiated again in Paddle"
    return GradientError(operator.name, rule, where=operator.origin)


def _record(bound: Any, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Pull]:
    """Record a C++ module's Forward. The pullback runs its Backward on what Forward saved."""
    operator: Operator = bound.operator
    ctx = types.SimpleNamespace()

    def array(name: str, value: Any, argument: Argument) -> Any:
        del argument
        return tensors.array(operator, name, value)

    result = bound.record(ctx, *map_tensors(operator, arguments, array))
    if result is NotImplemented:
        _refuse(operator)
    fresh = result if isinstance(result, tuple) else () if result is None else (result,)
    saved = tuple(x.copy() for x in ctx.to_save)  # an input may be changed before the pullback is called

    def pull(grads: Sequence[Any]) -> tuple[Any, ...]:
        given = tuple(None if g is None else tensors.array(operator, "gradient", g) for g in grads)
        try:
            results = iter(_core.backward(ctx.tape, saved, given))
        except RuntimeError as problem:
            raise failed(operator.name, problem, operator.origin) from None
        by_argument = map_tensors(operator, arguments, lambda *_: _tensor(next(results), bound.name))
        rows = zip(operator.schema.arguments, by_argument, strict=True)
        return tuple(grad if argument.type.is_tensor else None for argument, grad in rows)

    return tuple(tensors.tensor(x, bound.name) for x in fresh), pull


def _tensor(array: Any, name: str) -> Any:
    return None if array is None else tensors.tensor(array, name)


def _refuse(operator: Operator) -> NoReturn:
    rule = "its gradient cannot be recorded for these tensors"
    raise ArgumentTypeError(operator.name, rule, where=operator.origin)
