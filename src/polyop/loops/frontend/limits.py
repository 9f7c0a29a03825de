"""Limits on the size of a kernel's text: beyond them a build takes minutes, or more stack than Python has."""

from __future__ import annotations

import ast
from typing import NamedTuple

from ...core.errors import UnsupportedError
from .source import Source


class Limit(NamedTuple):
    """A row: the greatest number, the rule as the error words it, and how to stay below it."""

    maximum: int
    rule: str
    hint: str


STATEMENTS = Limit(
    256, "a kernel has at most {} statements", "write what repeats as a loop, or several kernels"
)
LOOPS = Limit(
    16,
    "loops are at most {} deep",
    "replace two loops by one over the product of their sizes: i = k // n, j = k % n",
)
BRANCHES = Limit(
    64,
    "conditions, elif among them, are at most {} deep",
    "put the numbers of the cases into a tensor, and index it",
)
OPERATORS = Limit(
    128,
    "an expression is at most {} operators deep",
    "compute it in several lines: t = a + b, then t = t + c",
)


def check_limits(source: Source) -> None:
    """Raise ``UnsupportedError`` for the first line beyond a limit.

    It uses no recursion, because a text that is nested too deep is what it looks for.
    """
    pending = [(node, 0, 0) for node in reversed(source.tree.body)]
    count = 0
    while pending:
        node, loops, branches = pending.pop()
        loops += isinstance(node, (ast.For, ast.While))
        branches += isinstance(node, ast.If)
        count += 1
        rows = ((STATEMENTS, count), (LOOPS, loops), (BRANCHES, branches), (OPERATORS, _operators(node)))
        for limit, number in rows:
            if number > limit.maximum:
                raise source.error(
                    UnsupportedError, limit.rule.format(limit.maximum), node, number, limit.hint
                )
        inner = [*getattr(node, "body", ()), *getattr(node, "orelse", ())]
        pending += [(child, loops, branches) for child in reversed(inner)]


def _operators(node: ast.stmt) -> int:
    """Return how many operators deep the expressions of a statement are; ``a and b and c`` counts as two."""
    pending = [(child, 0) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    deepest = 0
    while pending:
        expr, depth = pending.pop()
        deepest = max(deepest, depth)
        match expr:
            case ast.BoolOp(values=items) | ast.Compare(comparators=items) | ast.Call(args=items):
                depth += max(1, len(items) - 1)
            case ast.BinOp() | ast.UnaryOp() | ast.IfExp() | ast.Subscript():
                depth += 1
        pending += [(child, depth) for child in ast.iter_child_nodes(expr) if isinstance(child, ast.expr)]
    return deepest
