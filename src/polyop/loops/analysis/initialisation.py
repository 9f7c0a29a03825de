"""Which reads follow a write of the same element.

A buffer all of whose reads do needs no zeros at the start. If they do within each iteration of a loop, the
buffer can be private to the iteration.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..ir.grammar import BOOL, Buffer, Const, Expr, Kernel
from . import affine
from .conditions import condition_of
from .dependence import Conflict, Paths, common, forward, paths
from .polyhedra import Access, Leaf, Model
from .session import IslSession

Place = tuple[Leaf, Access]

ALWAYS = Const(True, BOOL)
"""The condition that holds for all sizes."""
PIECES = 4
"""Most pieces of a set of sizes for which a tensor starts as zeros. With more, it always does."""
PIECES_JOINED = 100
"""Most pieces of such a set before they are joined: joining more exceeds isl's quota."""


class Coverage:
    """The reads and writes of one kernel, and which reads may find an element unwritten."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.where: Paths = paths(model)

    def reads(self, target: str) -> list[Place]:
        """Return the reads of a buffer, including those of reductions."""
        return [
            (leaf, a)
            for leaf in self.model.leaves
            for a in leaf.accesses
            if a.target == target and not a.write
        ]

    def writes(self, target: str) -> list[Place]:
        """Return the writes of a buffer."""
        return [
            (leaf, a) for leaf in self.model.leaves for a in leaf.accesses if a.target == target and a.write
        ]

    def uncovered_read(self, target: str, level: int = 0) -> Place | None:
        """Return a read of an element that may be unwritten, or None.

        Only writes in the same iteration of the outer ``level`` loops count (0: all writes of the kernel).
        """
        return next((place for place, _ in self.uncovered_reads(target, level)), None)

    def uncovered_reads(self, target: str, level: int = 0) -> Iterator[tuple[Place, Any]]:
        """Yield each read of elements that may be unwritten, and the isl map from its instances to them."""
        writes = [place for place in self.writes(target) if place[1].exact]
        for place in self.reads(target):
            unwritten = self._unwritten(*place, writes, level)
            if not unwritten.is_empty():
                yield place, unwritten

    def _unwritten(self, leaf: Leaf, access: Access, writes: Sequence[Place], level: int) -> Any:
        unwritten = self.model.map(leaf, access)
        for writer, write in writes:
            if unwritten.is_empty():
                break  # a kernel may have a thousand writes, and the first few usually cover the read
            pairs = self._earlier(leaf, access, writer, write, level)
            if pairs is not None:
                unwritten = unwritten.subtract(pairs.apply_range(self.model.map(writer, write)))
        return unwritten

    def needs_zeros(self, buffer: Buffer, early: Sequence[Any]) -> Expr | None:
        """Return the condition on the sizes that an element is read too early or never written, if any."""
        incomplete = [instances.domain().params() for instances in early]
        if buffer.role == "output":
            never = self._never(buffer)
            if never is None:
                return ALWAYS
            incomplete.append(never.params())
        whole = functools.reduce(lambda one, other: one.union(other), incomplete) if incomplete else None
        return None if whole is None or whole.is_empty() else self._condition(whole)

    def _condition(self, sizes: Any) -> Expr:
        """Return a set of sizes as a condition: always true for all sizes that are not 0, or many pieces."""
        model = self.model
        usual = model.parameter_set([f"{affine.word(p)} >= 1" for p in model.parameters])
        if sizes.n_basic_set() > PIECES_JOINED:
            return ALWAYS
        sizes = sizes.coalesce()
        if sizes.n_basic_set() > PIECES or usual.is_subset(sizes):
            return ALWAYS
        return condition_of(model, sizes)

    def _never(self, buffer: Buffer) -> Any | None:
        """Return the elements that no statement writes; None where the shape is not affine."""
        known = self.model.affine_names(())
        dims = [f"_e{k}" for k in range(len(buffer.shape))]
        constraints = []
        for dim, size in zip(dims, buffer.shape, strict=True):
            extent = affine.text(size, known)
            if extent is None:
                return None
            constraints += [f"0 <= {dim} < {extent}"]
        unwritten = self.model.box(buffer.name, dims, constraints)
        for leaf, write in self.writes(buffer.name):
            if write.exact:
                unwritten = unwritten.subtract(self.model.map(leaf, write).range())
        return unwritten

    def shared_loops(self, target: str) -> tuple[str, ...]:
        """Return the loops around all accesses of a target, outermost first."""
        places = [*self.reads(target), *self.writes(target)]
        found: Sequence[str] = [step.loop for step in self.where[places[0][0].id] if step.loop]
        for leaf, _ in places[1:]:
            both = common(self.where[places[0][0].id], self.where[leaf.id])
            found = found[: len(both)]
        return tuple(found)

    def _earlier(self, leaf: Leaf, access: Access, writer: Leaf, write: Access, level: int) -> Any:
        """Return the pairs (instance that reads, earlier instance that writes the same element)."""
        shared = common(self.where[leaf.id], self.where[writer.id])
        if len(shared) < level:
            return None
        pairs = self.model.map(leaf, access).apply_range(self.model.map(writer, write).reverse())
        kind = self.model.isl.dim_type
        for one, other, _ in shared[:level]:
            pairs = pairs.equate(kind.in_, one, kind.out, other)
        conflict = Conflict(leaf, writer, access.target, pairs, "")
        return forward(self.model, conflict, self.where, backward=True)


def with_initialisation(kernel: Kernel, session: IslSession) -> Kernel:
    """Return the kernel with ``zeroed``, ``zeroed_if`` and ``first_read`` of outputs and temporaries set."""
    coverage = Coverage(Model(kernel, session))
    buffers = dict(kernel.buffers)
    for name, buffer in kernel.buffers.items():
        if buffer.role not in ("output", "local"):
            continue
        early = list(coverage.uncovered_reads(name))
        condition = coverage.needs_zeros(buffer, [instances for _, instances in early])
        definite = bool(early) and not kernel.derived and all(w.exact for _, w in coverage.writes(name))
        buffers[name] = replace(
            buffer,
            zeroed=condition is not None,
            zeroed_if=None if condition == ALWAYS else condition,
            first_read=early[0][0][0].line if definite else 0,
        )
    return replace(kernel, buffers=buffers)
