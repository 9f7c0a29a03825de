"""Scalar replacement of accumulators: an element that a loop updates over and over is kept in a scalar.

    for k in range(n):                     acc = y[i]
        y[i] += x[i, k]               ->   for k in range(n):
                                               acc += x[i, k]
                                           y[i] = acc

The element is stored once, when its loop has ended.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from ..analysis.polyhedra import Access, Leaf, Model
from ..ir.grammar import (
    BOOL,
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Type,
    Var,
    map_body,
    perfect,
    rewrite,
    statements,
    walk,
)
from ..program import Program

Index = tuple[Expr, ...]


def scalar_replacement(program: Program) -> Program:
    """Return the program with ``for k: y[i] += e`` written as a sum in a scalar, stored at its end."""
    kernel = program.kernel
    return program.with_(
        kernel=replace(kernel, body=_Accumulators(kernel, program.model).body(kernel.body, ()))
    )


class _Accumulators:
    def __init__(self, kernel: Kernel, model: Model) -> None:
        self.kernel, self.model = kernel, model
        self.count = 0
        found = list(statements(kernel.body))
        self.taken = {*kernel.buffers, *kernel.attributes, *(s.var for s in found if isinstance(s, For))}
        self.taken |= {s.name for s in found if isinstance(s, Assign)}

    def body(self, body: tuple[Stmt, ...], loops: tuple[str, ...]) -> tuple[Stmt, ...]:
        found: list[Stmt] = []
        for node in body:
            if isinstance(node, For):
                self._loop(node, loops, found)
            elif isinstance(node, If):
                inner, other = self.body(node.body, loops), self.body(node.orelse, loops)
                found.append(replace(node, body=inner, orelse=other))
            else:
                found.append(node)
        return tuple(found)

    def _loop(self, loop: For, loops: tuple[str, ...], found: list[Stmt]) -> None:
        """Append the loop to ``found``, with what has to stand around it."""
        after: list[Stmt] = []
        always: list[Stmt] = []
        guard = False
        start = len(found)
        for buffer, index in self._candidates(loop, loops):
            name = self._new(buffer)
            kind = Type(self.kernel.buffers[buffer].dtype)
            loop = _kept(loop, buffer, index, Var(name, kind))
            before = found[-1] if found else None
            if isinstance(before, Store) and (before.buffer, before.index) == (buffer, index):
                first = Assign(name, Load(buffer, index, kind, before.line), "", before.line)
                value = Assign(name, before.value, before.op, before.line)
                found[-1:] = [first, value] if before.op else [value]
                start = len(found)
                always.append(Store(buffer, index, Var(name, kind), "", loop.line))
            else:
                found.append(Assign(name, Load(buffer, index, kind, loop.line), "", loop.line))
                guard = guard or not all(map(_runs, perfect(loop)))
                after.append(Store(buffer, index, Var(name, kind), "", loop.line))
        inner = replace(loop, body=self.body(loop.body, (*loops, loop.var)))
        found += [inner, *after]
        if guard:  # a loop that does not run must not touch the element: it may not exist
            wrapped = tuple(found[start:])
            tests = [Op("<", (one.lo, one.hi), BOOL) for one in perfect(loop) if not _runs(one)]
            test = functools.reduce(lambda one, other: Op("and", (one, other), BOOL), tests)
            found[start:] = [If(test, wrapped, (), loop.line)]
        found += always

    def _new(self, buffer: str) -> str:
        while True:
            self.count += 1
            name = f"{buffer}_acc{self.count}"
            if name not in self.taken:
                return name

    def _candidates(self, loop: For, loops: tuple[str, ...]) -> list[tuple[str, Index]]:
        inside = [s for s in statements((loop,)) if isinstance(s, (Store, Assign))]
        changing = {s.name for s in inside if isinstance(s, Assign)}
        changing |= {s.var for s in statements((loop,)) if isinstance(s, For)}
        chosen: dict[str, Index] = {}
        always = _unconditional(loop.body, changing)  # an element that is never touched may not exist
        for store in inside:
            if not isinstance(store, Store) or store.buffer in chosen or store not in always:
                continue
            if loop.var in self.model.owners.get(store.buffer, ()):
                continue  # each iteration has elements of its own: there are none outside of the loop
            names = {e.name for i in store.index for e in walk(i) if isinstance(e, Var)}
            fixed = not names & changing and not any(
                isinstance(e, Load) for i in store.index for e in walk(i)
            )
            if fixed and self._alone(store.buffer, store.index, loop, loops):
                chosen[store.buffer] = store.index
        return list(chosen.items())

    def _alone(self, buffer: str, index: Index, loop: For, loops: tuple[str, ...]) -> bool:
        """Whether no other access in the loop can be of the same element."""
        inside = [leaf for leaf in self.model.leaves if loop.var in leaf.vars]
        places = [(leaf, a) for leaf in inside for a in leaf.accesses if a.target == buffer]
        own = [(leaf, a) for leaf, a in places if a.node.index == index]
        others = [(leaf, a) for leaf, a in places if a.node.index != index]
        if any(not isinstance(s, (Store, Assign)) and _loads(s, buffer) for s in statements((loop,))):
            return False
        # of all of its own: what a condition guards is only some of the element's accesses
        return all(self._apart(mine, other, len(loops)) for mine in own for other in others)

    def _apart(self, own: tuple[Leaf, Access], other: tuple[Leaf, Access], level: int) -> bool:
        kind = self.model.isl.dim_type
        pairs = self.model.map(*own).apply_range(self.model.map(*other).reverse())
        for dim in range(level):
            pairs = pairs.equate(kind.in_, dim, kind.out, dim)
        return bool(pairs.is_empty())


def _unconditional(body: tuple[Stmt, ...], changing: set[str]) -> list[Stmt]:
    """Return what is done whenever this loop, and those that are all it does, run at all."""
    while len(body) == 1 and isinstance(body[0], For):
        if any(isinstance(e, Load) or (isinstance(e, Var) and e.name in changing) for e in walk(body[0])):
            return []  # whether it runs differs from one iteration to the next
        body = body[0].body
    return list(body)


def _loads(node: Stmt, buffer: str) -> bool:
    return any(isinstance(e, Load) and e.buffer == buffer for e in walk(node))


def _runs(loop: For) -> bool:
    match loop.lo, loop.hi:
        case Const(value=lo), Const(value=hi):
            return lo < hi
    return False


def _kept(loop: For, buffer: str, index: Index, scalar: Var) -> For:
    """Return the loop with the element in the scalar."""

    def read(expr: Expr) -> Expr:
        same = isinstance(expr, Load) and expr.buffer == buffer and expr.index == index
        return scalar if same else expr

    def write(node: Store | Assign) -> Sequence[Stmt]:
        same = isinstance(node, Store) and node.buffer == buffer and node.index == index
        return (Assign(scalar.name, node.value, node.op, node.line) if same else node,)

    changed: For = rewrite(loop, read)
    return replace(changed, body=map_body(changed.body, write))
