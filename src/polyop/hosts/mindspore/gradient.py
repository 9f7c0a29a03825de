"""Gradients of PyNative calls, through MindSpore's ``_Function``."""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import mindspore
from mindspore.common._grad_function import _Function

from ... import _core
from ...call.foreign import flatten, written
from ...call.host import map_tensors
from ...call.operator import Operator
from ...call.rule import apply_rule, check_gradient, no_gradient, wrong_list
from ...core.errors import ArgumentTypeError, GradientError
from ...core.schema import Argument
from ...rules.module.recorded import Recorded, failed
from . import tensors
from .places import filled, paired

Run = Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]
Pull = Callable[[Sequence[Any]], tuple[Any, ...]]


class Call:
    """One call whose gradient is recorded: its arguments, tensors left out, and how it is pulled back.

    ``Function`` loses gradients of tensors inside lists, so it is given all tensors one by one.
    """

    def __init__(self, bound: Any, arguments: tuple[Any, ...], run: Run) -> None:
        """Take the tensors out."""
        self.bound, self.run = bound, run
        self.layout = filled(bound.schema, arguments, itertools.repeat(True))
        self.pull: Pull | None = None
        self.outputs = 0  # how many of the node's outputs are the operator's


class _Recorded(_Function):  # type: ignore[misc]
    """The node of a call."""

    @staticmethod
    def forward(ctx: Any, call: Call, *flat: Any) -> Any:
        """Run the operator."""
        arguments = filled(call.bound.schema, call.layout, flat)
        _check_written(call.bound, arguments)
        recorded = isinstance(call.bound.operator.gradient, Recorded)
        ctx.set_materialize_grads(not recorded)
        outputs, call.pull = (_vjp_recorded if recorded else _vjp_rule)(call.bound, arguments, call.run)
        call.outputs = len(outputs)
        dirty = written(call.bound.schema, arguments)
        if dirty:
            ctx.mark_dirty(*dirty)
        # MindSpore wants all that is written among the outputs
        outputs += tuple(one for one in dirty if not any(one is other for other in outputs))
        constant = [x for x in outputs if not tensors.spec(x).dtype.is_floating or _buffer(x)]
        if constant:
            ctx.mark_non_differentiable(*constant)
        ctx.call = call
        return outputs[0] if len(outputs) == 1 else outputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the input gradients."""
        call: Call = ctx.call
        assert call.pull is not None  # forward has run
        return (None, *paired(call.bound.schema, call.layout, call.pull(grads[: call.outputs])))


def call(bound: Any, arguments: tuple[Any, ...], run: Run) -> tuple[Any, ...]:
    """Return the outputs of a call whose gradient MindSpore records."""
    return _apply(bound, arguments, run)[0]


def _apply(bound: Any, arguments: tuple[Any, ...], run: Run) -> tuple[tuple[Any, ...], Call]:
    made = Call(bound, arguments, run)
    outputs = _Recorded.apply(made, *flatten(bound.schema, arguments))
    found = tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)
    return found[: made.outputs], made


def vjp(bound: Any, arguments: tuple[Any, ...], run: Run) -> tuple[tuple[Any, ...], Pull]:
    """Return the outputs, and the function from output gradients to input gradients.

    Within a function that MindSpore differentiates, the outputs are recorded as a call's are.
    """
    recorded = isinstance(bound.operator.gradient, Recorded)
    if not tensors.recording(arguments):
        return (_vjp_recorded if recorded else _vjp_rule)(bound, arguments, run)
    outputs, made = _apply(bound, arguments, run)
    if recorded and made.pull is not None:
        return outputs, made.pull
    return outputs, _pull_rule(bound.operator, arguments, outputs)


def _vjp_rule(bound: Any, arguments: tuple[Any, ...], run: Run) -> tuple[tuple[Any, ...], Pull]:
    outputs = run(bound, arguments)
    return outputs, _pull_rule(bound.operator, arguments, outputs)


def _pull_rule(operator: Operator, arguments: tuple[Any, ...], outputs: tuple[Any, ...]) -> Pull:
    if operator.gradient is None:
        return functools.partial(_refuse, operator)  # which keeps none of the tensors

    def pull(grads: Sequence[Any]) -> tuple[Any, ...]:
        found = apply_rule(operator, arguments, outputs, grads)
        rows = zip(operator.schema.arguments, arguments, found, strict=True)
        return tuple(_checked(operator, argument, value, grad) for argument, value, grad in rows)

    return pull


def _refuse(operator: Operator, grads: Sequence[Any]) -> NoReturn:
    del grads
    raise no_rule(operator)


def no_rule(operator: Operator) -> GradientError:
    """Return the error for a gradient that there is not."""
    if not operator.schema.mutates:
        return no_gradient(operator)
    words = "writes an argument in place, and such an operator has no gradient"
    hint = "return a new tensor instead, or call it on ops.stop_gradient of what it reads"
    return GradientError(operator.name, words, where=operator.origin, hint=hint)


def _checked(operator: Operator, argument: Argument, value: Any, grad: Any) -> Any:
    if grad is None or value is None or not argument.type.is_tensor:
        return None  # an attribute has a place in the tuple and no gradient
    if not argument.type.is_list:
        return _as_tensor(operator, argument.name, grad, value)
    seen = len(grad) if isinstance(grad, (list, tuple)) else type(grad).__name__
    if seen != len(value):
        raise wrong_list(operator, argument.name, len(value), seen)
    return tuple(
        None if one is None else _as_tensor(operator, f"{argument.name}[{i}]", one, item)
        for i, (item, one) in enumerate(zip(value, grad, strict=True))
    )


def _as_tensor(operator: Operator, name: str, grad: Any, value: Any) -> Any:
    check_gradient(operator, name, grad, value.shape, mindspore.Tensor)
    return grad


def _buffer(tensor: Any) -> bool:
    """Whether a tensor takes part in no gradient, whatever is written into it, as for ``ops.assign``."""
    return isinstance(tensor, mindspore.Parameter) and not tensor.requires_grad


def _history(tensor: Any) -> bool:
    """Whether a tensor has a gradient to lose; one that an operator wrote before has none."""
    node = getattr(tensor, "_grad_node", None)
    ours = isinstance(node, _Recorded) and node.call.bound.schema.mutates
    return bool(tensor._requires_grad) and not ours  # noqa: SLF001 - has no other name


def _check_written(bound: Any, arguments: tuple[Any, ...]) -> None:
    for argument, value in zip(bound.schema.arguments, arguments, strict=True):
        if argument.type.writes and any(map(_history, tensors.every((value,)))):
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
    inputs = tensors.every((*arguments, *grads))
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
