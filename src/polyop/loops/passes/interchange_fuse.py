"""Loop interchange and loop fusion; each change is proved legal before it is made.

``interchange``  reorders the loops of a nest around one reduction, so that memory is walked with stride one.
                 Where elements are used again, as in a contraction, the loops of the sum go innermost.
``fuse``         joins neighbouring loops over the same range that use the same data.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from ..analysis import affine
from ..analysis.dependence import Conflict, Paths, carried, common
from ..analysis.polyhedra import Model
from ..analysis.strides import COSTS, depends, stride
from ..analysis.tree import (
    Branch,
    Loop,
    Node,
    Place,
    Rearrangement,
    inside,
    paths_of,
    places,
    renamed,
    statements_of,
)
from ..ir.grammar import INT, Expr, For, Load, Store, Var, children, walk
from ..program import Note, Program


def interchange_fuse(program: Program) -> Program:
    """Return the program with its loops rearranged."""
    rules = _Rules(program.model)
    rules.interchange()
    tree = rules.fuse()
    return program.with_(*rules.notes, kernel=replace(program.kernel, body=statements_of(tree)))


class _Rules:
    def __init__(self, model: Model) -> None:
        self.model, self.notes = model, list[Note]()
        self.loops = Rearrangement(model)
        self.legality = self.loops.legality
        self.whole: tuple[Node, ...] = ()

    # interchange

    def interchange(self) -> None:
        """Put the loops of single-reduction nests in a better order."""
        for nest in _nests(self.loops.tree):
            for order in self._orders(nest):
                if self.loops.replace(nest, (_rebuilt(nest, order),)):
                    names = ", ".join(loop.var for loop in order)
                    self.notes.append(Note(nest.node.line, f"loops interchanged to ({names})", "interchange"))
                    break

    def _orders(self, nest: Loop) -> list[list[Loop]]:
        """Return orders that are better than the present one, the best first."""
        loops, leaf = _chain(nest)
        store = leaf.node
        if not isinstance(store, Store) or not store.op or len(loops) < 2:
            return []
        inside = {loop.var for loop in loops}
        if any(depends(e, frozenset(inside)) for loop in loops for e in (loop.node.lo, loop.node.hi)):
            return []
        sums = [x for x in loops if not any(depends(i, frozenset({x.var})) for i in store.index)]
        free = [x for x in loops if x not in sums]
        loads = [e for e in walk(store.value) if isinstance(e, Load)]
        every = inside | {e.name for i in store.index for e in walk(i) if isinstance(e, Var)}
        reused = bool(sums) and bool(free) and all(_misses(load, every) for load in loads) and len(loads) > 1

        def cost(loop: Loop) -> float:
            accesses: list[Load | Store] = [store, *loads]
            return sum((COSTS[stride(node, loop.var)] for node in accesses), 0.0)

        if reused:  # the loop that vectors run along is the last of the free ones
            best = [*sorted(free, key=cost, reverse=True), *sums]
        else:
            last = min(loops, key=lambda x: (cost(x), -loops.index(x)))
            best = [*(x for x in loops if x is not last), last]
        return [] if best == loops else [best]

    # fusion

    def fuse(self) -> tuple[Node, ...]:
        """Return the tree with neighbouring loops fused, outermost levels first."""
        self.whole = self.loops.tree
        self._fuse_in(self.whole)
        return self.whole

    def _fuse_in(self, body: tuple[Node, ...]) -> None:
        again = True
        while again:
            again = False
            for first, second in itertools.combinations([n for n in body if isinstance(n, Loop)], 2):
                changed = self._fused(body, first, second)
                if changed is not None:
                    body, again = changed, True
                    break
        for node in body:
            if isinstance(node, Loop):
                self._fuse_in(node.body)
            elif isinstance(node, Branch):
                self._fuse_in(node.body)
                self._fuse_in(node.orelse)

    def _fused(self, body: tuple[Node, ...], first: Loop, second: Loop) -> tuple[Node, ...] | None:
        start, end = body.index(first), body.index(second)
        between = body[start + 1 : end]
        if any(not isinstance(node, Place) for node in between) or not _same_range(first.node, second.node):
            return None
        if not _shares(first, second):
            return None
        other = renamed(second, second.var, Var(first.var, INT)) if second.var != first.var else second
        assert isinstance(other, Loop)
        loop = Loop(first.node, (*first.body, *other.body))
        changed = (*body[:start], *between, loop, *body[end + 1 :])
        whole = _with_body(self.whole, body, changed)
        where = paths_of(whole)
        if self.legality.broken(where) is not None or self._serialises(first, second, whole, loop):
            return None
        if _is_contraction(first) or _is_contraction(second):
            deeper = self._into_one(loop, whole)
            if deeper is None:
                return None
            whole = _with_body(whole, loop.body, deeper)
            changed = (*body[:start], *between, Loop(loop.node, deeper), *body[end + 1 :])
        text = f"loop {second.var} fused with the one of line {first.node.line}"
        self.notes.append(Note(second.node.line, text, "fuse"))
        self.whole = whole
        return changed

    def _into_one(self, loop: Loop, whole: tuple[Node, ...]) -> tuple[Node, ...] | None:
        """Return the loop's body with its loops fused into one, or None when that is not possible."""
        loops = [n for n in loop.body if isinstance(n, Loop)]
        if len(loops) < 2:
            return loop.body if len(loops) == 1 else None
        kept, self.whole = self.whole, whole
        changed = self._fused(loop.body, loops[0], loops[1]) if len(loops) == 2 else None
        self.whole = kept
        return changed

    def _serialises(self, first: Loop, second: Loop, whole: Sequence[Node], loop: Loop) -> bool:
        """Whether the fused loop would carry a conflict between its two halves."""
        where = paths_of(whole)
        ours = {p.leaf.id for p in places((first,))}
        others = {p.leaf.id for p in places((second,))}
        for conflict in self.legality.conflicts:
            a, b = conflict.a.id, conflict.b.id
            if not ((a in ours and b in others) or (a in others and b in ours)):
                continue
            if self._carried_by(conflict, where, loop.var):
                return True
        return False

    def _carried_by(self, conflict: Conflict, where: Paths, var: str) -> bool:
        loops = common(where[conflict.a.id], where[conflict.b.id])
        level = next((k for k, (_, _, name) in enumerate(loops) if name == var), None)
        return level is not None and not carried(self.model, conflict, where, level).is_empty()


def _nests(tree: Sequence[Node]) -> list[Loop]:
    """Return the outermost loops of perfect nests around a single leaf."""
    found: list[Loop] = []
    for node in tree:
        match node:
            case Loop():
                if _chain_or_none(node) is not None:
                    found.append(node)
                else:
                    found += _nests(node.body)
            case Branch():
                found += [*_nests(node.body), *_nests(node.orelse)]
            case _:
                pass
    return found


def _chain_or_none(loop: Loop) -> tuple[list[Loop], Place] | None:
    loops = [loop]
    while len(loops[-1].body) == 1 and isinstance(loops[-1].body[0], Loop):
        loops.append(loops[-1].body[0])
    last = loops[-1].body
    return (loops, last[0]) if len(last) == 1 and isinstance(last[0], Place) else None


def _chain(loop: Loop) -> tuple[list[Loop], Place]:
    found = _chain_or_none(loop)
    assert found is not None
    return found


def _rebuilt(nest: Loop, order: Sequence[Loop]) -> Loop:
    _, leaf = _chain(nest)
    body: Node = leaf
    for loop in reversed(order):
        body = Loop(loop.node, (body,))
    assert isinstance(body, Loop)
    return body


def _misses(load: Load, loops: set[str]) -> bool:
    used = {e.name for i in load.index for e in walk(i) if isinstance(e, Var)}
    return bool(loops - used)


def _with_body(tree: tuple[Node, ...], old: tuple[Node, ...], new: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the tree with one body replaced; what does not hold it stays the same object."""
    if tree is old:
        return new
    found = tuple(inside(node, lambda body: _with_body(body, old, new)) for node in tree)
    return found if any(a is not b for a, b in zip(found, tree, strict=True)) else tree


def _same_range(a: For, b: For) -> bool:
    if "serial" in (a.hint, b.hint) and a.hint != b.hint:
        return False
    return _same(a.lo, b.lo) and _same(a.hi, b.hi)


def _same(a: Expr, b: Expr) -> bool:
    one, other = affine.linear(a), affine.linear(b)
    return a == b or (one is not None and one == other)


def _shares(a: Loop, b: Loop) -> bool:
    return bool(_touched(a) & _touched(b))


def _touched(loop: Loop) -> set[str]:
    return {access.target for place in places((loop,)) for access in place.leaf.accesses}


def _is_contraction(loop: Loop) -> bool:
    """Whether a sum stands two or more loops deeper: tiles of it want a nest of their own."""

    def depth(node: Node) -> int:
        match node:
            case Loop():
                return 1 + max(map(depth, node.body), default=0)
            case Branch():
                return max(map(depth, (*node.body, *node.orelse)), default=0)
            case Place(node=stmt):
                return 0 if stmt.op and list(children(stmt)) else -99
        raise TypeError(type(node).__name__)

    return depth(loop) >= 3
