"""Loops that end before their bound: one ``if`` around the whole body, which a flag makes false for good.

A flag that is true when an iteration starts stays true, because only the body could change it. So the other
iterations have no effect, and running none of them is the same. A flag is a scalar, or an element of a tensor
whose index is the same in all iterations: derived kernels keep it in memory.

A counted loop that lost its flags would run on to its bound without effect. A ``while`` has no bound, so it
would never end: :func:`polyop.loops.ir.exits.misplaced` finds such a loop.
"""

from __future__ import annotations

from .grammar import Assign, Expr, For, If, Load, Op, OpenEnd, Var, statements, walk


def stop_flags(loop: For) -> list[Var | Load]:
    """Return the flags that end a loop as soon as one of them is true."""
    if len(loop.body) != 1 or not isinstance(guard := loop.body[0], If) or guard.orelse:
        return []
    return [flag for flag in map(_negated, _conjuncts(guard.condition)) if flag and _is_fixed(flag, loop)]


def is_unbounded(loop: For) -> bool:
    """Whether a loop is a ``while``: only a flag ends it."""
    return isinstance(loop.hi, OpenEnd)


def _conjuncts(condition: Expr) -> list[Expr]:
    if isinstance(condition, Op) and condition.name == "and":
        return [part for side in condition.args for part in _conjuncts(side)]
    return [condition]


def _negated(condition: Expr) -> Var | Load | None:
    """Return the flag of ``not flag``, or None."""
    if isinstance(condition, Op) and condition.name == "not":
        (flag,) = condition.args
        return flag if isinstance(flag, (Var, Load)) else None
    return None


def _is_fixed(flag: Var | Load, loop: For) -> bool:
    """Whether a flag is one place in memory, whichever the iteration."""
    if isinstance(flag, Var):
        return True
    inside = statements(loop.body)
    varying = {loop.var} | {
        s.var if isinstance(s, For) else s.name for s in inside if isinstance(s, (For, Assign))
    }
    parts = [part for index in flag.index for part in walk(index)]
    return not any(isinstance(p, Load) or (isinstance(p, Var) and p.name in varying) for p in parts)
