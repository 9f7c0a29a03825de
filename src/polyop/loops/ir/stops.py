"""Loops that end before their bound: one ``if`` around the whole body, which a flag makes false for good.

A flag that is true when an iteration starts stays true, because only the body could change it. So the other
iterations have no effect, and running none of them is the same.
"""

from __future__ import annotations

from .grammar import Const, Expr, For, If, Op, Var

UNBOUNDED = 2**62
"""The bound of a ``while``: such a loop must end by its flag."""


def stop_flags(loop: For) -> list[str]:
    """Return the scalars that end a loop as soon as one of them is true."""
    if len(loop.body) != 1 or not isinstance(guard := loop.body[0], If) or guard.orelse:
        return []
    return [flag.name for flag in map(_negated, _conjuncts(guard.condition)) if flag is not None]


def is_unbounded(loop: For) -> bool:
    """Whether only a flag ends a loop."""
    return isinstance(loop.hi, Const) and loop.hi.value == UNBOUNDED


def _conjuncts(condition: Expr) -> list[Expr]:
    if isinstance(condition, Op) and condition.name == "and":
        return [part for side in condition.args for part in _conjuncts(side)]
    return [condition]


def _negated(condition: Expr) -> Var | None:
    """Return the scalar of ``not scalar``, or None."""
    if isinstance(condition, Op) and condition.name == "not" and isinstance(condition.args[0], Var):
        return condition.args[0]
    return None
