"""Gradients of PyNative calls, through MindSpore's ``_Function``."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import mindspore
from mindspore.common._grad_function import _Function

from ...call.flat_tensors import flat_gradients, with_tensors
from ...call.foreign import flatten, written_tensors
from ...call.operator import Operator
from ...call.rule import apply_rule, check_gradient, list_gradients, no_gradient
from ...core.errors import GradientError
from ...core.schema import Argument
from ...rules.module.recorded import Recorded
from . import module_gradient, tensors

Run = Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]
Pull = Callable[[Sequence[Any]], tuple[Any, ...]]


class Call:
    """A call whose gradient is recorded: its arguments without their tensors, and its pullback.

    MindSpore's ``_Function`` loses the gradients of tensors inside lists, so it gets a call and the
    tensors one by one.
    """

    def __init__(self, bound: Any, arguments: tuple[Any, ...], run: Run) -> None:
        """Keep the arguments, with a marker for each tensor."""
        self.bound, self.run = bound, run
        self.layout = with_tensors(bound.schema, arguments, itertools.repeat(True))
        self.pull: Pull | None = None
        self.outputs = 0  # how many of the node's outputs are the operator's


class _Recorded(_Function):  # type: ignore[misc]
    """The node of a call in MindSpore's gradient."""

    @staticmethod
    def forward(ctx: Any, call: Call, *flat: Any) -> Any:
        """Run the operator."""
        arguments = with_tensors(call.bound.schema, call.layout, flat)
        _check_written(call.bound, arguments)
        ctx.set_materialize_grads(not _is_recorded(call.bound))
        outputs, call.pull = _vjp(call.bound, arguments, call.run)
        call.outputs = len(outputs)
        dirty = written_tensors(call.bound.schema, arguments)
        if dirty:
            ctx.mark_dirty(*dirty)
        # MindSpore requires every dirty tensor to be an output
        outputs += tuple(x for x in dirty if not any(x is output for output in outputs))
        constant = [x for x in outputs if not tensors.spec(x).dtype.is_floating or _is_buffer(x)]
        if constant:
            ctx.mark_non_differentiable(*constant)
        ctx.call = call
        return outputs[0] if len(outputs) == 1 else outputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the input gradients."""
        call: Call = ctx.call
        assert call.pull is not None  # forward has run
        return (None, *flat_gradients(call.bound.schema, call.layout, call.pull(grads[: call.outputs])))


def call(bound: Any, arguments: tuple[Any, ...], run: Run) -> tuple[Any, ...]:
    """Return the outputs of a call whose gradient MindSpore records."""
    return _apply(bound, arguments, run)[0]


def _apply(bound: Any, arguments: tuple[Any, ...], run: Run) -> tuple[tuple[Any, ...], Call]:
    node_call = Call(bound, arguments, run)
    result = _Recorded.apply(node_call, *flatten(bound.schema, arguments))
    outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    return outputs[: node_call.outputs], node_call


def vjp(bound: Any, arguments: tuple[Any, ...], run: Run) -> tuple[tuple[Any, ...], Pull]:
    """Return the outputs, and the function from output gradients to input gradients.

    Inside a function that MindSpore differentiates, the outputs are recorded like those of a call.
    """
    if not tensors.recording(arguments):
        return _vjp(bound, arguments, run)
    outputs, node_call = _apply(bound, arguments, run)
    if _is_recorded(bound) and node_call.pull is not None:
        return outputs, node_call.pull
    return outputs, _pull_rule(bound.operator, arguments, outputs)


def _is_recorded(bound: Any) -> bool:
    return isinstance(bound.operator.gradient, Recorded)


def _vjp(bound: Any, arguments: tuple[Any, ...], run: Run) -> tuple[tuple[Any, ...], Pull]:
    if _is_recorded(bound):
        return module_gradient.vjp(bound, arguments, _check_written)
    outputs = run(bound, arguments)
    return outputs, _pull_rule(bound.operator, arguments, outputs)


def _pull_rule(operator: Operator, arguments: tuple[Any, ...], outputs: tuple[Any, ...]) -> Pull:
    if operator.gradient is None:
        return functools.partial(_refuse, operator)  # a closure would keep the tensors alive

    def pull(grads: Sequence[Any]) -> tuple[Any, ...]:
        input_grads = apply_rule(operator, arguments, outputs, grads)
        rows = zip(operator.schema.arguments, arguments, input_grads, strict=True)
        return tuple(_checked(operator, argument, value, grad) for argument, value, grad in rows)

    return pull


def _refuse(operator: Operator, grads: Sequence[Any]) -> NoReturn:
    del grads
    raise no_rule(operator)


def no_rule(operator: Operator) -> GradientError:
    """Return the error for the gradient of an operator that has none."""
    if not operator.schema.mutates:
        return no_gradient(operator)
    rule = "writes an argument in place, and such an operator has no gradient"
    hint = "return a new tensor instead, or call it on ops.stop_gradient of what it reads"
    return GradientError(operator.name, rule, where=operator.origin, hint=hint)


def _checked(operator: Operator, argument: Argument, value: Any, grad: Any) -> Any:
    if grad is None or value is None or not argument.type.is_tensor:
        return None  # an attribute has an entry in the tuple, but no gradient
    if not argument.type.is_list:
        return _as_tensor(operator, argument.name, grad, value)
    item_grads = list_gradients(operator, argument.name, value, grad)
    return tuple(
        None if item_grad is None else _as_tensor(operator, f"{argument.name}[{i}]", item_grad, item)
        for i, (item, item_grad) in enumerate(zip(value, item_grads, strict=True))
    )


def _as_tensor(operator: Operator, name: str, grad: Any, value: Any) -> Any:
    check_gradient(operator, name, grad, value.shape, mindspore.Tensor)
    return grad


def _is_buffer(tensor: Any) -> bool:
    """Whether a tensor has no gradient, whatever is written into it, as ``ops.assign`` decides too."""
    return isinstance(tensor, mindspore.Parameter) and not tensor.requires_grad


def _has_history(tensor: Any) -> bool:
    """Whether a write to a tensor would lose a gradient; an operator's earlier write already has."""
    node = getattr(tensor, "_grad_node", None)
    ours = isinstance(node, _Recorded) and node.call.bound.schema.mutates
    return bool(tensor._requires_grad) and not ours  # noqa: SLF001 - has no public name


def _check_written(bound: Any, arguments: tuple[Any, ...]) -> None:
    for argument, value in zip(bound.schema.arguments, arguments, strict=True):
        if argument.type.writes and any(map(_has_history, tensors.tensors_in((value,)))):
            rule = "is written in place, so no gradient can be recorded through it"
            hint = "call the operator on a copy, or on ops.stop_gradient of it"
            subject = f"{bound.name}: argument {argument.name}"
            raise GradientError(subject, rule, where=bound.operator.origin, hint=hint)
