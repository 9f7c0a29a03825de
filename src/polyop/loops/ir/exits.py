"""The exits of ``while`` loops: each belongs to one loop, and a pass must not take it into another.

A ``while`` is ``for step in ..: if not stop: ...``, and ``stop = True`` ends it. In a loop that does not ask
for ``stop`` that would end nothing, and a ``while`` that nothing ends runs forever.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from .grammar import Assign, Const, Expr, For, If, Kernel, Load, OpenEnd, Stmt, Store, Var, statements, walk
from .stops import is_unbounded, stop_flags


def exit_flags(kernel: Kernel) -> frozenset[str]:
    """Return the names of the scalars and tensors that end a ``while``."""
    whiles = [s for s in statements(kernel.body) if isinstance(s, For) and is_unbounded(s)]
    return frozenset(_name(flag) for loop in whiles for flag in stop_flags(loop))


def misplaced(kernel: Kernel, before: AbstractSet[str] = frozenset()) -> list[str]:
    """Return what is wrong with the ends of loops, a sentence each.

    An :class:`OpenEnd` is nothing but the ``hi`` of a loop, and a flag ends that loop. The innermost loop
    around a statement that sets such a flag asks for it; outside of loops a return does so too, and in a loop
    whose iterations begin with the flag unset, as those of a batch. ``before`` are the flags before a pass.
    """
    return list(_block(kernel.body, exit_flags(kernel) | before, None))


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
                if name not in map(_name, stop_flags(loop)) and name not in _started(loop):
                    yield f"{line}the exit {name} is in loop {loop.var}, which does not end by it"


def _started(loop: For) -> set[str]:
    """Return the scalars that each iteration of a loop sets to False: they live in one iteration."""
    return {s.name for s in loop.body if isinstance(s, Assign) and _is_false(s.value)}


def _name(flag: Var | Load) -> str:
    return flag.name if isinstance(flag, Var) else flag.buffer


def _is_false(value: Expr) -> bool:
    return isinstance(value, Const) and not value.value
