"""Which accesses of a kernel touch the same element, and which of them comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...core.locks import cached_property
from ..analysis.dependence import Conflict, Paths, classify, conflicts, forward, paths
from ..analysis.polyhedra import Access, Leaf, Model
from ..analysis.session import IslSession
from ..analysis.tree import Branch, Loop, Node, StatementNode, tree_of
from ..ir.grammar import Kernel, Load, Store
from .scopes import Scopes


class Order:
    """A kernel without scalars as a tree, and the order of its accesses.

    What belongs to the iterations of a loop (``scopes``) meets only within one of them.
    """

    def __init__(self, kernel: Kernel, session: IslSession, scopes: Scopes) -> None:
        self.kernel, self.scopes = kernel, scopes
        self.model = Model(kernel, session, dict(scopes))
        self.tree = tree_of(self.model)
        self.where: Paths = paths(self.model)
        self.around: dict[str, tuple[Loop | Branch, ...]] = {}
        self.statements: dict[str, StatementNode] = {}
        self._visit(self.tree, ())

    def _visit(self, body: tuple[Node, ...], around: tuple[Loop | Branch, ...]) -> None:
        for node in body:
            match node:
                case StatementNode():
                    self.around[node.leaf.id] = around
                    self.statements[node.leaf.id] = node
                case Loop():
                    self._visit(node.body, (*around, node))
                case Branch():
                    self._visit(node.body, (*around, node))
                    self._visit(node.orelse, (*around, node))

    @cached_property
    def independent(self) -> frozenset[str]:
        """The loops whose iterations may be done in any order: at most they add to the same elements."""
        kinds = classify(self.model, conflicts(self.model))
        return frozenset(
            name
            for name, kind in kinds.items()
            if kind.name == "parallel" or (kind.name == "reduction" and all(op == "+" for _, op in kind.over))
        )

    def writers(self, buffer: str) -> Iterator[tuple[Leaf, Access]]:
        """Yield the writes of a buffer."""
        for leaf in self.model.leaves:
            yield from ((leaf, a) for a in leaf.accesses if a.write and a.target == buffer)

    def reads(self, leaf: Leaf, load: Load) -> list[Access]:
        """Return the accesses by which an instance of a leaf reads a load: its own or a condition's."""
        own = leaf.node
        updated = isinstance(own, Store) and (own.buffer, own.index) == (load.buffer, load.index)
        found = [a for a in leaf.accesses if not a.write and a.node == load]
        found += self.updates(leaf) if updated else []
        assert found, f"{load} is not read by {leaf.id}"
        return found

    def updates(self, leaf: Leaf) -> list[Access]:
        """Return the reads of the element that a leaf updates."""
        return [a for a in leaf.accesses if not a.write and a.node is leaf.node]

    def written_before(self, leaf: Leaf, read: Access) -> list[Leaf]:
        """Return the leaves that may have written what an access reads."""
        return [
            writer
            for writer, write in self.writers(read.target)
            if not self._meet(leaf, read, writer, write, backward=True).is_empty()
        ]

    def sources(self, leaf: Leaf, load: Load) -> list[Leaf]:
        """Return the leaves of which a leaf may read what they wrote, not yet overwritten by a store."""
        found = []
        for writer, write in {id(w): (w, a) for w, a in self.writers(load.buffer)}.values():
            for read in self.reads(leaf, load):
                if not self._alive(leaf, read, writer, write).is_empty():
                    found.append(writer)
                    break
        return found

    def readers(self, leaf: Leaf) -> list[tuple[Leaf, Access]]:
        """Return the accesses that may read what a leaf wrote, before anything else writes it."""
        (write,) = (a for a in leaf.accesses if a.write)
        return [
            (reader, read)
            for reader in self.model.leaves
            for read in reader.accesses
            if not read.write and read.target == write.target
            if not self._alive(reader, read, leaf, write, updated=False).is_empty()
        ]

    def has_only(self, leaf: Leaf, read: Access, writer: Leaf) -> bool:
        """Whether each instance of an access reads what one instance of ``writer`` wrote, no other."""
        if not writer.definite or not self.touches_once(writer):
            return False
        for other, write in self.writers(read.target):
            alive = self._alive(leaf, read, other, write)
            if other is not writer and not alive.is_empty():
                return False
            if other is writer and not self.model.map(leaf, read).domain().is_subset(alive.domain()):
                return False
        return True

    def overwritten(self, leaf: Leaf, read: Access, by: frozenset[str] | None = None) -> Leaf | None:
        """Return a leaf (one of ``by``) that may write what an access has read, at once or later."""
        for writer, write in self.writers(read.target):
            if by is not None and writer.id not in by:
                continue
            if leaf is writer and self._itself(leaf, read, write):
                return writer
            if not self._meet(leaf, read, writer, write, backward=False).is_empty():
                return writer
        return None

    def overwriters(self, leaf: Leaf) -> list[Leaf]:
        """Return what may write later what a leaf writes."""
        (own,) = (a for a in leaf.accesses if a.write)
        return [
            writer
            for writer, write in self.writers(own.target)
            if not self._meet(leaf, own, writer, write, backward=False).is_empty()
        ]

    def always_overwritten(self, leaf: Leaf, by: Leaf) -> bool:
        """Whether another leaf writes each element later that a leaf writes, and writes no element twice."""
        (own,), (over,) = ([a for a in x.accesses if a.write] for x in (leaf, by))
        if not over.exact or not self.touches_once(by):
            return False
        later = self._meet(leaf, own, by, over, backward=False).domain()
        return bool(self.model.map(leaf, own).domain().is_subset(later))

    def is_dead(self, leaf: Leaf) -> bool:
        """Whether nothing can read what a leaf writes: it is not read later, or overwritten before that."""
        return not self.readers(leaf)

    def _alive(self, reader: Leaf, read: Access, leaf: Leaf, write: Access, *, updated: bool = True) -> Any:
        """Return the pairs of what reads and what wrote before it, with no store of the element between them.

        ``updated``: an update between them is allowed.
        """
        alive = self._meet(reader, read, leaf, write, backward=True)
        for other, over in self.writers(write.target):
            if alive.is_empty():
                break
            if over.exact and other is not leaf and not (over.op and updated):
                between = self._meet(reader, read, other, over, backward=True)
                alive -= between.apply_range(self._meet(other, over, leaf, write, backward=True))
        return alive

    def touches_once(self, leaf: Leaf) -> bool:
        """Whether every instance of a leaf, in one scope, writes an element of its own."""
        (write,) = (a for a in leaf.accesses if a.write)
        return None not in write.index and bool(self.model.map(leaf, write).is_injective())

    def touched_before(self, leaf: Leaf, but: Callable[[Leaf], bool]) -> bool:
        """Whether anything, ``but`` some leaves, may read or write before it what a leaf writes."""
        (write,) = (a for a in leaf.accesses if a.write)
        return any(
            not self._meet(leaf, write, other, access, backward=True).is_empty()
            for other in self.model.leaves
            if other is not leaf and not but(other)
            for access in other.accesses
            if access.target == write.target
        )

    def _itself(self, leaf: Leaf, read: Access, write: Access) -> bool:
        """Whether an instance of a leaf writes what it has read."""
        same = self._pairs(leaf, read, leaf, write)
        return not same.intersect(same.domain().identity()).is_empty()

    def _meet(self, leaf: Leaf, read: Access, writer: Leaf, write: Access, *, backward: bool) -> Any:
        """Return the pairs of a read and a write of the same element; ``backward``: the write comes first."""
        pairs = self._pairs(leaf, read, writer, write)
        if pairs.is_empty():
            return pairs
        conflict = Conflict(leaf, writer, read.target, pairs, "")
        return forward(self.model, conflict, self.where, backward=backward)

    def _pairs(self, leaf: Leaf, read: Access, writer: Leaf, write: Access) -> Any:
        """Return the pairs of instances that access the same element, in any order."""
        return self.model.map(leaf, read).apply_range(self.model.map(writer, write).reverse())

    def loops(self, leaf: Leaf) -> list[Loop]:
        """Return the loops around a leaf, outermost first."""
        return [node for node in self.around[leaf.id] if isinstance(node, Loop)]
