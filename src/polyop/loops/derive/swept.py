"""Which elements of a buffer statements and loops reach, so that one fact can stand for all of them.

    for i in range(n):              no two iterations of i use the same element of y: y is not carried
        for j in range(m):
            y[i, j] = exp(x[i, j])  this is the one element of y that the iteration of j uses
        for k in range(m):          after k, each element of row i has gone through the loop: this is whole
            y[i, k] = y[i, k] / s

isl proves what iterations share. The form of indices tells the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..analysis.dependence import carried, common, paths
from ..ir.grammar import INT, Const, Expr, For, If, Load, OpenEnd, Stmt, Store, Var, walk
from ..ir.rewriter import substitute
from ..ir.uses import loads_of
from ..program import Program

Arms = tuple[tuple[If, int], ...]
"""Conditions, each with the arm: 0 is the one that runs where it holds, 1 the other."""


@dataclass(frozen=True, slots=True)
class Access:
    """An access of a buffer: its index, and what is around it, outermost first."""

    index: tuple[Expr, ...]
    loops: tuple[For, ...]
    arms: Arms


class Swept:
    """The elements that the loops of a kernel reach."""

    def __init__(self, program: Program) -> None:
        self.kernel = program.kernel
        self._accesses: dict[str, list[Access]] = {}
        self._visit(program.kernel.body, (), ())
        self._carried: dict[str, set[str]] = {}
        model, where = program.model, paths(program.model)
        for conflict in program.conflicts:
            for level, (_, _, loop) in enumerate(common(where[conflict.a.id], where[conflict.b.id])):
                if not carried(model, conflict, where, level).is_empty():
                    self._carried.setdefault(loop, set()).add(conflict.target)
        self._same = {name for name in self._accesses if self._is_same_everywhere(name)}

    def _visit(self, body: Sequence[Stmt], loops: tuple[For, ...], arms: Arms) -> None:
        """Collect the accesses of a body."""
        for node in body:
            for access in (*loads_of(node), *((node,) if isinstance(node, Store) else ())):
                self._accesses.setdefault(access.buffer, []).append(Access(access.index, loops, arms))
            if isinstance(node, For):
                self._visit(node.body, (*loops, node), arms)
            elif isinstance(node, If):
                self._visit(node.body, loops, (*arms, (node, 0)))
                self._visit(node.orelse, loops, (*arms, (node, 1)))

    def carried(self, loop: For) -> set[str]:
        """Return the buffers of which iterations of a loop may use the same element, one of them to store."""
        return self._carried.get(loop.var, set())

    def is_one(self, store: Store, loops: Sequence[For]) -> bool:
        """Whether the iteration that has elements for itself uses no other than the one that is stored."""
        sweeps = self._sweeps(store.buffer, loops)
        inside = [a for a in self._accesses[store.buffer] if not sweeps or sweeps[-1] in a.loops]
        outer = {loop.var for loop in (loops[: loops.index(sweeps[-1]) + 1] if sweeps else ())}
        return all(a.index == store.index for a in inside) and self._are_fixed(store.index, outer)

    def is_whole(self, loop: For, name: str) -> bool:
        """Whether a run of a loop takes each element of a buffer that it is about through an iteration."""
        inside = (a for a in self._accesses.get(name, ()) if loop in a.loops)
        return name in self._same or all(loop in self._loops_over_all(name, a) for a in inside)

    def only_in_arm(self, node: If) -> Mapping[str, int]:
        """Return the buffers whose elements are used in one arm of a condition or not at all, and the arm."""
        uses = ((name, access) for name in self._same for access in self._accesses[name])
        return {name: arm for name, access in uses for one, arm in access.arms if one is node}

    def _sweeps(self, name: str, loops: Sequence[For]) -> list[For]:
        """Return the loops whose iterations each have elements of a buffer for themselves."""
        return [loop for loop in loops if name not in self.carried(loop)]

    def _loops_over_all(self, name: str, access: Access) -> list[For]:
        """Return the loops that take an access to every element of the buffer, one along each axis."""
        loops = {loop.var: loop for loop in self._sweeps(name, access.loops)}
        found = []
        for index, size in zip(access.index, self.kernel.buffers[name].shape, strict=True):
            loop = loops.pop(index.name, None) if isinstance(index, Var) else None
            if loop is not None and (loop.lo, loop.hi) == (Const(0, INT), size):
                found.append(loop)
            elif size != Const(1, INT):
                return []
        return found

    def _is_same_everywhere(self, name: str) -> bool:
        """Whether all accesses of a buffer have one index, range and condition, but for names of loops."""
        found = set[tuple[object, ...]]()
        for access in self._accesses[name]:
            loops = self._sweeps(name, access.loops)
            names: dict[str, Expr] = {loop.var: Var(f"sweep {k}", INT) for k, loop in enumerate(loops)}
            limits = [e for loop in loops for e in (loop.lo, loop.hi)]
            exprs = (*access.index, *limits, *(node.condition for node, _ in access.arms))
            renamed = [substitute(e, names) for e in exprs]
            if not self._are_fixed(renamed, {f"sweep {k}" for k in range(len(loops))}):
                return False
            found.add((*renamed, len(loops), *(arm for _, arm in access.arms)))
        return len(found) == 1

    def _are_fixed(self, exprs: Sequence[Expr], variables: set[str]) -> bool:
        """Whether expressions of some variables, sizes and attributes have the same values everywhere."""
        known = variables | {*self.kernel.attributes}
        for e in (e for expr in exprs for e in walk(expr)):
            match e:
                case Load() if self.kernel.buffers[e.buffer].role != "input":
                    return False
                case Var() if e.name not in known:
                    return False
                case OpenEnd():
                    return False
        return True
