"""What statements cost, for choices: a unit is about a quarter of a nanosecond."""

from __future__ import annotations

from .ir import Assign, Expr, Load, Op, Stmt, Store, children, walk

HEAVY = dict.fromkeys(
    (
        "exp",
        "expm1",
        "log",
        "tanh",
        "erf",
        "sin",
        "cos",
        "atan",
        "atan2",
        "pow",
        "/",
        "sqrt",
        "rsqrt",
        "//",
        "%",
    ),
    8.0,
)
"""Operators that cost more than the half unit of an addition."""


def arithmetic(node: Stmt) -> float:
    """Return what the operators of a statement cost, addresses not included."""

    def count(expr: Expr) -> float:
        if isinstance(expr, Load):
            return 0.0
        own = HEAVY.get(expr.name, 0.5) if isinstance(expr, Op) else 0.0
        return own + sum(count(c) for c in children(expr))

    values = [node.value] if isinstance(node, (Store, Assign)) else list(children(node))
    return sum(map(count, values))


def work(node: Stmt) -> float:
    """Return what one execution of a statement costs, its loads and its store included."""
    loads = sum(isinstance(e, Load) for e in walk(node))
    return loads + isinstance(node, Store) + arithmetic(node)
