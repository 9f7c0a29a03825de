"""The base of polyop's rules, the call of a gradient rule, and the checks of its result.

    apply_rule(operator, inputs, outputs, grads) -> one gradient or None per argument

An author's rule is a function. A rule that polyop makes is a :class:`Rule`, which also knows what it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..core.errors import ArgumentValueError, GradientError
from ..core.origin import of_function
from .operator import Operator
from .uses import Uses

CUSTOM = "custom"
"""The namespace of operators from ``Custom``: it has ``bprop``, and neither ``gradient`` nor ``batch``."""


class VJP(Protocol):
    """A gradient rule specialised to one signature: all calls with the same specs and attributes."""

    @property
    def uses(self) -> Uses:
        """The arguments and outputs that a framework must keep for the gradient."""

    def __call__(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        grads: Sequence[Any],
        needs_gradient: Sequence[bool],
    ) -> tuple[Any, ...]:
        """Return one gradient per argument; None where none is needed, or where it is zero."""


class Rule:
    """The base of the rules that polyop makes: derived from loops, recorded by a C++ module, a provider's.

    A subclass is callable as an author's function is. The defaults below are what holds for such a function.
    """

    is_derived: bool = False
    """Whether polyop derives it: from the operator's loops, or from its ``dims``."""
    is_recorded: bool = False
    """Whether a C++ module records it during each call."""
    made_by: str = "given"
    """Who has made it, in words: the author of the operator, unless a subclass says otherwise."""
    calls_operators: bool = False
    """Whether it only calls operators, so that a compiler can record it without data."""
    batching: str = "one call for all samples"
    """Of a batch rule: how many calls it makes, in words."""
    advice: str = ""
    """Of a batch rule: what an author can do where it loops, in words."""
    part_kinds: tuple[str, ...] = ()
    """The parts that it makes: rows of ``registry.PARTS``."""

    def at(self, arguments: Sequence[Any]) -> VJP | None:
        """Return the gradient specialised to the specs and attributes of these arguments, or None."""

    def reads(
        self, arguments: Sequence[Any], outputs: int, tangents: Sequence[Any] | None = None
    ) -> Uses | None:
        """Return which arguments and which of the ``outputs`` outputs it reads; None if that is unknown.

        ``tangents`` is for forward mode: the tangent of each argument, or None.
        """

    def saving(self, arguments: Sequence[Any]) -> Any:
        """Return the operator to call instead when a gradient is requested, or None."""

    def without_gradient(self, arguments: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """Return the outputs that do not depend differentiably on any argument."""
        del arguments, outputs
        return []

    def part(self, suffix: str) -> Any:
        """Return the part ``<name>__<suffix>``, made now if need be; None if this rule has no such part."""

    def parts_made(self) -> Sequence[Any]:
        """Return the parts that exist so far. This makes none."""
        return ()


def no_gradient(operator: Operator) -> GradientError:
    """Return the error for a gradient that nobody defined: never a silent zero."""
    if operator.schema.mutates:
        rule = "writes an argument in place, and such an operator has no gradient"
        return GradientError(operator.name, rule, where=operator.origin, hint="return a new tensor instead")
    if operator.no_gradient:
        return GradientError(operator.name, operator.no_gradient, where=operator.origin)
    parameter = "bprop=" if operator.schema.namespace == CUSTOM else "gradient= (or bprop=)"
    hint = f"give {parameter}: a function of the inputs, the output and its gradient"
    return GradientError(operator.name, "has no gradient rule", where=operator.origin, hint=hint)


def saving_of(operator: Operator, arguments: Sequence[Any]) -> Any:
    """Return the operator to call instead when a gradient is requested, or None.

    It returns the same outputs, followed by the temporaries that its own gradient reads. It would ignore an
    author's ``jvp`` or batch rule, so the result is None for an operator that has one.
    """
    rule = operator.gradient
    return rule.saving(arguments) if isinstance(rule, Rule) and may_save(operator) else None


def may_save(operator: Operator) -> bool:
    """Whether polyop derives all rules of the operator, and its gradient may read saved temporaries."""
    rules = (operator.gradient, operator.jvp, operator.batch)
    no_author_rule = all(rule is None or (isinstance(rule, Rule) and rule.is_derived) for rule in rules[1:])
    return no_author_rule and isinstance(operator.gradient, Rule) and "saving" in operator.gradient.part_kinds


def apply_rule(
    operator: Operator,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    grads: Sequence[Any],
    needs_gradient: Sequence[bool] | None = None,
) -> tuple[Any, ...]:
    """Return the input gradients, one or None per argument of the schema.

    ``needs_gradient`` has a flag for each argument. A rule with a :class:`VJP` computes no
    others; other rules compute all.

    One output is passed to the rule as itself, several (or a declared 1-tuple) as a tuple.
    Raises ``GradientError`` when there is no rule, or when it returns anything but a tuple of the
    right length, or complex numbers for a real input. Exceptions of the rule itself pass through.
    """
    rule = operator.gradient
    if rule is None:
        raise no_gradient(operator)
    vjp = rule.at(inputs) if isinstance(rule, Rule) and needs_gradient is not None else None
    if vjp is not None and needs_gradient is not None:
        result = vjp(inputs, outputs, grads, needs_gradient)
    elif len(outputs) == 1 and not operator.several:
        result = rule(*inputs, outputs[0], grads[0])
    else:
        result = rule(*inputs, tuple(outputs), tuple(grads))
    if type(result) is tuple and len(result) == len(inputs):
        for argument, value, grad in zip(operator.schema.arguments, inputs, result, strict=True):
            if grad is not None and argument.type.is_tensor:
                check_real(operator, argument.name, grad, value)
        return result
    length_or_type = len(result) if type(result) is tuple else type(result).__name__
    raise wrong_result(operator, len(inputs), length_or_type)


def wrong_result(operator: Operator, count: int, length_or_type: int | str) -> GradientError:
    """Return the error for a rule's result: a tuple of another length, or another type."""
    rule = f"the gradient rule must return a tuple of {count}, one gradient or None per input"
    hint = "also for one input: return (dx,)" if count == 1 and isinstance(length_or_type, str) else None
    where = of_function(operator.gradient)
    return GradientError(operator.name, rule, str(length_or_type), where=where, hint=hint)


def wrong_list(operator: Operator, name: str, count: int, length_or_type: int | str) -> GradientError:
    """Return the error for the gradient of a list: a list of another length, or another type."""
    subject = f"{operator.name}: gradient of {name}"
    rule = f"must be a list of {count} gradients, one per item"
    return GradientError(subject, rule, str(length_or_type), where=of_function(operator.gradient))


def list_gradients(operator: Operator, name: str, items: Sequence[Any], grads: Any) -> Sequence[Any]:
    """Return the gradients of a list argument, one or None per item; None stands for a list of None.

    Raises ``GradientError`` for another length or type.
    """
    if grads is None:
        return (None,) * len(items)
    if not isinstance(grads, (list, tuple)):
        raise wrong_list(operator, name, len(items), type(grads).__name__)
    if len(grads) != len(items):
        raise wrong_list(operator, name, len(items), len(grads))
    return grads


def check_gradient(
    operator: Operator, name: str, value: Any, shape: Sequence[int], tensor_type: type | None = None
) -> None:
    """Raise ``GradientError`` unless an input's gradient is a ``tensor_type`` of the input's shape."""
    where = of_function(operator.gradient)
    subject = f"{operator.name}: gradient of {name}"
    value_shape = getattr(value, "shape", None)
    if value_shape is None or (tensor_type is not None and not isinstance(value, tensor_type)):
        expected = f"a {tensor_type.__module__}.{tensor_type.__name__}" if tensor_type else "a tensor"
        raise GradientError(subject, f"must be {expected} or None", type(value).__name__, where=where)
    if tuple(value_shape) != tuple(shape):
        rule = f"must have the input's shape {tuple(shape)}"
        raise GradientError(subject, rule, tuple(value_shape), where=where)


def check_real(operator: Operator, name: str, grad: Any, value: Any) -> None:
    """Raise ``GradientError`` for complex numbers that a rule returns for a real input.

    No host may take their real part: it would be zero, without a word, where the rule is wrong. Of a list
    each item is checked.
    """
    if isinstance(grad, (tuple, list)) and isinstance(value, (tuple, list)):
        for number, (one, item) in enumerate(zip(grad, value, strict=False)):
            check_real(operator, f"{name}[{number}]", one, item)
        return
    of, to = getattr(grad, "dtype", None), getattr(value, "dtype", None)
    if of is to or "complex" not in str(of).lower() or "float" not in str(to).lower():
        return
    rule = f"the gradient rule must return real numbers, as {name} is"
    hint = f"return the real part: a change of {name} along the imaginary axis does not exist"
    subject, where = f"{operator.name}: gradient of {name}", of_function(operator.gradient)
    raise GradientError(subject, rule, str(of), where=where, hint=hint)


def output_gradients(operator: Operator, outputs: Sequence[Any], grads: Sequence[Any]) -> tuple[Any, ...]:
    """Return the gradients of outputs as a rule takes them: each None, or a tensor of the output's dtype.

    A kernel reads them by the output's shape. Raises ``GradientError`` for another shape, for what is no
    tensor, and for complex numbers of a real output, and ``ArgumentValueError`` for another number of them.
    """
    if len(grads) != len(outputs):
        rule = f"vjp needs {len(outputs)} output gradients"
        raise ArgumentValueError(operator.name, rule, str(len(grads)))
    rows = enumerate(zip(outputs, grads, strict=True))
    return tuple(_output_gradient(operator, number, *row) for number, row in rows)


def _output_gradient(operator: Operator, number: int, output: Any, grad: Any) -> Any:
    to = str(getattr(output, "dtype", "")).lower()
    if grad is None or isinstance(grad, (int, float, complex)) or not ("float" in to or "complex" in to):
        return grad
    subject = f"{operator.name}: gradient of output {number}"
    shape = getattr(grad, "shape", None)
    if shape is None:
        raise GradientError(subject, "must be a tensor or None", type(grad).__name__, where=operator.origin)
    if tuple(shape) != tuple(output.shape):
        rule = f"must have the output's shape {tuple(output.shape)}"
        raise GradientError(subject, rule, tuple(shape), where=operator.origin)
    if str(grad.dtype).lower() == to:
        return grad
    if "complex" in str(grad.dtype).lower() and "complex" not in to:
        raise GradientError(subject, "must be real, as the output is", grad.dtype, where=operator.origin)
    return grad.astype(output.dtype) if hasattr(grad, "astype") else grad.to(output.dtype)


def check_gradients(operator: Operator, arguments: Sequence[Any], grads: Sequence[Any]) -> None:
    """Raise ``GradientError`` unless each gradient is None or has the shape of its argument."""
    for argument, value, grad in zip(operator.schema.arguments, arguments, grads, strict=True):
        if grad is None or value is None or not argument.type.is_tensor:
            continue
        if not argument.type.is_list:
            check_gradient(operator, argument.name, grad, value.shape)
            continue
        item_grads = list_gradients(operator, argument.name, value, grad)
        for number, (item, item_grad) in enumerate(zip(value, item_grads, strict=True)):
            if item_grad is not None:
                check_gradient(operator, f"{argument.name}[{number}]", item_grad, item.shape)
