"""Compare two expressions, whatever lines they come from."""

from __future__ import annotations

from dataclasses import replace

from ..ir.grammar import Expr, Load, Type
from ..ir.rewriter import rewrite


def is_same(one: Expr, other: Expr) -> bool:
    """Whether two expressions are equal but for their lines, and for which numbers are Python's.

    >>> from polyop.loops.ir.grammar import INT, Var
    >>> index, of = (Var("i", INT),), Type("float32")
    >>> is_same(Load("x", index, of, line=3), Load("x", index, of, line=4))
    True
    """
    return bool(_plain(one) == _plain(other))


def _plain(expr: Expr) -> Expr:
    def change(e: Expr) -> Expr:
        e = replace(e, type=Type(e.type.dtype))
        return replace(e, line=0) if isinstance(e, Load) else e

    result: Expr = rewrite(expr, change)
    return result
