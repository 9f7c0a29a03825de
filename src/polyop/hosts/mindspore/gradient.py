"""Gradients of PyNative calls, through MindSpore's ``_Function``."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import mindspore
from mindspore.common._grad_function import _Function

from ... import _core
from ...core.errors import ArgumentTypeError, GradientError
from ...core.operator import Operator
from ...core.schema import Argument
from ...gradients.recorded import Recorded, failed
from ...gradients.rule import apply_rule, check_gradient, no_gradient
from ..base import map_tensors
from . import tensors

Run = Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]
Pull = Callable[[Sequence[Any]], tuple[Any, ...]]


class Call:
    """One call whose gradient is recorded: its arguments, tensors left out, and how it is pulled back.

    ``Function`` loses gradients of tensors inside lists, so it is given all tensors one by one.
    """

    def __init__(self, bound: Any, arguments: tuple[Any, ...], run: Run) -> None:
        """Take the arguments apart."""
        self.bound, self.run = bound, run
        self.tensors: list[Any] = []
        self.layout = tensors.each(arguments, self._number)
        self.pull: Pull | None = None

    def _number(self, tensor: Any) -> _Place:
        self.tensors.append(tensor)
        return _Place(len(self.tensors) - 1)

    def arguments(self, flat: Sequence[Any]) -> tuple[Any, ...]:
        """Return the bound arguments, with these tensors."""
        return tuple(
            tuple(flat[item] if isinstance(item, _Place) else item for item in value)
            if isinstance(value, tuple)
            else flat[value]
            if isinstance(value, _Place)
            else value
            for value in self.layout
        )

    def flatten(self, grads: Sequence[Any]) -> list[Any]:
        """Return one gradient or None for each tensor, from one for each argument."""
        found: list[Any] = [None] * len(self.tensors)
        for place, grad in zip(self.layout, grads, strict=True):
            if isinstance(place, _Place):
                found[place] = grad
            elif isinstance(place, tuple) and grad is not None:
                for item, one in zip(place, grad, strict=True):
                    if isinstance(item, _Place):
                        found[item] = one
        return found


class _Place(int):
    """Where a tensor stood: its number among the tensors of the call."""


class _Recorded(_Function):  # type: ignore[misc]
    """The node of a call."""

    @staticmethod
    def forward(ctx: Any, call: Call, *flat: Any) -> Any:
        """Run the operator."""
        arguments = call.arguments(flat)
        _check_written(call.bound, arguments)
        recorded = isinstance(call.bound.operator.gradient, Recorded)
        ctx.set_materialize_grads(not recorded)
        outputs, call.pull = (_vjp_recorded if recorded else _vjp_rule)(call.bound, arguments, call.run)
        dirty = _written(call.bound, arguments)
        if dirty:
            ctx.mark_dirty(*dirty)
        discrete = [x for x in outputs if not tensors.spec(x).dtype.is_floating]
        if discrete:
            ctx.mark_non_differentiable(*discrete)
        ctx.call = call
        return outputs[0] if len(outputs) == 1 else outputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the input gradients."""
        return (None, *ctx.call.flatten(ctx.call.pull(grads)))


def call(bound: Any, arguments: tuple[Any, ...], run: Run) -> tuple[Any, ...]:
    """Return the outputs of a call whose gradient MindSpore records."""
    made = Call(bound, arguments, run)
    outputs = _Recorded.apply(made, *made.tensors)
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)


def vjp(bound: Any, arguments: tuple[Any, ...], run: Run) -> tuple[tuple[Any, ...], Pull]:
    """Return the outputs, and the function from output gradients to input gradients."""
    recorded = isinstance(bound.operator.gradient, Recorded)
    return (_vjp_recorded if recorded else _vjp_rule)(bound, arguments, run)


def _vjp_rule(bound: Any, arguments: tuple[Any, ...], run: Run) -> tuple[tuple[Any, ...], Pull]:
    operator: Operator = bound.operator
    outputs = run(bound, arguments)

    def pull(grads: Sequence[Any]) -> tuple[Any, ...]:
        if operator.gradient is None:
            raise no_gradient(operator)
        found = apply_rule(operator, arguments, outputs, grads)
        rows = zip(operator.schema.arguments, arguments, found, strict=True)
        return tuple(_checked(operator, argument, value, grad) for argument, value, grad in rows)

    return outputs, pull


def _checked(operator: Operator, argument: Argument, value: Any, grad: Any) -> Any:
    if grad is None or value is None or not argument.type.is_tensor:
        return None  # an attribute has a place in the tuple and no gradient
    if not argument.type.is_list:
        return _as_tensor(operator, argument.name, grad, value)
    if not isinstance(grad, (list, tuple)) or len(grad) != len(value):
        rule = f"must be a list of {len(value)} gradients, one per item"
        raise GradientError(f"{operator.name}: gradient of {argument.name}", rule, type(grad).__name__)
    return tuple(
        None if one is None else _as_tensor(operator, f"{argument.name}[{i}]", one, item)
        for i, (item, one) in enumerate(zip(value, grad, strict=True))
    )


def _as_tensor(operator: Operator, name: str, grad: Any, value: Any) -> Any:
    check_gradient(operator, name, grad, value.shape, mindspore.Tensor)
    return grad


def _written(bound: Any, arguments: tuple[Any, ...]) -> list[Any]:
    found: list[Any] = []
    for argument, value in zip(bound.schema.arguments, arguments, strict=True):
        if argument.type.writes and value is not None:
            found += value if isinstance(value, tuple) else [value]
    return found


def _check_written(bound: Any, arguments: tuple[Any, ...]) -> None:
    for argument, value in zip(bound.schema.arguments, arguments, strict=True):
        if argument.type.writes and any(tensors.wanted((value,))):
            rule = "is written in place, so no gradient can be recorded through it"
            hint = "call the operator on a copy, or on ops.stop_gradient of it"
            subject = f"{bound.name}: argument {argument.name}"
            raise GradientError(subject, rule, where=bound.operator.origin, hint=hint)


class _Once(_Function):  # type: ignore[misc]
    """Gradients that have no gradient: asking for one is an error, and it is known only then."""

    @staticmethod
    def forward(ctx: Any, problem: GradientError, made: list[Any], *inputs: Any) -> Any:
        """Return what was made; it depends on the inputs."""
        del inputs
        ctx.problem = problem
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Raise the error."""
        del grads
        raise ctx.problem


def _once(operator: Operator, made: list[Any], arguments: Any, grads: Any) -> list[Any]:
    words = "its gradient was recorded, and MindSpore cannot differentiate it again"
    problem = GradientError(operator.name, words, where=operator.origin)
    inputs: list[Any] = []
    tensors.each((*arguments, *grads), inputs.append)
    found = iter(_Once.apply(problem, [one for one in made if one is not None], *inputs))
    return [None if one is None else next(found) for one in made]


def _vjp_recorded(bound: Any, arguments: tuple[Any, ...], run: Run) -> tuple[tuple[Any, ...], Pull]:
    """Record a C++ module's Forward; its Backward is run on what that saved."""
    del run  # it would run without a record
    operator: Operator = bound.operator
    ctx = types.SimpleNamespace()
    owners: dict[int, Any] = {}

    def array(name: str, value: Any, argument: Argument) -> Any:
        del argument
        made = tensors.array(operator, name, value)
        owners[id(made)] = value
        return made

    arrays = map_tensors(operator, arguments, array)
    result = bound.record(ctx, *arrays)
    if result is NotImplemented and bound.operator is not operator:  # it was learned what is written
        _check_written(bound, arguments)
        result = bound.record(ctx, *arrays)
    if result is NotImplemented:
        rule = "its gradient cannot be recorded for these tensors"
        raise ArgumentTypeError(operator.name, rule, where=operator.origin)
    fresh = result if isinstance(result, tuple) else () if result is None else (result,)
    # an input may be written before the gradient is asked for, and nobody would notice
    saved = tuple(array.copy() for array in ctx.to_save)

    def pull(grads: Sequence[Any]) -> tuple[Any, ...]:
        given = tuple(None if g is None else tensors.array(operator, "gradient", g) for g in grads)
        try:
            pulled = _core.backward(ctx.tape, saved, given)
        except RuntimeError as problem:
            raise failed(operator.name, problem, operator.origin) from None

        made = [None if one is None else tensors.tensor(one, operator.name) for one in pulled]
        if tensors.EXECUTOR.requires_grad():
            made = _once(operator, made, arguments, grads)
        found = iter(made)
        grown = map_tensors(operator, arguments, lambda *_: next(found))
        rows = zip(operator.schema.arguments, grown, strict=True)
        return tuple(value if argument.type.is_tensor else None for argument, value in rows)

    outputs = tuple(owners[id(x)] if id(x) in owners else tensors.tensor(x, operator.name) for x in fresh)
    return outputs, pull
