"""What statements cost, for choices: a unit is about a quarter of a nanosecond."""

from __future__ import annotations

from collections.abc import Sequence

from .ir import Assign, Const, Expr, Load, Op, Stmt, Store, Var, children, walk

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


def slow_steps(body: Sequence[Stmt]) -> int:
    """Return how many slow operators wait for one another in a body; 0 where it has loops or conditions."""
    depths: dict[str, int] = {}

    def depth(expr: Expr) -> int:
        before = depths.get(expr.name, 0) if isinstance(expr, Var) else 0
        product = isinstance(expr, Op) and expr.name == "/" and isinstance(expr.args[1], Const)
        own = isinstance(expr, Op) and expr.name in HEAVY and not product
        return own + max(map(depth, children(expr)), default=before)

    deepest = 0
    for node in body:
        if not isinstance(node, (Store, Assign)):
            return 0
        found = depth(node.value)
        if isinstance(node, Assign):
            depths[node.name] = max(found, depths.get(node.name, 0))
        deepest = max(deepest, found)
    return deepest
