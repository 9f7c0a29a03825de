"""The vector loops of a planned program, in the order of its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..analysis.lanes import LANE, differing_in_lanes, lane_width, reduced_in
from ..ir.grammar import Assign, For, If, Stmt, statements
from ..ir.uses import first_assigned
from ..program import Program


@dataclass(frozen=True)
class VectorLoop:
    """A loop whose iterations are lanes, and what is around it in its function.

    ``around`` is the loop around it, ``live`` the scalars that are declared outside of it, ``threads`` the
    loop of threads whose function it is in. ``repeats``: it stands in the very body of the loop around, which
    takes one iteration at a time.
    """

    program: Program
    node: For
    around: For | None
    live: frozenset[str]
    threads: For | None
    repeats: bool

    @property
    def sums(self) -> list[Assign]:
        """The assignments of scalars outside the loop that it reduces to, one of each scalar."""
        return reduced_in(self.node, self.live)

    @property
    def own(self) -> frozenset[str]:
        """The tensors of which each lane has a copy."""
        return frozenset(n for n, loops in self.program.owners.items() if self.node.var in loops)

    @property
    def dependences(self) -> Mapping[str, frozenset[str]]:
        """What of its scalars and private tensors differs between lanes."""
        return differing_in_lanes(self.node, self.live, self.program.owners)

    @property
    def varying(self) -> frozenset[str]:
        """The scalars and private tensors that differ between lanes."""
        return frozenset(name for name, depends_on in self.dependences.items() if LANE in depends_on)

    @property
    def width(self) -> int:
        """The bytes of a lane."""
        buffers = self.program.kernel.buffers
        return lane_width(self.node.body, self.node.var, self.dependences, buffers)

    @property
    def inner(self) -> list[For]:
        """The loops inside."""
        return [s for s in statements(self.node.body) if isinstance(s, For)]

    @property
    def transposes(self) -> bool:
        """Whether a loop inside uses register transpose."""
        return any(loop.var in self.program.plan.transposed for loop in self.inner)


def vector_loops(program: Program) -> list[VectorLoop]:
    """Return the vector loops that are not the lanes of a tile."""
    return list(_inside(program, program.kernel.body, None, frozenset(), None))


def tiles(program: Program) -> Iterator[tuple[For, For]]:
    """Yield the loops of rows and lanes of each tile."""
    for row in statements(program.kernel.body):
        lane = program.plan.tile_of(row) if isinstance(row, For) else None
        if lane is not None:
            assert isinstance(row, For)
            yield row, lane


def _inside(
    program: Program, body: Sequence[Stmt], around: For | None, live: frozenset[str], threads: For | None
) -> Iterator[VectorLoop]:
    plan = program.plan
    live |= {node.name for node in first_assigned(body)}
    for node in body:
        if isinstance(node, If):
            yield from _inside(program, (*node.body, *node.orelse), around, live, threads)
        if not isinstance(node, For) or plan.tile_of(node) is not None:
            continue
        outer, function = around, threads
        if threads is None and any(node.var in roles for roles in (plan.threads, plan.columns, plan.rows)):
            outer, function = None, node  # its iterations are a function of their own
        if node.var in plan.vector:
            direct = outer is not None and any(s is node for s in outer.body)
            repeats = direct and outer is not None and outer.var not in plan.coalesced
            yield VectorLoop(program, node, outer, live, function, repeats)
            continue
        if node.var in plan.jammed:
            yield from _inside(program, plan.jammed[node.var].body, node, live, function)
        yield from _inside(program, node.body, node, live, function)
