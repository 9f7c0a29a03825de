"""Gradients and tangents of expressions, from the derivative that the row of each operator has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...core.errors import GradientError
from ..ir.derivatives import Contributions, choice, number, times
from ..ir.grammar import BOOL, Expr, Kernel, Load, Op, Store, children, unconditional, walk
from ..ir.operators import OPERATORS
from ..ir.types import cast, is_real, kind, number_of


def plus(a: Expr | None, b: Expr | None) -> Expr | None:
    """Return the sum of two contributions; None is zero."""
    if a is None or b is None:
        return b if a is None else a
    if a == b:
        return times(number(2.0, a.type), a)
    if isinstance(b, Op) and b.name == "neg":
        return a - b.args[0]
    return a + b


def contributions(node: Op, g: Expr) -> Contributions:
    """Return one contribution or None for each argument of an operator.

    Raises ``GradientError`` for trigamma.

    >>> from polyop.loops.ir.grammar import Type, Var
    >>> x = Var("x", Type("float32"))
    >>> contributions(Op("neg", (x,), x.type), Var("g", x.type))[0].name
    'neg'
    """
    if kind(node.type) != "f":
        return (None,) * len(node.args)
    rule = OPERATORS[node.name].derivative
    if rule is None:
        raise _without_derivative(node)
    found = rule(g, node, *node.args)
    parts = found if isinstance(found, tuple) else (found,)
    return tuple(None if kind(a.type) != "f" else c for a, c in zip(node.args, parts, strict=True))


def _without_derivative(node: Op) -> GradientError:
    line = next((one.line for one in walk(node) if isinstance(one, Load)), 0)
    rule = f"the derivative of {node.name} is not part of the language"
    hint = f"give it one: with_gradient({node.name}(x), x, slope)"
    return GradientError(f"line {line} of the loop kernel" if line else "the loop kernel", rule, hint=hint)


MAX_NODES = 10_000
"""Nodes of all contributions of one statement. Those of a ``max`` grow with the cube of its inputs."""


class Part(NamedTuple):
    """A contribution to the adjoint of a load: ``value``, where ``guard`` holds (None: always)."""

    load: Load
    guard: Expr | None
    value: Expr

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """All that it reads: the index of the load, the value, the guard."""
        return (*self.load.index, self.value, *(() if self.guard is None else (self.guard,)))


def partial_derivatives(kernel: Kernel, store: Store) -> list[Part]:
    """Return the partial derivatives of what is stored, by each element of real numbers that it reads."""
    one = number(1.0, store.value.type)
    return adjoint_parts(store.value, one, lambda load: is_real(kernel, load.buffer))


def adjoint_parts(value: Expr, g: Expr, is_active: Callable[[Load], bool]) -> list[Part]:
    """Return the contributions to the adjoints of loads when the adjoint of ``value`` is ``g``.

    ``is_active`` selects the loads that have an adjoint. A load that runs only under a condition has it as
    guard. Raises ``GradientError`` with the line if the contributions have more than ``MAX_NODES`` nodes.
    """
    size = 0
    safe = {e for e in unconditional(value) if isinstance(e, Load)}
    totals: dict[tuple[Load, Expr | None], Expr] = {}
    for load, guard, part in _adjoint_parts(value, g, None, is_active):
        size += sum(1 for _ in walk(part))
        if size > MAX_NODES:
            raise _oversized(load.line)
        if guard is not None and load in safe:
            part, guard = choice(guard, part, number(0.0, part.type)), None  # noqa: PLW2901 - the same part
        total = plus(totals.get((load, guard)), part)
        assert total is not None
        totals[load, guard] = total
    return [Part(load, guard, part) for (load, guard), part in totals.items()]


def _oversized(line: int) -> GradientError:
    rule = f"the parts of its gradient may have {MAX_NODES} operators in all, and have more"
    hint = "max of many inputs: keep them in a tensor, and loop over it: best = max(best, t[k])"
    return GradientError(f"line {line} of the loop kernel", rule, hint=hint)


def _adjoint_parts(
    value: Expr, g: Expr, guard: Expr | None, is_active: Callable[[Load], bool]
) -> Iterator[Part]:
    """Yield the contributions one by one; several may be to the same load."""
    if isinstance(value, Load):
        if is_active(value):
            yield Part(value, guard, g)
    elif isinstance(value, Op) and _reaches(value, is_active):
        if value.name == "select":
            condition, then, otherwise = value.args
            yield from _adjoint_parts(then, g, _both(guard, condition), is_active)
            yield from _adjoint_parts(otherwise, g, _both(guard, Op("not", (condition,), BOOL)), is_active)
            return
        for argument, part in zip(value.args, contributions(value, g), strict=True):
            if part is not None:
                yield from _adjoint_parts(argument, part, guard, is_active)


def _both(a: Expr | None, b: Expr) -> Expr:
    return b if a is None else Op("and", (a, b), BOOL)


def _reaches(value: Expr, is_active: Callable[[Load], bool]) -> bool:
    """Whether a value reads an active load."""
    if isinstance(value, Load):
        return is_active(value)
    return isinstance(value, Op) and any(_reaches(a, is_active) for a in children(value))


def tangent_of(value: Expr, tangent: Callable[[Load], Expr | None]) -> Expr | None:
    """Return the tangent of an expression, None for zero. ``tangent`` returns that of a load."""
    if isinstance(value, Load):
        return tangent(value)
    if not isinstance(value, Op) or kind(value.type) != "f":
        return None
    if value.name == "select":
        return _tangent_of_choice(value, tangent)
    total: Expr | None = None
    for position, argument in enumerate(value.args):
        part = tangent_of(argument, tangent)
        if part is None:
            continue
        if value.name == "cast":
            return cast(part, number_of(value.type))
        # a contribution is linear in the adjoint: with a tangent in its place it is the result's tangent
        total = plus(total, contributions(value, part)[position])
    return total


def _tangent_of_choice(value: Op, tangent: Callable[[Load], Expr | None]) -> Expr | None:
    """Return the tangent of a ``select``, None for zero."""
    condition, *branches = value.args
    parts = [tangent_of(branch, tangent) for branch in branches]
    if all(part is None for part in parts):
        return None
    zero = number(0.0, value.type)
    then, otherwise = (zero if part is None else part for part in parts)
    return choice(condition, then, otherwise)
