"""Cost estimates of statements, by which schedules are chosen. A unit is about a quarter of a nanosecond."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..ir.grammar import (
    FLOAT,
    INT,
    Assign,
    Const,
    Expr,
    For,
    If,
    Load,
    Op,
    OpenEnd,
    Stmt,
    Store,
    Var,
    children,
    statements,
    walk,
)
from ..ir.operators import OPERATORS, SMALL
from ..ir.rewriter import rewrite, substitute
from ..ir.uses import stored_by, variables_of

HEAVY = {name: row.cost for name, row in OPERATORS.items() if row.cost > SMALL}
"""Operators that cost more than the half unit of an addition."""
CONTRACTION_LOOPS = 3
"""The fewest loops of a contraction, as a matrix product: with fewer, no operand is used several times."""


def operators(node: Stmt) -> Iterator[Op]:
    """Yield the operators of a statement, without those of addresses."""

    def inside(expr: Expr) -> Iterator[Op]:
        if isinstance(expr, Load):
            return
        if isinstance(expr, Op):
            yield expr
        for child in children(expr):
            yield from inside(child)

    for value in (node.value,) if isinstance(node, (Store, Assign)) else children(node):
        yield from inside(value)


def arithmetic(node: Stmt) -> float:
    """Return the cost of a statement's operators, without those of addresses."""
    return sum(OPERATORS[one.name].cost for one in operators(node))


def work(node: Stmt) -> float:
    """Return the cost of one execution of a statement, with its loads and its store."""
    loads = sum(isinstance(e, Load) for e in walk(node))
    return loads + isinstance(node, Store) + arithmetic(node)


def slow_chain(body: Sequence[Stmt]) -> int:
    """Return the longest chain of dependent slow operators; 0 for a body with loops or conditions."""
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
        length = depth(node.value)
        if isinstance(node, Assign):
            depths[node.name] = max(length, depths.get(node.name, 0))
        deepest = max(deepest, length)
    return deepest


WHILE_ITERATIONS = 2**20
"""How many iterations of a ``while`` its cost counts: enough for several threads around it."""
Ranges = Mapping[str, tuple[Expr, Expr]]
"""The range (from, below) of each loop around, by variable."""


def total(body: Sequence[Stmt], ranges: Ranges, written: frozenset[str] = frozenset()) -> Expr:
    """Return an expression for the cost of a body; bounds that vary are taken at their middle.

    What the body computes has no value before it, and no memory if it is private: a bound that reads a scalar
    or a tensor of these (``written``: those of the bodies around) is taken where it is 0.
    """
    cost: Expr = Const(0.0, FLOAT)
    none = Const(0, INT)
    written |= stored_by(body)

    def known(expr: Expr) -> Expr:
        return Const(0, expr.type) if isinstance(expr, Load) and expr.buffer in written else expr

    ranges = {s.name: (none, none) for s in statements(tuple(body)) if isinstance(s, Assign)} | dict(ranges)
    for node in body:
        if isinstance(node, For):
            end = Const(WHILE_ITERATIONS, INT) if isinstance(node.hi, OpenEnd) else node.hi
            lo, hi = (middle(rewrite(e, known), ranges) for e in (node.lo, end))
            trips = Op("cast", (Op("-", (hi, lo), INT),), FLOAT)
            inner = total(node.body, {**ranges, node.var: (lo, hi)}, written)
            node_cost: Expr = Op("*", (trips, inner), FLOAT)
        elif isinstance(node, If):
            node_cost = _plus(total(node.body, ranges, written), total(node.orelse, ranges, written))
        else:
            node_cost = Const(work(node), FLOAT)
        cost = _plus(cost, node_cost)
    return cost


def _plus(a: Expr, b: Expr) -> Expr:
    if isinstance(a, Const) and isinstance(b, Const):
        return Const(a.value + b.value, FLOAT)
    return b if a == Const(0.0, FLOAT) else Op("+", (a, b), FLOAT)


def middle(expr: Expr, ranges: Ranges) -> Expr:
    """Return an expression with loop variables in the middle of their ranges."""
    for _ in range(len(ranges)):
        names = variables_of(expr) & ranges.keys()
        if not names:
            break
        half = {n: Op("//", (Op("+", ranges[n], INT), Const(2, INT)), INT) for n in names}
        expr = substitute(expr, half)
    return expr
