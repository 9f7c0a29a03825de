"""Decide where each value that a derivative reads comes from: a tensor, a tape, or a recomputation.

input        a tensor that the kernel only reads
final        an output that nothing overwrites after the read: the forward's result has it
recomputed   computed once more, in the iteration of the loops that the temporary belongs to
taped        recomputed, and kept at the read, because the element changes later on

A value is final, recomputed or taped by proof, never by guess: whatever may overwrite it counts.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ..analysis.polyhedra import Access, Leaf
from ..analysis.tree import Loop, Node, statement_nodes
from ..analysis.writes import is_sole_write
from ..ir.grammar import BOOL, Const, Expr, Load, Op, Store, children, is_lazy
from ..ir.uses import loads_of
from .order import Order

Scope = tuple[str, ...]


class Read(NamedTuple):
    """A load by a leaf, or by the loop or condition number ``depth`` around it (None: by itself)."""

    leaf: str
    load: Load
    depth: int | None = None


@dataclass
class RecordedValues:
    """Decides for each value that the derivative reads whether it is an input, final, recomputed or taped.

    Callers request values (:meth:`request`), then call :meth:`settle`. ``order`` is the order of the kernel's
    accesses; in ``again`` outputs have scopes as well, because a recomputed output is a temporary.
    """

    order: Order
    again: Order
    slices: dict[Scope, set[str]] = field(default_factory=dict)
    tapes: dict[Scope, list[Read]] = field(default_factory=dict)
    changed: dict[Read, int] = field(default_factory=dict)
    """The reads that are taped, each with the line that overwrites its value."""
    _requested: set[tuple[Read, Scope | None]] = field(default_factory=set)
    _outside: dict[Read, None] = field(default_factory=dict)
    """Reads of recomputed values by the gradient, or by a recomputed scope that does not own the value."""
    _final: dict[Read, bool] = field(default_factory=dict)
    _results: dict[str, Scope] = field(default_factory=dict)
    _given_results: set[str] = field(default_factory=set)

    def scope(self, buffer: str) -> Scope:
        """Return the loops whose iterations each own the buffer when it is recomputed."""
        return self.again.scopes.get(buffer, ())

    def request(self, read: Read, within: Scope | None = None) -> None:
        """Request a value that the gradient reads, or that a recomputed scope (``within``) reads."""
        if (read, within) in self._requested:
            return
        self._requested.add((read, within))
        for inner in loads_of(*read.load.index):
            self.request(read._replace(load=inner), within)
        if self.is_given(read):
            return
        own = self.scope(read.load.buffer)
        if within is not None and own[: len(within)] == within:
            own = within
        else:
            self._outside[read] = None
        for reader, access in self._accesses(self.again, read):
            self._recompute_all(self.again.written_before(reader, access), own)

    def request_result(self, leaf: str, load: Load) -> bool:
        """Request the element that a leaf updates, as it is after all updates by the same operator.

        Returns False if it is not available. An available one may turn out to be overwritten later; see
        :meth:`forget_overwritten_results`.
        """
        updates = self._same_updates(leaf)
        if self._is_read_between(load.buffer, updates):
            return False
        if self.result_is_given(leaf, load):
            self._given_results.add(load.buffer)
            return True
        own = self.scope(load.buffer)
        reader = self.leaf(leaf)
        for access in self.again.updates(reader):
            self._recompute_all(self.again.written_before(reader, access), own)
        for other in updates:
            self._recompute(other, own)
        self._results[leaf] = own
        return True

    def given(self) -> set[str]:
        """Return the inputs and outputs of which a requested value is read."""
        return {read.load.buffer for read, _ in self._requested if self.is_given(read)} | self._given_results

    def forget_overwritten_results(self) -> list[str]:
        """Return the leaves whose results are overwritten while their scope is recomputed.

        Their results are not requested any more.
        """
        overwritten = []
        for leaf, own in self._results.items():
            others = frozenset(self.slices.get(own, ())) - self._same_updates(leaf)
            reader = self.leaf(leaf)
            if any(self.again.overwritten(reader, a, others) is not None for a in self.again.updates(reader)):
                overwritten.append(leaf)
        for leaf in overwritten:
            del self._results[leaf]
        return overwritten

    def _is_read_between(self, buffer: str, updates: frozenset[str]) -> bool:
        """Whether an element may be read between two updates, before it has their result."""
        return any(
            any(writer.id in updates for writer in self.again.written_before(reader, access))
            and self.again.overwritten(reader, access, updates) is not None
            for reader in self.again.model.leaves
            for access in reader.accesses
            if not access.write and access.target == buffer
            if not (reader.id in updates and access.node is reader.node)
        )

    def result_is_given(self, leaf: str, load: Load) -> bool:
        """Whether an output ends up with the result of a max or min, and its operand is available unchanged.

        A recomputed operand is not, because it may differ in its last bit.
        """
        value = self.order.statements[leaf].node.value
        if self.order.kernel.buffers[load.buffer].role != "output" or not isinstance(value, (Load, Const)):
            return False
        if isinstance(value, Load) and not self.is_given(Read(leaf, value)):
            return False
        reader = next(x for x in self.order.model.leaves if x.id == leaf)
        others = frozenset(x.id for x in self.order.model.leaves) - self._same_updates(leaf)
        return all(self.order.overwritten(reader, a, others) is None for a in self.order.updates(reader))

    def result_stays(self, leaf: str) -> bool:
        """Whether an output still has, when the kernel ends, the value that a leaf stores."""
        place = self.order.statements[leaf]
        assert isinstance(place.node, Store)
        if place.node.op or self.order.kernel.buffers[place.node.buffer].role != "output":
            return False
        loops = [loop.node for loop in self.order.loops(place.leaf)]
        return is_sole_write(self.order.kernel, place.node, loops) or not self.order.overwriters(place.leaf)

    def _same_updates(self, leaf: str) -> frozenset[str]:
        """Return the leaves that update the same buffer with the same operator."""
        node = self.order.statements[leaf].node
        return frozenset(
            p.leaf.id
            for p in self.order.statements.values()
            if isinstance(p.node, Store)
            and isinstance(node, Store)
            and (p.node.buffer, p.node.op) == (node.buffer, node.op)
        )

    def request_heads(self, leaf: str, within: Scope | None = None, above: int | None = None) -> None:
        """Request what the loops and conditions around a leaf (the outer ``above``) read, inside a scope."""
        loops = 0
        for depth, node in enumerate(self.order.around[leaf][:above]):
            if within is None or loops >= len(within):
                for load in loads_of(node.node):
                    self.request(Read(first_leaf(node), load, depth), within)
            loops += isinstance(node, Loop)

    def settle(self) -> None:
        """Decide which of the requested values are taped."""
        changed = True
        while changed:
            changed = False
            for read in list(self._outside):
                own = self.scope(read.load.buffer)
                overwriter = None if read in self.changed else self._overwriter(read, own)
                if overwriter is None:
                    continue
                changed = True
                self.changed[read] = overwriter.line
                self.tapes.setdefault(own, []).append(read)
                test = self.guard(read)
                for inner in loads_of(*read.load.index, *([] if test is None else [test])):
                    self.request(read._replace(load=inner), own)
                self.request_heads(read.leaf, own, read.depth)

    def guard(self, read: Read) -> Expr | None:
        """Return the condition inside a statement under which a value is read, or None if it always is."""
        if read.depth is None:
            return guard_of(children(self.order.statements[read.leaf].node), read.load)
        return guard_of(children(self.order.around[read.leaf][read.depth].node), read.load)

    def _overwriter(self, read: Read, own: Scope) -> Leaf | None:
        """Return a leaf that overwrites a value while its scope is recomputed, or None."""
        recomputed = frozenset(self.slices.get(own, ()))
        overwriters = (
            self.again.overwritten(reader, access, recomputed)
            for reader, access in self._accesses(self.again, read)
        )
        return next((leaf for leaf in overwriters if leaf is not None), None)

    def is_given(self, read: Read) -> bool:
        """Whether an input, or an output of the forward, has the value."""
        role = self.order.kernel.buffers[read.load.buffer].role
        if role != "output":
            return role == "input"
        if read not in self._final:
            overwriters = (self.order.overwritten(*access) for access in self._accesses(self.order, read))
            self._final[read] = all(leaf is None for leaf in overwriters)
        return self._final[read]

    def _accesses(self, order: Order, read: Read) -> Iterator[tuple[Leaf, Access]]:
        """Yield the accesses of a read, with their leaves.

        A loop's bound or a condition is read for every leaf inside. One leaf is not enough: its own
        conditions may exclude iterations that read.
        """
        leaves = [read.leaf]
        if read.depth is not None:
            leaves = [p.leaf.id for p in statement_nodes((order.around[read.leaf][read.depth],))]
        for leaf in leaves:
            reader = order.statements[leaf].leaf
            yield from ((reader, access) for access in order.reads(reader, read.load))

    def in_order(self, load: Load, within: Scope) -> bool:
        """Whether a recomputed scope computes the buffer that it loads itself, in the original order."""
        return self.scope(load.buffer)[: len(within)] == within

    def recomputed(self) -> list[str]:
        """Return the temporaries that are recomputed, and do not change after they are read."""
        names = dict.fromkeys(read.load.buffer for read in self._outside)
        for read in self.changed:
            names.pop(read.load.buffer, None)
        return [n for n in names if self.order.kernel.buffers[n].role == "local"]

    def explain(self) -> Iterator[tuple[int, str]]:
        """Yield (line, text) for each value that the gradient reads and no input has: where it is from."""
        for leaf, load, _ in (read for read, final in self._final.items() if final):
            line = self.order.statements[leaf].node.line
            yield line, f"{load.buffer} is final: the output has it when the kernel ends"
        for read in self._outside:
            own = self.scope(read.load.buffer)
            line, name = self.order.statements[read.leaf].node.line, read.load.buffer
            where = f"in each iteration of {', '.join(own)}" if own else "once, before going backwards"
            changed = self.changed.get(read)
            if changed is None:
                yield line, f"{name} is recomputed, {where}"
            else:
                why = f"line {changed} overwrites it"
                yield line, f"{name} is recomputed, {where}, and taped at this line, as {why}"

    def leaf(self, leaf: str) -> Leaf:
        """Return a leaf of ``again``."""
        return self.again.statements[leaf].leaf

    def _recompute(self, leaf: str, scope: Scope) -> None:
        """Add a statement to those that a scope recomputes, and request what it reads."""
        chosen = self.slices.setdefault(scope, set())
        if leaf in chosen:
            return
        chosen.add(leaf)
        place = self.again.statements[leaf]
        for load in loads_of(place.node):
            self.request(Read(leaf, load), scope)
        for access in self.again.updates(place.leaf):
            self._recompute_all(self.again.written_before(place.leaf, access), scope)
        self.request_heads(leaf, scope)

    def _recompute_all(self, leaves: Iterable[Leaf], scope: Scope) -> None:
        for leaf in leaves:
            self._recompute(leaf.id, scope)


def guard_of(expressions: Iterable[Expr], load: Load) -> Expr | None:
    """Return the condition under which expressions read an element, or None: always, or never."""
    conditions = [test for e in expressions for test in _tests(e, load)]
    tests = [test for test in conditions if test is not None]
    if not tests or len(tests) < len(conditions):
        return None
    return functools.reduce(lambda a, b: Op("or", (a, b), BOOL), tests)


def _tests(expr: Expr, load: Load) -> Iterator[Expr | None]:
    """Yield for each place where an expression reads an element the condition of that; None: always."""
    if expr == load:
        yield None
    lazy = is_lazy(expr)
    first, *rest = children(expr) or (None,)
    for place, argument in enumerate((first, *rest)):
        if argument is None:
            continue
        for inner in _tests(argument, load):
            if not lazy or place == 0:
                yield inner
                continue
            assert isinstance(expr, Op)
            assert first is not None
            holds = expr.name == "and" or (expr.name == "select" and place == 1)
            own = first if holds else Op("not", (first,), BOOL)
            yield own if inner is None else Op("and", (own, inner), BOOL)


def first_leaf(node: Node) -> str:
    """Return the id of the first leaf of a tree: a loop or condition reads its values before it."""
    return next(place.leaf.id for place in statement_nodes((node,)))
