"""Which reads are covered: they follow a write of the same element (definite assignment).

    for j in range(n): t[j] = x[j]          t[0] is covered: t needs no zeros at the start
    y[0] = t[0] + u[0]                      u[0] is not: u starts as zeros

If all reads of a buffer are covered within each iteration of a loop, it can be private to the iteration.
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

Site = tuple[Leaf, Access]
"""An access, with the leaf that makes it."""

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

    def reads(self, target: str) -> list[Site]:
        """Return the reads of a buffer, including those of reductions."""
        return [
            (leaf, a)
            for leaf in self.model.leaves
            for a in leaf.accesses
            if a.target == target and not a.write
        ]

    def writes(self, target: str) -> list[Site]:
        """Return the writes of a buffer."""
        return [
            (leaf, a) for leaf in self.model.leaves for a in leaf.accesses if a.target == target and a.write
        ]

    def uncovered_read(self, target: str, level: int = 0) -> Site | None:
        """Return a read of an element that may be unwritten, or None.

        Only writes in the same iteration of the outer ``level`` loops count (0: all writes of the kernel).
        """
        return next((site for site, _ in self.uncovered_reads(target, level)), None)

    def uncovered_reads(self, target: str, level: int = 0) -> Iterator[tuple[Site, Any]]:
        """Yield each read of elements that may be unwritten, and the isl map from its instances to them."""
        writes = [(leaf, write) for leaf, write in self.writes(target) if write.exact]
        for site in self.reads(target):
            unwritten = self._unwritten(*site, writes, level)
            if not unwritten.is_empty():
                yield site, unwritten

    def _unwritten(self, leaf: Leaf, access: Access, writes: Sequence[Site], level: int) -> Any:
        unwritten = self.model.map(leaf, access)
        for writer, write in writes:
            if unwritten.is_empty():
                break  # a kernel may have a thousand writes, and the first few usually cover the read
            pairs = self._earlier(leaf, access, writer, write, level)
            if pairs is not None:
                unwritten = unwritten.subtract(pairs.apply_range(self.model.map(writer, write)))
        return unwritten

    def needs_zeros(self, buffer: Buffer, uncovered: Sequence[Any]) -> Expr | None:
        """Return the condition on the sizes under which a buffer has to start as zeros; None if never.

        ``uncovered`` has isl maps from the reading instances to elements that may be unwritten.
        """
        incomplete = [instances.domain().params() for instances in uncovered]
        if buffer.role == "output":
            never_written = self._never_written(buffer)
            if never_written is None:
                return ALWAYS
            incomplete.append(never_written.params())
        sizes = functools.reduce(lambda one, other: one.union(other), incomplete) if incomplete else None
        return None if sizes is None or sizes.is_empty() else self._condition(sizes)

    def _condition(self, sizes: Any) -> Expr:
        """Return a set of sizes as a condition; ``ALWAYS`` if it has all sizes but zeros, or many pieces."""
        model = self.model
        usual = model.parameter_set([f"{affine.word(p)} >= 1" for p in model.parameters])
        if sizes.n_basic_set() > PIECES_JOINED:
            return ALWAYS
        sizes = sizes.coalesce()
        if sizes.n_basic_set() > PIECES or usual.is_subset(sizes):
            return ALWAYS
        return condition_of(model, sizes)

    def _never_written(self, buffer: Buffer) -> Any | None:
        """Return the elements that no statement writes; None where the shape is not affine."""
        known, writes = self.model.affine_names(()), self.writes(buffer.name)
        dims, constraints = list[str](), list[str]()
        for axis, size in enumerate(buffer.shape):
            extent, dim = affine.text(size, known), f"_e{axis}"
            if extent is None:
                return None
            pairs = [w.shared_pairs[axis] for _, w in writes if axis in w.shared_pairs]
            if not pairs:
                dims, constraints = [*dims, dim], [*constraints, f"0 <= {dim} < {extent}"]
                continue
            lasts = [pair.last for pair in pairs if pair.last is not None]
            if len(lasts) < len(pairs):
                return None
            rest = f"{dim}_rest"
            dims = [*dims, dim, rest]
            constraints.append(pairs[0].elements(dim, rest, extent, max(lasts)))
        unwritten = self.model.box(buffer.name, dims, constraints)
        for leaf, write in writes:
            if write.exact:
                unwritten = unwritten.subtract(self.model.map(leaf, write).range())
        return unwritten

    def shared_loops(self, target: str) -> tuple[str, ...]:
        """Return the loops around all accesses of a target, outermost first."""
        sites = [*self.reads(target), *self.writes(target)]
        loops: Sequence[str] = [step.loop for step in self.where[sites[0][0].id] if step.loop]
        for leaf, _ in sites[1:]:
            shared = common(self.where[sites[0][0].id], self.where[leaf.id])
            loops = loops[: len(shared)]
        return tuple(loops)

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
        if buffer.role not in ("output", "local") or buffer.counted:
            continue
        uncovered = list(coverage.uncovered_reads(name))
        condition = coverage.needs_zeros(buffer, [instances for _, instances in uncovered])
        # by the author, who may have forgotten a value; not a temporary that the compiler made
        declared = buffer.zeroed and not buffer.of_zeros and not kernel.derived
        definite = bool(uncovered) and declared and all(w.exact for _, w in coverage.writes(name))
        buffers[name] = replace(
            buffer,
            zeroed=condition is not None,
            zeroed_if=None if condition == ALWAYS else condition,
            first_read=uncovered[0][0][0].line if definite else 0,
        )
    return replace(kernel, buffers=buffers)
