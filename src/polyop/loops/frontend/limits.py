"""How large a kernel's text may be: beyond, a build takes minutes, or more stack than Python has."""

from __future__ import annotations

import ast
from typing import NamedTuple

from ...core.errors import UnsupportedError
from .source import Source


class Limit(NamedTuple):
    """A row: how many at most, of what, and how to do with fewer."""

    most: int
    rule: str
    hint: str


STATEMENTS = Limit(
    256, "a kernel has at most {} statements", "write what repeats as a loop, or several kernels"
)
LOOPS = Limit(
    16, "loops are at most {} deep", "loop over the product of two sizes, with // and % of its number"
)
BRANCHES = Limit(
    64, "conditions, elif among them, are at most {} deep", "keep the cases' numbers in a tensor"
)
OPERATORS = Limit(
    128, "an expression is at most {} operators deep", "compute it in several lines, as in t = t + x"
)


def check_limits(source: Source) -> None:
    """Raise ``UnsupportedError`` for the first line that is beyond a limit; nothing here recurses."""
    left = [(node, 0, 0) for node in reversed(source.tree.body)]
    count = 0
    while left:
        node, loops, branches = left.pop()
        loops += isinstance(node, ast.For)
        branches += isinstance(node, ast.If)
        count += 1
        rows = ((STATEMENTS, count), (LOOPS, loops), (BRANCHES, branches), (OPERATORS, _operators(node)))
        for limit, number in rows:
            if number > limit.most:
                raise source.error(UnsupportedError, limit.rule.format(limit.most), node, number, limit.hint)
        inner = [*getattr(node, "body", ()), *getattr(node, "orelse", ())]
        left += [(child, loops, branches) for child in reversed(inner)]


def _operators(node: ast.stmt) -> int:
    """Return how many operators deep the expressions of a statement are; ``a and b and c`` is two."""
    left = [(child, 0) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    deepest = 0
    while left:
        expr, depth = left.pop()
        deepest = max(deepest, depth)
        match expr:
            case ast.BoolOp(values=items) | ast.Compare(comparators=items) | ast.Call(args=items):
                depth += max(1, len(items) - 1)
            case ast.BinOp() | ast.UnaryOp() | ast.IfExp() | ast.Subscript():
                depth += 1
        left += [(child, depth) for child in ast.iter_child_nodes(expr) if isinstance(child, ast.expr)]
    return deepest
