"""Inputs whose gradient equals an output's gradient, unchanged: of ``y = x + ...`` nothing need run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..ir.grammar import Const, Expr, For, If, Kernel, Load, Size, Stmt, Store, Var, statements, walk


class Passed(NamedTuple):
    """The parameter that an output of a gradient's kernel copies, if pairs of sizes are equal."""

    source: str
    equal: tuple[tuple[Expr, Expr], ...]


def passed(kernel: Kernel) -> Mapping[int, Passed]:
    """Return by number the outputs that copy a parameter element by element if some sizes are equal."""
    stores = [s for s in statements(kernel.body) if isinstance(s, Store)]
    found: dict[int, Passed] = {}
    for number, name in enumerate(kernel.outputs):
        if sum(s.buffer == name for s in stores) != 1:
            continue
        for loops, store in _nests(kernel.body, ()):
            if store.buffer == name and (row := _copied(kernel, loops, store)) is not None:
                found[number] = row
    return found


def _nests(body: Sequence[Stmt], loops: tuple[For, ...]) -> Iterator[tuple[tuple[For, ...], Store]]:
    for node in body:
        match node:
            case For():
                yield from _nests(node.body, (*loops, node))
            case Store():
                yield loops, node
            case If():
                pass  # some elements only


def _copied(kernel: Kernel, loops: tuple[For, ...], store: Store) -> Passed | None:
    value, target = store.value, kernel.buffers[store.buffer]
    if not isinstance(value, Load) or store.op or value.index != store.index:
        return None
    source = kernel.buffers[value.buffer]
    names = [i.name for i in store.index if isinstance(i, Var)]
    ends = {loop.var: loop.hi for loop in loops if loop.lo == Const(0, loop.lo.type)}
    inside = [e for end in ends.values() for e in walk(end)]
    if any(isinstance(e, Load) or (isinstance(e, Var) and e.name in names) for e in inside):
        return None
    alone = len(names) == len(store.index) == len(set(names)) == len(loops) and ends.keys() == {*names}
    if not alone or source.role != "input" or source.dtype != target.dtype:
        return None
    equal: list[tuple[Expr, Expr]] = []
    for axis, name in enumerate(names):
        size = Size(source.name, axis)
        equal += [(ends[name], size), (target.shape[axis], size)]
    return Passed(source.name, tuple(equal))
