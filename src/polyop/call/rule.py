"""Calling a gradient rule, with its contract checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import GradientError
from ..core.origin import of_function
from .operator import Operator

CUSTOM = "custom"
"""The namespace of what ``Custom`` makes: it takes ``bprop``, and neither ``gradient`` nor ``batch``."""


def no_gradient(operator: Operator) -> GradientError:
    """Return the error for a gradient that nobody defined: never a silent zero."""
    if operator.schema.mutates:
        rule = "writes an argument in place, and such an operator has no gradient"
        return GradientError(operator.name, rule, where=operator.origin, hint="return a new tensor instead")
    given = "bprop=" if operator.schema.namespace == CUSTOM else "gradient= (or bprop=)"
    hint = f"give {given}: a function of the inputs, the output and its gradient"
    return GradientError(operator.name, "has no gradient rule", where=operator.origin, hint=hint)


def saving_of(operator: Operator, arguments: Sequence[Any]) -> Any:
    """Return the operator to call in place of this one where a gradient is wanted, or None.

    It gives the same outputs and then what its own gradient reads. Rules that the author gave beside a
    derived gradient would be lost with it: then there is none.
    """
    saving = getattr(operator.gradient, "saving", None)
    given = [rule for rule in (operator.jvp, operator.batch) if not getattr(rule, "is_derived", rule is None)]
    return saving(arguments) if callable(saving) and not given else None


def apply_rule(
    operator: Operator,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    grads: Sequence[Any],
    wanted: Sequence[bool] | None = None,
) -> tuple[Any, ...]:
    """Return the input gradients, one or None per argument of the schema.

    ``wanted``: the arguments whose gradients are asked for; a rule that polyop derived makes no others.

    One output is passed to the rule as itself, several (or a declared 1-tuple) as a tuple.
    Raises ``GradientError`` when there is no rule, or it returns anything but a tuple of the
    right length; what the rule itself raises goes through.
    """
    rule = operator.gradient
    if rule is None:
        raise no_gradient(operator)
    at = getattr(rule, "at", None)
    if at is not None and wanted is not None:
        result = at(inputs)(inputs, outputs, grads, wanted)
    elif len(outputs) == 1 and not operator.several:
        result = rule(*inputs, outputs[0], grads[0])
    else:
        result = rule(*inputs, tuple(outputs), tuple(grads))
    if type(result) is tuple and len(result) == len(inputs):
        return result
    seen = len(result) if isinstance(result, tuple) else type(result).__name__
    raise wrong_result(operator, len(inputs), seen)


def wrong_result(operator: Operator, count: int, seen: int | str) -> GradientError:
    """Return the error for a rule that gave a tuple of ``seen``, or what is called that."""
    rule = f"the gradient rule must return a tuple of {count}, one gradient or None per input"
    hint = "also for one input: return (dx,)" if count == 1 and isinstance(seen, str) else None
    where = of_function(operator.gradient)
    return GradientError(operator.name, rule, str(seen), where=where, hint=hint)


def wrong_list(operator: Operator, name: str, count: int, seen: int | str) -> GradientError:
    """Return the error for the gradient of a list of tensors that is ``seen`` long, or called that."""
    subject = f"{operator.name}: gradient of {name}"
    rule = f"must be a list of {count} gradients, one per item"
    return GradientError(subject, rule, str(seen), where=of_function(operator.gradient))


def check_gradient(
    operator: Operator, name: str, value: Any, shape: Sequence[int], kind: type | None = None
) -> None:
    """Raise ``GradientError`` unless an input's gradient is a ``kind`` of that input's shape."""
    where = of_function(operator.gradient)
    subject = f"{operator.name}: gradient of {name}"
    found = getattr(value, "shape", None)
    if found is None or (kind is not None and not isinstance(value, kind)):
        wanted = f"a {kind.__module__}.{kind.__name__}" if kind else "a tensor"
        raise GradientError(subject, f"must be {wanted} or None", type(value).__name__, where=where)
    if tuple(found) != tuple(shape):
        raise GradientError(subject, f"must have the input's shape {tuple(shape)}", tuple(found), where=where)
