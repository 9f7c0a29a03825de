"""Gradients of C++ modules in PyNative mode: Backward runs on what Forward saved.

For a second derivative, ``<name>__backward`` computes the gradient: an operator whose own gradient is known
where Backward launches operators of a provider (rules/module/second.py).
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from mindspore.common._grad_function import _Function

from ... import _core
from ...call.flat_tensors import with_absent
from ...call.host import map_tensors, specs
from ...call.operator import Operator
from ...core.errors import ArgumentTypeError, GradientError
from ...core.schema import Argument
from ...rules.module.recorded import Call, Recorded, failed
from . import tensors

Pull = Callable[[Sequence[Any]], tuple[Any, ...]]


class _OnceDifferentiable(_Function):  # type: ignore[misc]
    """A node whose outputs are gradients that cannot be differentiated again; ``backward`` raises."""

    @staticmethod
    def forward(ctx: Any, problem: GradientError, gradients: list[Any], *inputs: Any) -> Any:
        """Return the gradients, as outputs that depend on the inputs."""
        del inputs
        ctx.problem = problem
        return tuple(gradients)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Raise the error."""
        del grads
        raise ctx.problem


def vjp(
    bound: Any, arguments: tuple[Any, ...], check_written: Callable[[Any, tuple[Any, ...]], None]
) -> tuple[tuple[Any, ...], Pull]:
    """Record a C++ module's Forward. The pullback runs its Backward on what Forward saved.

    ``check_written`` is called again if the first call teaches which arguments are written.
    """
    operator: Operator = bound.operator
    ctx = types.SimpleNamespace()
    owners: dict[int, Any] = {}  # id of an array: its tensor

    def array(name: str, value: Any, argument: Argument) -> Any:
        del argument
        view = tensors.array(operator, name, value)
        owners[id(view)] = value
        return view

    arrays = map_tensors(operator, arguments, array)
    result = bound.record(ctx, *arrays)
    if result is NotImplemented and bound.operator is not operator:
        # the first try has taught the operator which arguments are written
        check_written(bound, arguments)
        result = bound.record(ctx, *arrays)
    if result is NotImplemented:
        rule = "its gradient cannot be recorded for these tensors"
        raise ArgumentTypeError(operator.name, rule, where=operator.origin)
    fresh = result if isinstance(result, tuple) else () if result is None else (result,)
    # copies, because an input may be changed before the pullback is called
    saved = tuple(array.copy() for array in ctx.to_save)
    outputs = tuple(owners[id(x)] if id(x) in owners else tensors.tensor(x, operator.name) for x in fresh)

    def pull(grads: Sequence[Any]) -> tuple[Any, ...]:
        if tensors.EXECUTOR.requires_grad():  # these gradients may be differentiated
            try:
                gradients = _differentiable(bound, arguments, outputs, saved, ctx.tape, grads)
            except GradientError as problem:
                once = _backward(operator, ctx.tape, saved, grads)
                gradients = _once_differentiable(problem, once, arguments, grads)
        else:
            gradients = _backward(operator, ctx.tape, saved, grads)
        remaining = iter(gradients)
        by_argument = map_tensors(operator, arguments, lambda *_: next(remaining))
        rows = zip(operator.schema.arguments, by_argument, strict=True)
        return tuple(value if argument.type.is_tensor else None for argument, value in rows)

    return outputs, pull


def _backward(operator: Operator, tape: Any, saved: Any, grads: Sequence[Any]) -> list[Any]:
    """Run Backward; return a gradient or None for each tensor that is present."""
    output_grads = tuple(None if g is None else tensors.array(operator, "gradient", g) for g in grads)
    try:
        arrays = _core.backward(tape, saved, output_grads)
    except RuntimeError as problem:
        raise failed(operator.name, problem, operator.origin) from None
    return [None if x is None else tensors.tensor(x, operator.name) for x in arrays]


def _once_differentiable(
    problem: GradientError, gradients: list[Any], arguments: Any, grads: Any
) -> list[Any]:
    inputs = tensors.tensors_in((*arguments, *grads))
    outputs = iter(_OnceDifferentiable.apply(problem, [g for g in gradients if g is not None], *inputs))
    return [None if g is None else next(outputs) for g in gradients]


def _differentiable(
    bound: Any, arguments: Any, outputs: Sequence[Any], saved: Sequence[Any], tape: Any, grads: Sequence[Any]
) -> list[Any]:
    """Return gradients that can be differentiated again: ``<name>__backward`` computes them.

    One for each tensor that is present, or None. Raises ``GradientError`` if that operator has no gradient.
    """
    operator: Operator = bound.operator
    rule = operator.gradient
    assert isinstance(rule, Recorded)
    if rule.backward is None:
        text = "writes an argument in place, and has no second derivative"
        raise GradientError(operator.name, text, where=operator.origin)
    call = Call.of(operator.schema, specs(tensors, operator, arguments), _core.tape_call(tape)[1])
    flat = with_absent(operator.schema, arguments)
    derived = call.derive(rule.kernel)
    rows = zip(() if derived is None else derived.saved, saved, strict=False)
    saved_tensors = [
        flat[one.index]
        if one.kind == "input"
        else outputs[one.index]
        if one.kind == "output"
        else tensors.tensor(array, operator.name)
        for one, array in rows
    ]
    gradients = iter(rule.backward(rule.again(call, saved_tensors), list(grads), str(call)))
    by_tensor = [next(gradients) if needed else None for needed in call.needs_gradient]
    return [grad for x, grad in zip(flat, by_tensor, strict=True) if x is not None]
