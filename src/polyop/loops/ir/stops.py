"""Early exit of a loop: its body is one ``if not flag``, and a flag once set stays set.

So after the flag is set the remaining iterations do nothing, and the loop may stop. A flag is a scalar, or an
element of a tensor whose index is the same in all iterations: derived kernels keep it in memory.

A counted loop that lost its flags would run on to its bound without effect. A ``while`` has no bound: it is
``for step in ..: if not stop: ...``, and ``stop = True`` ends it. This assignment must stand in the loop that
tests ``stop``. In another loop it would end nothing, and the ``while`` would run forever:
:func:`misplaced_exits` finds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from .grammar import (
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    OpenEnd,
    Stmt,
    Store,
    Var,
    statements,
    walk,
)


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
    """Whether a flag is the same scalar or element in all iterations."""
    if isinstance(flag, Var):
        return True
    inside = statements(loop.body)
    varying = {loop.var} | {
        s.var if isinstance(s, For) else s.name for s in inside if isinstance(s, (For, Assign))
    }
    parts = [part for index in flag.index for part in walk(index)]
    return not any(isinstance(p, Load) or (isinstance(p, Var) and p.name in varying) for p in parts)


def exit_flags(kernel: Kernel) -> frozenset[str]:
    """Return the names of the scalars and tensors that end a ``while``."""
    whiles = [s for s in statements(kernel.body) if isinstance(s, For) and is_unbounded(s)]
    return frozenset(_name(flag) for loop in whiles for flag in stop_flags(loop))


def misplaced_exits(kernel: Kernel, earlier_flags: AbstractSet[str] = frozenset()) -> list[str]:
    """Return what is wrong with the ends of loops, a sentence each.

    An :class:`OpenEnd` may only be the ``hi`` of a loop, and a flag must end that loop. The innermost loop
    around a statement that sets such a flag must test it. Exceptions are a statement outside of all loops,
    and a loop that resets the flag in each iteration, as a batch does. ``earlier_flags`` are the flags before
    a pass.
    """
    return list(_block(kernel.body, exit_flags(kernel) | earlier_flags, None))


def _block(body: tuple[Stmt, ...], flags: AbstractSet[str], loop: For | None) -> Iterator[str]:
    for node in body:
        line = f"line {node.line}: "
        whole = node.hi if isinstance(node, For) else None
        for part in (e for e in walk(node) if isinstance(e, OpenEnd) and e is not whole):
            yield f"{line}the end of the while {part.name} is used as a number"
        match node:
            case For():
                if is_unbounded(node) and not stop_flags(node):
                    yield f"{line}nothing ends loop {node.var}"
                yield from _block(node.body, flags, node)
            case If():
                yield from _block((*node.body, *node.orelse), flags, loop)
            case Assign(name=name, value=value) | Store(buffer=name, value=value):
                if loop is None or name not in flags or _is_false(value):
                    continue
                if name not in map(_name, stop_flags(loop)) and name not in _reset_in(loop):
                    yield f"{line}the exit {name} is in loop {loop.var}, which does not end by it"


def _reset_in(loop: For) -> set[str]:
    """Return the scalars and tensors of flags that each iteration of a loop sets to False."""
    resets = (s for s in loop.body if isinstance(s, (Assign, Store)) and _is_false(s.value))
    return {s.name if isinstance(s, Assign) else s.buffer for s in resets}


def _name(flag: Var | Load) -> str:
    return flag.name if isinstance(flag, Var) else flag.buffer


def _is_false(value: Expr) -> bool:
    return isinstance(value, Const) and not value.value
