"""Loop interchange and loop fusion; each change is proved legal before it is made.

Interchange reorders the loops of a nest around one reduction, so that memory is accessed with stride one. If
operands are used several times, as in a contraction, the loops of the sum become the innermost ones.

    for j in range(n):                     for i in range(m):
        for i in range(m):            ->       for j in range(n):
            y[j] += x[i, j]                        y[j] += x[i, j]

Around several statements with sums, a loop over which the lanes' operand is the same is put directly around
the lanes, for register tiles: a convolution's loops over (image, channel, row, column) become (image, row,
channel, column).

Fusion joins neighbouring loops over the same range that use the same data.

    for i in range(n):                     for i in range(n):
        y[i] = x[i] * 2               ->       y[i] = x[i] * 2
    for i in range(n):                         z[i] = y[i] + 1
        z[i] = y[i] + 1
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..analysis import affine
from ..analysis.cost import CONTRACTION_LOOPS
from ..analysis.dependence import Conflict, Paths, carried, common
from ..analysis.loop_names import by_variable
from ..analysis.loop_order import reordered
from ..analysis.strides import BACK, COSTS, STRIDED, UNIFORM, UNIT, depends, stride
from ..analysis.tree import (
    Branch,
    Loop,
    Node,
    Rearrangement,
    StatementNode,
    in_loops,
    inside,
    paths_of,
    perfect_nest,
    renamed,
    statement_nodes,
    statements_of,
)
from ..ir.grammar import INT, Expr, For, Load, Store, Var
from ..ir.note import Note
from ..ir.schedule import Step
from ..ir.stops import is_unbounded, stop_flags
from ..ir.uses import loads_of, variables_of
from ..program import Program


def interchange_fuse(program: Program) -> Program:
    """Return the program with its loops interchanged and fused."""
    rules = _Rules(program)
    rules.interchange()
    tree = rules.fuse()
    kernel = replace(program.kernel, body=statements_of(tree))
    applied = (*program.applied, *rules.steps)
    return program.with_(*rules.notes, kernel=kernel, loops=rules.names, applied=applied)


class _Rules:
    """Interchanges and fuses the loops of a program, and remembers the steps."""

    def __init__(self, program: Program) -> None:
        self.model, self.notes, self.steps = program.model, list[Note](), list[Step]()
        self.names, self.frozen = dict(program.loops), program.frozen
        self.loops = Rearrangement(self.model)
        self.legality = self.loops.legality
        self.tree: tuple[Node, ...] = ()

    # interchange

    def interchange(self) -> None:
        """Put the loops of nests around one reduction into a better order."""
        for loops, leaf in list(_nests(self.loops.tree)):
            self._interchange(loops, self._order(loops, leaf))
        for loops in _around_sums(self.loops.tree):
            row = self._row(loops)
            if row is not None:
                self._interchange(loops, [*(x for x in loops[:-1] if x is not row), row, loops[-1]])

    def _interchange(self, loops: Sequence[Loop], order: Sequence[Loop]) -> None:
        """Put the loops of a perfect nest into another order, if there is one and that is legal."""
        if list(order) == list(loops):
            return
        made = in_order(order, loops[-1].body)
        if made is not None and self.loops.replace(loops[0], (made,)):
            names = [loop.var for loop in order]
            text = f"loops interchanged to ({', '.join(names)})"
            self.notes.append(Note(loops[0].node.line, text, "interchange"))
            self._step(len(self.steps), "interchange", *names)

    def _row(self, loops: list[Loop]) -> Loop | None:
        """Return the loop to put directly around the last one, None if the present one shares its loads.

        The last loop becomes the lanes of a register tile, and the one around it the rows.
        """
        lanes = loops[-1]
        if any(loop.var in self.frozen or loop.node.hint == "serial" for loop in loops):
            return None
        nodes = [place.node for place in statement_nodes(lanes.body)]
        stores = [node for node in nodes if isinstance(node, Store)]
        if not stores or any(stride(store, lanes.var) not in (UNIT, STRIDED) for store in stores):
            return None
        loads = loads_of(*nodes)
        written = {store.buffer for store in stores}
        others = [e for e in loads if e.buffer not in written]
        steps = {e: [stride(e, loop.var) for loop in loops] for e in others}
        # a load that strides along the lanes is packed, unless another loop would have it as neighbours
        across = [e for e, (*_, own) in steps.items() if own == UNIT]
        across += [e for e, row in steps.items() if row[-1] in (BACK, STRIDED) and UNIT not in row]

        def shares(loop: Loop) -> bool:
            own = frozenset({loop.var})
            return any(not any(depends(i, own) for i in e.index) for e in across)

        def is_free(number: int) -> bool:
            """Whether a loop can move inwards: no bound depends across it."""
            passed = frozenset(x.var for x in loops[number + 1 :])
            row, edges = loops[number], [e for x in loops[number + 1 :] for e in (x.node.lo, x.node.hi)]
            moved = any(depends(e, frozenset({row.var})) for e in edges)
            return not moved and not any(depends(e, passed) for e in (row.node.lo, row.node.hi))

        rows = [
            x
            for number, x in enumerate(loops[:-1])
            if shares(x) and is_free(number) and all(stride(s, x.var) != UNIFORM for s in stores)
        ]
        return rows[-1] if rows and loops[-2] not in rows else None

    def _order(self, loops: list[Loop], leaf: StatementNode) -> list[Loop]:
        """Return the best order of the loops around a sum; the present one if that stays."""
        store = leaf.node
        if not isinstance(store, Store) or not store.op or len(loops) < 2:
            return loops
        if any(loop.var in self.frozen or loop.node.hint == "serial" for loop in loops):
            return loops
        inside = {loop.var for loop in loops}
        sums = [x for x in loops if not any(depends(i, frozenset({x.var})) for i in store.index)]
        free = [x for x in loops if x not in sums]
        loads = loads_of(store.value)
        variables = inside | variables_of(*store.index)
        reused = all(_is_reused(load, variables) for load in loads)
        reused = reused and bool(sums) and bool(free) and len(loads) > 1

        # a contraction stores each sum once; any other nest loads and stores the element each time
        nodes: list[Load | Store] = [store, *loads] if reused else [store, store, *loads]

        def cost(loop: Loop) -> float:
            # index_set_splitting will take the clamps away, but at the borders
            accesses = [replace(a, index=tuple(map(affine.unclamped, a.index))) for a in nodes]
            return sum((COSTS[stride(node, loop.var)] for node in accesses), 0.0)

        if reused:  # the last two of the free loops become the rows and the lanes of a register tile
            *others, lanes = sorted(free, key=cost, reverse=True)
            of_lanes = [load for load in loads if stride(load, lanes.var) != UNIFORM]
            shares = [x for x in others if all(stride(load, x.var) == UNIFORM for load in of_lanes)]
            edges = {name for x in sums for name in variables_of(x.node.lo, x.node.hi)}
            rows = [x for x in shares if x.var not in edges][-1:]
            return [*(x for x in others if x not in rows), *rows, lanes, *sums]
        last = min(loops, key=lambda x: (cost(x), -loops.index(x)))
        return [*(x for x in loops if x is not last), last]

    # fusion

    def fuse(self) -> tuple[Node, ...]:
        """Return the tree with neighbouring loops fused, outermost levels first."""
        self.tree = self.loops.tree
        self._fuse_in(self.tree)
        return self.tree

    def _fuse_in(self, body: tuple[Node, ...]) -> None:
        """Fuse the neighbouring loops of a body, and then those inside."""
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

    def _fused(
        self, body: tuple[Node, ...], first: Loop, second: Loop, *, nest: bool = False
    ) -> tuple[Node, ...] | None:
        """Return a body with two loops fused; ``nest``: only together with all loops in them."""
        start, end = body.index(first), body.index(second)
        between = body[start + 1 : end]
        if any(not isinstance(node, StatementNode) for node in between) or not same_range(
            first.node, second.node
        ):
            return None
        if not _shares(first, second) or {first.var, second.var} & self.frozen:
            return None
        loop = _one_loop(first, second)
        changed = (*body[:start], *between, loop, *body[end + 1 :])
        whole = _with_body(self.tree, body, changed)
        where = paths_of(whole)
        if self.legality.broken(where) is not None or self._serialises(first, second, whole, loop):
            return None
        place = len(self.steps)  # in a schedule the outer loops are fused first
        has_loops = any(isinstance(n, Loop) for n in loop.body)
        if _is_contraction(first) or _is_contraction(second) or (nest and has_loops):
            deeper = self._into_one(loop, whole)
            if deeper is None:
                return None
            one_nest = (*body[:start], *between, Loop(loop.node, deeper), *body[end + 1 :])
            whole = _with_body(whole, changed, one_nest)
            changed = one_nest  # the next fusion finds this very body in the tree
        text = f"loop {second.var} fused with the one of line {first.node.line}"
        self.notes.append(Note(second.node.line, text, "fuse"))
        self._step(place, "fuse", first.var, second.var)
        self.names.update({name: first.var for name, var in self.names.items() if var == second.var})
        self.tree = whole
        return changed

    def _step(self, place: int, word: str, *loops: str) -> None:
        """Remember a change as a step of a schedule."""
        names = by_variable(self.names)
        self.steps.insert(place, Step(word, tuple(names[var] for var in loops)))

    def _into_one(self, loop: Loop, whole: tuple[Node, ...]) -> tuple[Node, ...] | None:
        """Return the loop's body with its loops fused into one, or None when that is not possible."""
        loops = [n for n in loop.body if isinstance(n, Loop)]
        if len(loops) < 2:
            return loop.body if len(loops) == 1 else None
        saved, self.tree = self.tree, whole
        changed = self._fused(loop.body, *loops, nest=True) if len(loops) == 2 else None
        self.tree = saved
        return changed

    def _serialises(self, first: Loop, second: Loop, whole: Sequence[Node], loop: Loop) -> bool:
        """Whether the fused loop would carry a conflict between its two halves, and so run in order."""
        where = paths_of(whole)
        of_first = {p.leaf.id for p in statement_nodes((first,))}
        of_second = {p.leaf.id for p in statement_nodes((second,))}
        for conflict in self.legality.conflicts:
            a, b = conflict.a.id, conflict.b.id
            if not ((a in of_first and b in of_second) or (a in of_second and b in of_first)):
                continue
            if self._carried_by(conflict, where, loop.var):
                return True
        return False

    def _carried_by(self, conflict: Conflict, where: Paths, var: str) -> bool:
        """Whether a loop carries a conflict."""
        loops = common(where[conflict.a.id], where[conflict.b.id])
        level = next((k for k, (_, _, name) in enumerate(loops) if name == var), None)
        return level is not None and not carried(self.model, conflict, where, level).is_empty()


Nest = tuple[list[Loop], StatementNode]
"""The loops of a perfect nest, outermost first, and the leaf in them."""


def _nests(tree: Sequence[Node]) -> Iterator[Nest]:
    """Yield the perfect nests around a single leaf."""
    for node in tree:
        match node:
            case Loop():
                nest = _nest(node)
                yield from _nests(node.body) if nest is None else (nest,)
            case Branch():
                yield from _nests((*node.body, *node.orelse))


def _around_sums(tree: Sequence[Node]) -> list[list[Loop]]:
    """Return the loops of each perfect nest, three or more, around a body with loops of its own."""
    nests: list[list[Loop]] = []
    for node in tree:
        if isinstance(node, Branch):
            nests += _around_sums((*node.body, *node.orelse))
        if not isinstance(node, Loop):
            continue
        loops = perfect_nest(node)
        body = loops[-1].body
        if len(loops) > 2 and any(isinstance(n, Loop) for n in body):
            nests.append(loops)
        else:
            nests += _around_sums(body)
    return nests


def _nest(loop: Loop) -> Nest | None:
    """Return the nest of a loop if it is perfect, around one leaf, perhaps under conditions; or None."""
    loops = perfect_nest(loop)
    last = loops[-1].body
    while len(last) == 1 and isinstance(last[0], Branch) and not (last[0].orelse or loads_of(last[0].node)):
        last = last[0].body
    return (loops, last[0]) if len(last) == 1 and isinstance(last[0], StatementNode) else None


def in_order(order: Sequence[Loop], body: tuple[Node, ...]) -> Loop | None:
    """Return loops around a body, outermost first, None if their bounds cannot follow that order."""
    heads = [loop.node for loop in order]
    inner = [frozenset(head.var for head in heads[number:]) for number in range(len(heads))]
    if any(depends(e, names) for head, names in zip(heads, inner, strict=True) for e in (head.lo, head.hi)):
        found = reordered(heads)
        if found is None:
            return None
        heads = found.loops
    return in_loops(heads, body)


def _is_reused(load: Load, loops: set[str]) -> bool:
    """Whether a load's index leaves out a variable, so that the loop reads its elements again."""
    used = variables_of(*load.index)
    return bool(loops - used)


def joined(tree: tuple[Node, ...], first: Loop, second: Loop) -> tuple[Node, ...] | None:
    """Return the tree with two loops fused, or None unless only statements are between them."""
    for body in _bodies(tree):
        if first in body and second in body:
            start, end = sorted((body.index(first), body.index(second)))
            between = body[start + 1 : end]
            if body.index(first) > body.index(second) or any(
                not isinstance(node, StatementNode) for node in between
            ):
                return None
            changed = (*body[:start], *between, _one_loop(first, second), *body[end + 1 :])
            return _with_body(tree, body, changed)
    return None


def _one_loop(first: Loop, second: Loop) -> Loop:
    """Return two loops as one, with the variable of the first."""
    other = renamed(second, second.var, Var(first.var, INT)) if second.var != first.var else second
    assert isinstance(other, Loop)
    return Loop(first.node, (*first.body, *other.body))


def _bodies(tree: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    """Yield a tree and all bodies in it."""
    yield tree
    for node in tree:
        if isinstance(node, Loop):
            yield from _bodies(node.body)
        elif isinstance(node, Branch):
            yield from _bodies(node.body)
            yield from _bodies(node.orelse)


def _with_body(tree: tuple[Node, ...], old: tuple[Node, ...], new: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the tree with one body replaced; subtrees without it stay the same objects."""
    if tree is old:
        return new
    result = tuple(inside(node, lambda body: _with_body(body, old, new)) for node in tree)
    return result if any(a is not b for a, b in zip(result, tree, strict=True)) else tree


def same_range(a: For, b: For) -> bool:
    """Whether two loops have the same iterations, and both or none of them must run in order.

    A loop that flags may end has iterations of its own: in one loop each would lose its end.
    """
    if stop_flags(a) or stop_flags(b) or is_unbounded(a) or is_unbounded(b):
        return False
    if "serial" in (a.hint, b.hint) and a.hint != b.hint:
        return False
    return _same(a.lo, b.lo) and _same(a.hi, b.hi)


def _same(a: Expr, b: Expr) -> bool:
    one, other = affine.linear(a), affine.linear(b)
    return a == b or (one is not None and one == other)


def _shares(a: Loop, b: Loop) -> bool:
    """Whether two loops access the same tensor."""
    return bool(_touched(a) & _touched(b))


def _touched(loop: Loop) -> set[str]:
    """Return the tensors that a loop accesses."""
    return {access.target for place in statement_nodes((loop,)) for access in place.leaf.accesses}


def _is_contraction(loop: Loop) -> bool:
    """Whether a sum in a loop has the loops of a contraction: to be tiled, it must stay alone in its nest."""
    paths = paths_of((loop,))  # a step for each loop, and one for the statement
    sums = (place for place in statement_nodes((loop,)) if place.node.op)
    return any(len(paths[place.leaf.id]) > CONTRACTION_LOOPS for place in sums)
