"""The mapping of statements to the GPU: launches of threads, rows, tiles or sums.

The rules, from the outermost statements inwards:

Threads   a nest of parallel loops: one thread for each iteration, the fastest along memory
Rows      where lanes were planned inside: a group of threads for each iteration, who share its loops
Tiles     what was planned as a register tile: blocks of rows and lanes through shared memory
Sums      a loop that reduces: partial results, then a second launch that adds them up in order
Each      a loop in order around these: a loop of launches on the host
Branch    a condition on sizes around these: decided on the host
Guard     a condition on scalars around these: tested by each launch
Alone     the rest: one block, in the author's order
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...analysis.bounds import key
from ...analysis.dependence import Kind
from ...analysis.strides import depends
from ...ir.grammar import Assign, Expr, For, If, Kernel, Load, OpenEnd, Stmt, Store, Var, statements, walk
from ...ir.note import Note
from ...ir.plan import Plan
from ...ir.uses import assigned_by, loads_of, tensors_of, variables_of
from .contractions import fits, stageable
from .pieces import Alone, Branch, Each, Guard, Piece, Rows, Sums, Threads, Tiles

MAX_DEPTH = 2
"""Deepest nest of loops on the host: a deeper one would launch too often."""


class Mapper:
    """Chooses the pieces of one kernel."""

    def __init__(
        self, kernel: Kernel, plan: Plan, kinds: Mapping[str, Kind], owners: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.kernel, self.plan, self.kinds = kernel, plan, kinds
        self.owning = frozenset(v for loops in owners.values() for v in loops)
        self.owned = frozenset(owners)
        self.notes: list[Note] = []
        self.dynamic: frozenset[str] = frozenset()
        """Buffers with an index that is checked at each access."""
        self.guarded: Collection[tuple[str, Any]] = frozenset()
        """The keys of accesses that are inside only because of a condition around them."""
        self._uses = _uses(kernel.body)

    def pieces(
        self, body: Sequence[Stmt], known: frozenset[str] = frozenset(), depth: int = 0
    ) -> tuple[Piece, ...]:
        """Return the pieces of a body; ``known`` are the variables of loops on the host around it."""
        result: list[Piece] = []
        for node in body:
            piece = self._piece(node, known, depth)
            last = result[-1] if result else None
            if isinstance(piece, Alone) and isinstance(last, Alone):
                result[-1] = Alone((*last.body, *piece.body))
            else:
                result.append(piece)
        return tuple(result)

    def kind(self, loop: For) -> str:
        """Return the kind of a loop; a loop without one is sequential."""
        known = self.kinds.get(loop.var)
        return "sequential" if loop.hint == "serial" or known is None else known.name

    def divisible(self, loop: For) -> bool:
        """Whether a group of threads can share the iterations of a loop."""
        if loop.var in self.owning or self.leaks(loop):
            return False
        over = self.kinds[loop.var].over if loop.var in self.kinds else ()
        kind = self.kind(loop)
        return kind == "parallel" or (
            kind == "reduction" and not any(n in self.kernel.buffers for n, _ in over)
        )

    def leaks(self, loop: For) -> bool:
        """Whether iterations assign a scalar of the code around the loop, other than by a reduction.

        A parallel loop can do so only if a single iteration makes the assignment.
        """
        over = {name for name, _ in self.kinds[loop.var].over} if loop.var in self.kinds else set()
        inside = _uses((loop,))
        assigned = assigned_by((loop,)) - over
        return any(self._uses[name] > inside[name] for name in assigned)

    def shares(self, body: Sequence[Stmt]) -> bool:
        """Whether a body has a loop that a group of threads can share."""
        return any(isinstance(s, For) and self.divisible(s) for s in statements(tuple(body)))

    def evaluable(self, expr: Expr, known: frozenset[str]) -> bool:
        """Whether the host can compute an expression."""
        names = known | self.kernel.attributes.keys()
        return all(
            not isinstance(e, (Load, OpenEnd)) and (not isinstance(e, Var) or e.name in names)
            for e in walk(expr)
        )

    def _piece(self, node: Stmt, known: frozenset[str], depth: int) -> Piece:
        changing = variables_of(node) & assigned_by((node,))
        if isinstance(node, If) and not loads_of(node) and not changing:
            form = Branch if self.evaluable(node.condition, known) else Guard
            inner = form(node, self.pieces(node.body, known, depth), self.pieces(node.orelse, known, depth))
            return inner if _launches((*inner.pieces, *inner.orelse)) else Alone((node,))
        if not isinstance(node, For) or not self._bounded(node, known):
            return Alone((node,))
        kind = self.kind(node)
        if self.leaks(node):
            return Alone((node,))
        if kind == "parallel":
            return self._parallel(node, known)
        if kind == "reduction":
            piece = self._tiles_in_order(node, known, depth) or self._reduction(node, known)
            if piece is not None:
                return piece
        if depth < MAX_DEPTH:
            pieces = self.pieces(node.body, known | {node.var}, depth + 1)
            if _launches(pieces) and (depth == 0 or any(_deep(p) for p in pieces)):
                self._note(node, "a launch for each iteration")
                return Each(node, pieces)
        self._note(node, "one block, in order")
        return Alone((node,))

    def _bounded(self, loop: For, known: frozenset[str]) -> bool:
        return self.evaluable(loop.lo, known) and self.evaluable(loop.hi, known)

    # parallel loops

    def _chain(self, node: For, known: frozenset[str], accept: Callable[[For], bool]) -> tuple[For, ...]:
        """Return the loops of a perfect nest, up to the first that is not accepted."""
        loops: tuple[For, ...] = (node,)
        while True:
            last = loops[-1]
            inner = last.body[0] if len(last.body) == 1 else None
            names = frozenset(f.var for f in loops)
            bounded = depends(last.lo, names) or depends(last.hi, names)  # only the last may be triangular
            if (
                bounded
                or not isinstance(inner, For)
                or not accept(inner)
                or not self._bounded(inner, known | names)
            ):
                return loops
            loops = (*loops, inner)

    def _parallel(self, node: For, known: frozenset[str]) -> Piece:
        loops = self._chain(node, known, lambda f: self.kind(f) == "parallel")
        inside = {s.var for s in statements((node,)) if isinstance(s, For)}
        if inside & self.owning:
            last = max((n for n, f in enumerate(loops) if f.var in self.owning), default=0)
            return self._rows(loops[: last + 1])
        tile = self._tile(loops)
        if tile is not None:
            self._note(tile.row, f"tiles of shared memory with loop {tile.lane.var}")
            return tile
        body = loops[-1].body
        lanes = [f.var for f in loops if f.var in self.plan.vector]
        if not lanes and any(isinstance(s, For) and s.var in self.plan.vector for s in statements(body)):
            return self._rows(loops)
        self._note(node, "a thread for each iteration")
        return Threads(_fastest(loops, lanes), body)

    def _rows(self, loops: tuple[For, ...]) -> Rows:
        self._note(loops[0], "a group of threads for each iteration")
        names = frozenset(f.var for f in loops)
        if len(loops) > 1 and (depends(loops[-1].lo, names) or depends(loops[-1].hi, names)):
            loops = loops[:-1]  # rows are counted: their ranges do not depend on one another
        return Rows(loops, loops[-1].body)

    def _tile(self, loops: tuple[For, ...]) -> Tiles | None:
        if len(loops) < 2:
            return None
        around = frozenset(f.var for f in loops[:-2])
        if any(depends(e, around) for f in loops[-2:] for e in (f.lo, f.hi)):
            return None  # the host counts the tiles
        row, lane = _fastest(loops[-2:], [f.var for f in loops[-2:] if f.var in self.plan.vector])
        lane = replace(lane, body=loops[-1].body)
        if not stageable(lane, row.var, self.dynamic) or not fits(lane, row.var):
            return None
        loads = loads_of(*statements(lane.body))
        return Tiles(loops[:-2], row, lane, frozenset(e for e in loads if key(e) in self.guarded))

    # reductions

    def _tiles_in_order(self, node: For, known: frozenset[str], depth: int) -> Piece | None:
        """Return a launch of tiles for each iteration: partial results would be a copy of all of them."""
        told = len(self.notes)
        if depth < MAX_DEPTH and all(name in self.kernel.buffers for name, _ in self.kinds[node.var].over):
            pieces = self.pieces(node.body, known | {node.var}, depth + 1)
            if any(isinstance(piece, Tiles) for piece in pieces):
                self._note(node, "a launch for each iteration")
                return Each(node, pieces)
        del self.notes[told:]
        return None

    def _reduction(self, node: For, known: frozenset[str]) -> Piece | None:
        over = dict(self.kinds[node.var].over)
        inside = [s for s in statements((node,)) if isinstance(s, For)]
        owning = any(s.var in self.owning for s in inside)
        if not owning and all(self._is_atomic(name, op, node) for name, op in over.items()):
            loops = self._chain(node, known, lambda f: self._reduces_to(f, over))
            self._note(node, "a thread for each iteration, which add atomically")
            return Threads(
                _fastest(loops, [f.var for f in loops if f.var in self.plan.vector]),
                loops[-1].body,
                frozenset(over),
            )
        scalars = not any(name in self.kernel.buffers for name in over)
        if not scalars and node.var not in self.plan.private:
            return None
        flat = scalars and not owning
        loops = self._chain(node, known, lambda f: self._reduces_to(f, over)) if flat else (node,)
        names = frozenset(f.var for f in loops)
        if len(loops) > 1 and (depends(loops[-1].lo, names) or depends(loops[-1].hi, names)):
            loops = loops[:-1]
        shared = not flat or any(
            isinstance(s, For) and s.var in self.plan.vector for s in statements(loops[-1].body)
        )
        self._note(node, f"partial results of {', '.join(sorted(over))}, added up in a second launch")
        return Sums(loops, loops[-1].body, tuple(over.items()), shared)

    def _reduces_to(self, loop: For, over: Mapping[str, str]) -> bool:
        """Whether a loop is parallel, or reduces only to these targets."""
        kind = self.kind(loop)
        return kind == "parallel" or (
            kind == "reduction" and set(self.kinds[loop.var].over) <= set(over.items())
        )

    def _is_atomic(self, name: str, op: str, loop: For) -> bool:
        """Whether a reduction into a tensor may be done by atomic operations."""
        buffer = self.kernel.buffers.get(name)
        if buffer is None or buffer.dtype not in ("int32", "int64", "uint32", "uint64", "float32", "float64"):
            return False
        stores = [s for s in statements(loop.body) if isinstance(s, Store) and s.buffer == name]
        if any(s.op != op for s in stores) or name in tensors_of(*statements((loop,))):
            return False
        return not buffer.dtype.startswith("float") or op in ("max", "min") or loop.hint == "reduce"

    def _note(self, loop: For, text: str) -> None:
        self.notes.append(Note(loop.line, f"loop {loop.var}: on a GPU {text}", "plan"))


def _launches(pieces: Sequence[Piece]) -> bool:
    return any(
        _launches(p.pieces)
        if isinstance(p, Each)
        else _launches((*p.pieces, *p.orelse))
        if isinstance(p, (Branch, Guard))
        else not isinstance(p, Alone)
        for p in pieces
    )


def _deep(piece: Piece) -> bool:
    """Whether a piece is more than one loop of simple statements."""
    match piece:
        case Threads(loops=loops, body=body) | Rows(loops=loops, body=body) | Sums(loops=loops, body=body):
            return len(loops) > 1 or any(isinstance(s, For) for s in statements(body))
        case Tiles():
            return True
    return False


def _fastest(loops: tuple[For, ...], lanes: Sequence[str]) -> tuple[For, ...]:
    """Return the loops with the contiguous one last, if their ranges allow it."""
    names = frozenset(f.var for f in loops)
    if not lanes or any(depends(e, names) for f in loops for e in (f.lo, f.hi)):
        return loops
    return tuple(sorted(loops, key=lambda f: f.var == lanes[-1]))


def _uses(body: Sequence[Stmt]) -> Counter[str]:
    """Return how often each scalar is assigned or read."""
    counts: Counter[str] = Counter()
    for node in statements(tuple(body)):
        counts.update(e.name for e in walk(node) if isinstance(e, Var))
        if isinstance(node, Assign):
            counts[node.name] += 1
    return counts
