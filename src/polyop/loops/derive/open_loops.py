"""Tapes of loops whose number of iterations no size tells: a ``while``, or ``range(ptr[r], ptr[r + 1])``.

    while abs(x * x - a) > 1e-9:         while ...:                        for _ in range(count - start):
        x = 0.5 * (x + a / x)                kept[count] = x                   count -= 1
                                             x = 0.5 * (x + a / x)             ... kept[count] ...
                                             count += 1

A counter has one value for each iteration, over all that a scope runs of the loop. It indexes what is kept.
Going backwards it counts down, so the iterations around it go backwards in order, one after the other. What
it counts when a loop starts is kept too. So a ``while`` knows how often it ran, and an inner scope that runs
the loop forwards once more reads from there on.

The memory is reserved, not used: a system gives a page when it is written first. ``CAPACITY`` bounds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..analysis.ranges import length, span
from ..ir.grammar import INT, Assign, Buffer, Const, Expr, For, If, Load, Stmt, Store, Type, Var
from ..ir.operate import operate
from ..ir.stops import is_unbounded, stop_flags
from .derivation import SCALAR_INDEX, SCALAR_SHAPE
from .names import Names
from .recorded_values import Scope

CAPACITY = 1 << 25
"""The elements of such a tape. One more is an error of the call, as any index that is outside."""
ZERO, ONE = Const(0, INT), Const(1, INT)
IndexAndShape = tuple[tuple[Expr, ...], tuple[Expr, ...]]
"""The index of an element of a tape, and the shape of the tape."""
Ends = tuple[Expr, Expr]
"""The bounds of a loop."""


@dataclass(frozen=True)
class _Counter:
    """What counts the iterations of a loop in a scope.

    ``place`` is the number of the iteration, over all runs of the loop. ``start`` is that of the first
    iteration of each run, and ``trips`` the number of its iterations.
    """

    place: Load
    start: Load
    trips: Load


class OpenLoops:
    """The counters of one derived kernel; theirs are added to its ``buffers``."""

    def __init__(self, names: Names, buffers: dict[str, Buffer]) -> None:
        self.names, self.buffers = names, buffers
        self.ordered: set[str] = set()
        """The loops whose iterations a counter tells apart: they go backwards one after the other."""
        self._counters: dict[tuple[Scope, str], _Counter] = {}
        self._forwards: dict[tuple[Scope, str], dict[_Counter, Load]] = {}
        """By inner scope and loop, for each counter the place of the iteration that runs forwards again."""

    def place(self, loops: Sequence[For], scope: Scope) -> IndexAndShape:
        """Return the index of what an iteration of loops keeps, and the shape of the memory for a scope.

        ``loops`` are all around it, the scope's first.
        """
        index: list[Expr] = []
        shape: list[Expr] = []
        for position, loop in enumerate(loops[len(scope) :], len(scope)):
            ends = span(loop, loops)
            if ends is None:
                index, shape = [self._counter(loops[: position + 1], scope)], []
                continue
            index.append(Var(loop.var, INT) - ends[0])
            shape.append(length(*ends))
        if len(shape) < len(index):
            each: Expr = ONE
            for size in shape:
                each = each * size
            shape.insert(0, Const(CAPACITY, INT) // operate("max", each, ONE))
        return tuple(index) or SCALAR_INDEX, tuple(shape) or SCALAR_SHAPE

    def start(self, scope: Scope) -> list[Stmt]:
        """Return the statements with which a scope begins: its counters are 0."""
        return [_store(own.place, ZERO) for (within, _), own in self._counters.items() if within == scope]

    def recomputed(
        self,
        head: For,
        ends: Ends,
        body: list[Stmt],
        scope: Scope,
        loop: Callable[[For, Ends, list[Stmt]], For],
    ) -> list[Stmt]:
        """Return a loop that a scope recomputes, made by ``loop``, with what counts its iterations.

        A ``while`` whose flag is not computed again runs as often as it did.
        """
        before: list[Stmt] = []
        counting: list[Stmt] = []
        after: list[Stmt] = []
        known = self._forwards.get((scope, head.var), {})
        for counter, here in known.items():
            before.append(_store(here, self._forwards_at(counter.start, scope)))
            counting.append(_store(here, ONE, "+"))
        own = self._counters.get((scope, head.var))
        if own is not None:
            before.append(_store(own.start, own.place))
            counting.append(_store(own.place, ONE, "+"))
        if not is_unbounded(head):
            return [*before, loop(head, ends, [*body, *counting])]
        if own is not None:
            after = [_store(own.trips, own.place - own.start)]
        *first, guard = body
        assert isinstance(guard, If), "all of a while is under its flag"
        body = [replace(guard, body=(*first, *guard.body, *counting))]
        if known and not stop_flags(replace(head, body=tuple(body))):  # its flag is read from a tape, too
            ends = (ZERO, self._forwards_at(next(iter(known)).trips, scope))
        return [*before, loop(head, ends, body), *after]

    def _forwards_at(self, load: Load, scope: Scope) -> Load:
        return replace(load, index=self.forwards(load.index, scope))

    def forwards(self, index: tuple[Expr, ...], scope: Scope) -> tuple[Expr, ...]:
        """Return an index as it is where a scope runs forwards again what an outer scope has kept.

        A counter of a loop around the scope is that of its iteration. Of a loop inside, it counts from the
        loop's start on.
        """
        places: list[Expr] = []
        for one in index:
            found = next(((var, own) for (_, var), own in self._counters.items() if own.place == one), None)
            if found is None or found[0] in scope:
                places.append(one)
                continue
            var, counter = found
            known = self._forwards.setdefault((scope, var), {})
            if counter not in known:
                known[counter] = self._memory(f"{var}_at", SCALAR_INDEX, SCALAR_SHAPE, counter.place.line)
            places.append(known[counter])
        return tuple(places)

    def backwards(self, head: For, body: list[Stmt]) -> list[Stmt]:
        """Return the body of a loop that goes backwards, with its counters counting down first."""
        counters = [own.place for (_, var), own in self._counters.items() if var == head.var]
        return [*(_store(counter, Const(-1, INT), "+") for counter in counters), *body]

    def trips(self, head: For) -> Assign:
        """Return a scalar with the number of iterations of a ``while`` that is to go backwards."""
        kept = [own.trips for (_, var), own in self._counters.items() if var == head.var]
        assert kept, "the flag of a while changes in it, so it is kept"
        return Assign(self.names.new("trips"), kept[0], "", head.line)

    def _counter(self, loops: Sequence[For], scope: Scope) -> Load:
        """Return the counter of the last loop, in a scope."""
        loop = loops[-1]
        key = (scope, loop.var)
        if key not in self._counters:
            self.ordered |= {x.var for x in loops[len(scope) :]}
            before = self.place(loops[:-1], scope)
            self._counters[key] = _Counter(
                self._memory(f"{loop.var}_count", SCALAR_INDEX, SCALAR_SHAPE, loop.line),
                self._memory(f"{loop.var}_start", *before, loop.line),
                self._memory(f"{loop.var}_trips", *before, loop.line),
            )
        return self._counters[key].place

    def _memory(self, name: str, index: tuple[Expr, ...], shape: tuple[Expr, ...], line: int) -> Load:
        """Return an element of a new buffer for counters."""
        name = self.names.new(name)
        self.buffers[name] = Buffer(name, INT.dtype, shape, "local", line, counted=is_counted(index))
        return Load(name, index, Type(INT.dtype), line)


def is_counted(index: tuple[Expr, ...]) -> bool:
    """Whether an index of :meth:`OpenLoops.place` begins with a counter."""
    return isinstance(index[0], Load)


def _store(at: Load, value: Expr, op: str = "") -> Store:
    return Store(at.buffer, at.index, value, op, at.line)
