"""The derivative of every operator: what the adjoint of its result contributes to those of its arguments.

A contribution is linear in the adjoint, so the rows serve both modes: in reverse mode it is the gradient
of an argument, in forward mode the tangent of the result for a tangent of that argument.

Ties: ``max(a, b)`` and ``min(a, b)`` of equal values belong to ``a``. ``abs`` and ``copysign`` have the
derivative 0 at 0. Where a function has none, IEEE arithmetic answers: ``sqrt`` at 0 gives infinity, as in
PyTorch and JAX. The adjoint of a conditional value is selected after the product, so that a NaN
of the branch that was not taken does not spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ...core.errors import GradientError
from ..ir.grammar import BOOL, Const, Expr, Load, Op, Type, children, unconditional, walk
from ..ir.operate import operate
from ..ir.types import cast, kind, number_of

Contributions = tuple[Expr | None, ...]
Rule = Callable[[Op, Expr], Contributions]


def number(value: float, of: Type) -> Const:
    """Return a float constant of a type."""
    return Const(float(value), of)


def times(a: Expr, b: Expr) -> Expr:
    """Return ``a * b``; a factor 1 is left out, a factor -1 is a sign."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Const) and one.value == 1:
            return other
        if isinstance(one, Const) and one.value == -1:
            return negative(other)
    return operate("*", a, b)


def negative(a: Expr) -> Expr:
    """Return ``-a``."""
    if isinstance(a, Op) and a.name == "neg":
        return a.args[0]
    return operate("neg", a)


def plus(a: Expr | None, b: Expr | None) -> Expr | None:
    """Return the sum of two contributions; None is zero."""
    if a is None or b is None:
        return b if a is None else a
    if a == b:
        return times(number(2.0, a.type), a)
    if isinstance(b, Op) and b.name == "neg":
        return operate("-", a, b.args[0])
    return operate("+", a, b)


def choice(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    """Return one of two values of one type."""
    return Op("select", (condition, then, otherwise), then.type)


def _zero(like: Expr) -> Const:
    return number(0.0, like.type)


def _quotient(node: Op, g: Expr) -> Contributions:
    a, b = node.args
    return operate("/", g, b), negative(operate("/", operate("*", g, operate("/", a, b)), b))


def _power(node: Op, g: Expr) -> Contributions:
    a, b = node.args
    if isinstance(b, Const):
        if b.value in (0, 1):
            return (None if b.value == 0 else g), None
        lower = a if b.value == 2 else operate("pow", a, number(b.value - 1, b.type))
        return times(g, times(b, lower)), None
    one = number(1.0, b.type)
    slope = operate("*", b, operate("pow", a, operate("-", b, one)))
    base = choice(operate("==", b, _zero(b)), _zero(g), operate("*", g, slope))
    growth = operate("*", node, operate("log", a))
    flat = operate("and", operate("==", a, _zero(a)), operate(">=", b, _zero(b)))
    return base, choice(flat, _zero(g), operate("*", g, growth))


def _extreme(comparison: str) -> Rule:
    def rule(node: Op, g: Expr) -> Contributions:
        first = operate(comparison, *node.args)
        return choice(first, g, _zero(g)), choice(first, _zero(g), g)

    return rule


def _atan2(node: Op, g: Expr) -> Contributions:
    y, x = node.args
    square = operate("+", operate("*", x, x), operate("*", y, y))
    return operate("/", operate("*", g, x), square), negative(operate("/", operate("*", g, y), square))


def _hypot(node: Op, g: Expr) -> Contributions:
    zero = _zero(node)  # the derivative at (0, 0) is taken as 0
    slope = choice(operate("==", node, zero), zero, operate("/", g, node))
    return times(slope, node.args[0]), times(slope, node.args[1])


def _remainder(node: Op, g: Expr) -> Contributions:
    a, b = node.args
    return g, negative(operate("*", g, operate("floor", operate("/", a, b))))


def _fmod(node: Op, g: Expr) -> Contributions:
    a, b = node.args
    return g, negative(operate("*", g, operate("trunc", operate("/", a, b))))


def _copysign(node: Op, g: Expr) -> Contributions:
    a, b = node.args
    one = number(1.0, node.type)
    return operate("*", g, operate("*", operate("sign", a), operate("copysign", one, b))), None


def _cbrt(node: Op, g: Expr) -> Contributions:
    third = number(1 / 3, node.type)
    return (times(third, operate("/", operate("/", g, node), node)),)  # node squared may overflow


def _tanh(node: Op, g: Expr) -> Contributions:
    one = number(1.0, node.type)
    return (operate("*", g, operate("-", one, operate("*", node, node))),)


def _sigmoid(node: Op, g: Expr) -> Contributions:
    one = number(1.0, node.type)
    return (operate("*", g, operate("*", node, operate("-", one, node))),)


def _tan(node: Op, g: Expr) -> Contributions:
    one = number(1.0, node.type)
    return (operate("*", g, operate("+", one, operate("*", node, node))),)


def _erf(sign: float) -> Rule:
    def rule(node: Op, g: Expr) -> Contributions:
        (a,) = node.args
        bell = operate("exp", negative(operate("*", a, a)))
        return (times(g, times(number(sign * 2 / math.sqrt(math.pi), node.type), bell)),)

    return rule


def _asin(node: Op, g: Expr) -> Contributions:
    (a,) = node.args
    one = number(1.0, node.type)
    square = operate("*", operate("-", one, a), operate("+", one, a))  # 1 - a^2 cancels near 1
    return (operate("/", g, operate("sqrt", square)),)


def _acos(node: Op, g: Expr) -> Contributions:
    return _asin(node, negative(g))


def _rsqrt(node: Op, g: Expr) -> Contributions:
    (a,) = node.args
    return (times(number(-0.5, node.type), operate("*", g, operate("/", node, a))),)


def _atan(node: Op, g: Expr) -> Contributions:
    (a,) = node.args
    one = number(1.0, node.type)
    return (operate("/", g, operate("+", one, operate("*", a, a))),)


def _own(node: Op, g: Expr) -> Contributions:
    """Return the author's gradient: a product for each argument, nothing for the value and the slopes."""
    pairs = ((times(g, slope), None) for slope in node.args[2::2])
    return (None, *(part for pair in pairs for part in pair))


PARTIALS: Mapping[str, Rule] = {
    "+": lambda node, g: (g, g),
    "-": lambda node, g: (g, negative(g)),
    "*": lambda node, g: (times(g, node.args[1]), times(g, node.args[0])),
    "/": _quotient,
    "%": _remainder,
    "pow": _power,
    "max": _extreme(">="),
    "min": _extreme("<="),
    "atan2": _atan2,
    "hypot": _hypot,
    "fmod": _fmod,
    "copysign": _copysign,
    "cbrt": _cbrt,
    "neg": lambda node, g: (negative(g),),
    "abs": lambda node, g: (operate("*", g, operate("sign", node.args[0])),),
    "exp": lambda node, g: (operate("*", g, node),),
    "expm1": lambda node, g: (operate("*", g, operate("+", node, number(1.0, node.type))),),
    "exp2": lambda node, g: (operate("*", g, times(number(math.log(2), node.type), node)),),
    "log": lambda node, g: (operate("/", g, node.args[0]),),
    "log1p": lambda node, g: (operate("/", g, operate("+", number(1.0, node.type), node.args[0])),),
    "log2": lambda node, g: (times(number(1 / math.log(2), node.type), operate("/", g, node.args[0])),),
    "sqrt": lambda node, g: (times(number(0.5, node.type), operate("/", g, node)),),
    "rsqrt": _rsqrt,
    "sinh": lambda node, g: (operate("*", g, operate("cosh", node.args[0])),),
    "cosh": lambda node, g: (operate("*", g, operate("sinh", node.args[0])),),
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "erf": _erf(1.0),
    "erfc": _erf(-1.0),
    "lgamma": lambda node, g: (operate("*", g, operate("digamma", node.args[0])),),
    "digamma": lambda node, g: (operate("*", g, operate("trigamma", node.args[0])),),
    "sin": lambda node, g: (operate("*", g, operate("cos", node.args[0])),),
    "cos": lambda node, g: (negative(operate("*", g, operate("sin", node.args[0]))),),
    "tan": _tan,
    "asin": _asin,
    "acos": _acos,
    "atan": _atan,
    "cast": lambda node, g: (cast(g, number_of(node.args[0].type)),),
    "with_gradient": _own,
}
"""By operator."""
CONSTANT = frozenset(
    ("//", "sign", "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite", "ceil_div")
).union(("<", "<=", ">", ">=", "==", "!=", "and", "or", "not", "&", "|", "^"), ("<<", ">>", "stop_gradient"))
"""Operators that are constant almost everywhere, so that their derivative is 0."""


def contributions(node: Op, g: Expr) -> Contributions:
    """Return one contribution or None for each argument of an operator.

    Raises ``GradientError`` for trigamma.

    >>> from polyop.loops.ir.grammar import Var
    >>> x = Var("x", Type("float32"))
    >>> contributions(Op("neg", (x,), x.type), Var("g", x.type))[0].name
    'neg'
    """
    if kind(node.type) != "f" or node.name in CONSTANT:
        return (None,) * len(node.args)
    if node.name not in PARTIALS:
        raise _without_derivative(node)
    rule = PARTIALS[node.name]
    return tuple(None if kind(a.type) != "f" else c for a, c in zip(node.args, rule(node, g), strict=True))


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


def pull(value: Expr, g: Expr, is_active: Callable[[Load], bool]) -> list[Part]:
    """Return the contributions to the adjoints of loads when the adjoint of ``value`` is ``g``.

    ``is_active`` selects the loads that have an adjoint. A load that runs only under a condition has it as
    guard. Raises ``GradientError`` with the line if the contributions have more than ``MAX_NODES`` nodes.
    """
    size = 0
    safe = {e for e in unconditional(value) if isinstance(e, Load)}
    totals: dict[tuple[Load, Expr | None], Expr] = {}
    for load, guard, part in _pulled(value, g, None, is_active):
        size += sum(1 for _ in walk(part))
        if size > MAX_NODES:
            raise _oversized(load.line)
        if guard is not None and load in safe:
            part, guard = choice(guard, part, _zero(part)), None  # noqa: PLW2901 - the same part
        total = plus(totals.get((load, guard)), part)
        assert total is not None
        totals[load, guard] = total
    return [Part(load, guard, part) for (load, guard), part in totals.items()]


def _oversized(line: int) -> GradientError:
    rule = f"the parts of its gradient may have {MAX_NODES} operators in all, and have more"
    hint = "max of many inputs: keep them in a tensor, and loop over it: best = max(best, t[k])"
    return GradientError(f"line {line} of the loop kernel", rule, hint=hint)


def _pulled(value: Expr, g: Expr, guard: Expr | None, is_active: Callable[[Load], bool]) -> Iterator[Part]:
    if isinstance(value, Load):
        if is_active(value):
            yield Part(value, guard, g)
    elif isinstance(value, Op) and _reaches(value, is_active):
        if value.name == "select":
            condition, then, otherwise = value.args
            yield from _pulled(then, g, _both(guard, condition), is_active)
            yield from _pulled(otherwise, g, _both(guard, Op("not", (condition,), BOOL)), is_active)
            return
        for argument, part in zip(value.args, contributions(value, g), strict=True):
            if part is not None:
                yield from _pulled(argument, part, guard, is_active)


def _both(a: Expr | None, b: Expr) -> Expr:
    return b if a is None else Op("and", (a, b), BOOL)


def _reaches(value: Expr, is_active: Callable[[Load], bool]) -> bool:
    if isinstance(value, Load):
        return is_active(value)
    return isinstance(value, Op) and any(_reaches(a, is_active) for a in children(value))


def push(value: Expr, tangent: Callable[[Load], Expr | None]) -> Expr | None:
    """Return the tangent of an expression, None for zero. ``tangent`` returns that of a load."""
    if isinstance(value, Load):
        return tangent(value)
    if not isinstance(value, Op) or kind(value.type) != "f":
        return None
    if value.name == "select":
        return _pushed_choice(value, tangent)
    total: Expr | None = None
    for number_, argument in enumerate(value.args):
        part = push(argument, tangent)
        if part is None:
            continue
        if value.name == "cast":
            return cast(part, number_of(value.type))
        # a contribution is linear in the adjoint: with a tangent in its place it is the result's tangent
        total = plus(total, contributions(value, part)[number_])
    return total


def _pushed_choice(value: Op, tangent: Callable[[Load], Expr | None]) -> Expr | None:
    condition, *branches = value.args
    parts = [push(branch, tangent) for branch in branches]
    if all(part is None for part in parts):
        return None
    zero = number(0.0, value.type)
    then, otherwise = (zero if part is None else part for part in parts)
    return choice(condition, then, otherwise)
