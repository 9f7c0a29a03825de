"""Rules of an operator, the call of a gradient rule, and checks of what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..core.errors import GradientError
from ..core.origin import of_function
from .operator import Operator
from .uses import Uses

CUSTOM = "custom"
"""The namespace of what ``Custom`` makes: authors give ``bprop``, neither ``gradient`` nor ``batch``."""


class VJP(Protocol):
    """The gradient of the calls with given specs and attributes, settled once."""

    @property
    def uses(self) -> Uses:
        """Which arguments and outputs a framework keeps for it."""

    def __call__(
        self, inputs: Sequence[Any], outputs: Sequence[Any], grads: Sequence[Any], wanted: Sequence[bool]
    ) -> tuple[Any, ...]:
        """Return one gradient per argument; None where it is not wanted, or where there is none."""


class Rule:
    """The base of the rules that polyop makes: derived of loops, recorded by a C++ module, a provider's.

    An author's rule is a plain function. A subclass is callable like one, and overrides what differs.
    """

    is_derived: bool = False
    """Whether polyop derives it of the operator's loops."""
    is_recorded: bool = False
    """Whether a C++ module records it, call by call."""
    part_kinds: tuple[str, ...] = ()
    """What it makes operators for: rows of ``registry.PARTS``."""

    def at(self, arguments: Sequence[Any]) -> VJP | None:
        """Return the gradient settled for the specs and attributes of these arguments, or None."""

    def reads(
        self, arguments: Sequence[Any], outputs: int, moving: Sequence[Any] | None = None
    ) -> Uses | None:
        """Return what is read of the arguments and of so many outputs; None where it is not known.

        ``moving`` is for forward mode: for each argument its tangent, or None.
        """

    def saving(self, arguments: Sequence[Any]) -> Any:
        """Return the operator to call in place of this one where a gradient is wanted, or None."""

    def without_gradient(self, arguments: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """Return the outputs that no gradient leads through."""
        del arguments, outputs
        return []

    def part(self, suffix: str) -> Any:
        """Return the operator ``<name>__<suffix>``, which may be made now; None for other suffixes."""

    def parts_made(self) -> Sequence[Any]:
        """Return the operators that it has made so far; it makes none."""
        return ()


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

    It gives the same outputs and then what its own gradient reads. It has no ``jvp`` and no batch rule of the
    author's, so there is none where the author gave one.
    """
    rule = operator.gradient
    return rule.saving(arguments) if isinstance(rule, Rule) and may_save(operator) else None


def may_save(operator: Operator) -> bool:
    """Whether polyop derives all rules of the operator, and its gradient may read saved temporaries."""
    rules = (operator.gradient, operator.jvp, operator.batch)
    own = all(rule is None or (isinstance(rule, Rule) and rule.is_derived) for rule in rules[1:])
    return own and isinstance(operator.gradient, Rule) and "saving" in operator.gradient.part_kinds


def apply_rule(
    operator: Operator,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    grads: Sequence[Any],
    wanted: Sequence[bool] | None = None,
) -> tuple[Any, ...]:
    """Return the input gradients, one or None per argument of the schema.

    ``wanted``: the arguments whose gradients are asked for. A rule with a :class:`VJP` computes no others;
    other rules compute all.

    One output is passed to the rule as itself, several (or a declared 1-tuple) as a tuple.
    Raises ``GradientError`` when there is no rule, or it returns anything but a tuple of the
    right length; what the rule itself raises goes through.
    """
    rule = operator.gradient
    if rule is None:
        raise no_gradient(operator)
    vjp = rule.at(inputs) if isinstance(rule, Rule) and wanted is not None else None
    if vjp is not None and wanted is not None:
        result = vjp(inputs, outputs, grads, wanted)
    elif len(outputs) == 1 and not operator.several:
        result = rule(*inputs, outputs[0], grads[0])
    else:
        result = rule(*inputs, tuple(outputs), tuple(grads))
    if type(result) is tuple and len(result) == len(inputs):
        return result
    seen = len(result) if type(result) is tuple else type(result).__name__
    raise wrong_result(operator, len(inputs), seen)


def wrong_result(operator: Operator, count: int, seen: int | str) -> GradientError:
    """Return the error for a rule's result; ``seen`` is a tuple's length, or the name of another type."""
    rule = f"the gradient rule must return a tuple of {count}, one gradient or None per input"
    hint = "also for one input: return (dx,)" if count == 1 and isinstance(seen, str) else None
    where = of_function(operator.gradient)
    return GradientError(operator.name, rule, str(seen), where=where, hint=hint)


def wrong_list(operator: Operator, name: str, count: int, seen: int | str) -> GradientError:
    """Return the error for the gradient of a list; ``seen`` is its length, or the name of another type."""
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
