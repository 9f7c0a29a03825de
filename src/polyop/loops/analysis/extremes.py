"""Find maxima and minima over loops, and number the elements that they compare.

    top = x[i, 0]                     first
    for j in range(1, n):             loops
        top = max(top, x[i, j])       updates: also several, or: if x[i, j] > top: top = x[i, j]

The number of an element tells its place: ``p * 4 + q`` is that of ``x[2 * i + p, 2 * j + q]`` in a window of
3 by 3.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...core.locks import cached_property
from ..ir.grammar import INT, Const, Expr, For, If, Load, Stmt, Store, Var, perfect
from ..ir.rewriter import substitute
from ..ir.uses import loads_of, stored_by, tensors_of, used_by
from . import affine
from .searches import tests_of
from .strides import depends


@dataclass(frozen=True)
class Extreme:
    """A maximum or minimum: the store of its first value, and the updates inside ``loops``.

    The updates compare one element each. They differ by constants in their indices. With a ``guard``, a
    condition on the loops, they do so where it holds, as in a window over the border.
    """

    first: Store
    loops: tuple[For, ...]
    updates: tuple[Store | If, ...]
    elements: tuple[Load, ...]
    guard: Expr | None = None

    def in_loops(self, loops: Sequence[For], body: Sequence[Stmt]) -> list[Stmt]:
        """Return statements in loops that stand for these, where the guard holds."""
        if self.guard is not None:
            names: dict[str, Expr] = {
                own.var: Var(other.var, INT) for own, other in zip(self.loops, loops, strict=True)
            }
            body = [If(substitute(self.guard, names), tuple(body), (), self.first.line)]
        for loop in reversed(loops):
            body = [replace(loop, body=tuple(body))]
        return list(body)

    @cached_property
    def digits(self) -> tuple[Digit, ...]:
        """What the number of an element consists of, the most significant first."""
        found = []
        for loop in self.loops:
            value = Var(loop.var, INT) - loop.lo
            found.append(Digit(_radix(loop.hi - loop.lo), (value,) * len(self.updates)))
        for constants in self._offsets.values():
            values = tuple(Const(c - min(constants), INT) for c in constants)
            found.append(Digit(_radix(Const(max(constants) - min(constants) + 1, INT)), values))
        return tuple(found)

    @cached_property
    def count(self) -> int | None:
        """How many numbers there are, or None if that depends on sizes."""
        total = 1
        for digit in self.digits:
            if not isinstance(digit.radix, Const):
                return None
            total *= int(digit.radix.value)
        return total

    @cached_property
    def _offsets(self) -> dict[int, tuple[int, ...]]:
        """By axis in which the elements differ: the constants."""
        found = {}
        for axis, indices in enumerate(zip(*(e.index for e in self.elements), strict=True)):
            if len(set(indices)) > 1:
                forms = [affine.linear(index) or {} for index in indices]
                found[axis] = tuple(form.get("", 0) for form in forms)
        return found

    def number(self, update: int) -> Expr:
        """Return the number of the element that an update compares."""
        first, *others = self.digits
        total = first.values[update]
        for digit in others:
            total = total * digit.radix + digit.values[update]
        return total

    def element(self, number: Expr) -> Load:
        """Return the element with a number."""
        values: list[Expr] = []
        for place, digit in reversed(list(enumerate(self.digits))):
            values.insert(0, number % digit.radix if place else number)
            number = number // digit.radix
        index = list(self.elements[0].index)
        for (axis, constants), value in zip(self._offsets.items(), values[len(self.loops) :], strict=True):
            least = self.elements[constants.index(min(constants))].index[axis]
            index[axis] = least + value
        places = {loop.var: loop.lo + value for loop, value in zip(self.loops, values, strict=False)}
        return replace(self.elements[0], index=tuple(substitute(i, places) for i in index))


@dataclass(frozen=True)
class Digit:
    """A digit of the number: its radix, and its value in each update."""

    radix: Expr
    values: tuple[Expr, ...]


def _radix(count: Expr) -> Expr:
    """Return a radix for a number of values: for a constant a power of two, by which division is a shift."""
    match count:
        case Const(value=int(value)):
            return Const(1 << max(0, value - 1).bit_length(), INT)
    return count


def extreme_at(before: Sequence[Stmt], rest: Sequence[Stmt]) -> Extreme | None:
    """Return the maximum whose updates ``rest`` begins with; ``before`` are the statements before them."""
    loops = tuple(perfect(rest[0])) if isinstance(rest[0], For) else ()
    run = loops[-1].body if loops else rest
    guard = None
    match run:
        case (If(condition=test, body=body, orelse=()) as only,) if loops and cell(only) is None:
            guard, run = test, body
    if not run or (guard is not None and loads_of(guard)):
        return None
    stores = [cell(update) for update in run]
    store = stores[0]
    if store is None or (isinstance(run[0], If) and (not loops or len(run) > 1)):
        return None
    target = (store.buffer, store.index, store.op)
    same = list(itertools.takewhile(lambda s: s and (s.buffer, s.index, s.op) == target, stores))
    updates = run[: len(same)]
    loads = tuple(s.value for s in same if s and isinstance(s.value, Load))
    first = _first(before, store, updates)
    if first is None or len(loads) < len(updates) or (loops and len(updates) < len(run)):
        return None
    read = tensors_of(*loads)
    if not _is_box(loops, store.index) or not _differ_by_constants(loads) or read & stored_by(updates):
        return None
    return Extreme(first, loops, tuple(s for s in updates if isinstance(s, (Store, If))), loads, guard)


def cell(update: Stmt) -> Store | None:
    """Return the store that updates a maximum, or None: ``m = max(m, x)`` or ``if x > m: m = x``."""
    if isinstance(update, Store) and update.op in ("max", "min"):
        return update
    for test in tests_of(update):
        for store in test.remember:
            if isinstance(store, Store) and test.keeps(store):
                others = [s for s in test.remember if s is not store]
                return None if store.buffer in used_by(others) else store
    return None


def _first(before: Sequence[Stmt], store: Store, updates: Sequence[Stmt]) -> Store | None:
    """Return the store that sets the updated element before its updates, if its value stays what it is."""
    changed = stored_by(updates)
    for node in reversed(before):
        if isinstance(node, Store) and (node.buffer, node.index, node.op) == (store.buffer, store.index, ""):
            read = tensors_of(node.value)
            return None if read & changed else node
        if store.buffer in used_by((node,)):
            return None
        changed |= stored_by((node,))
    return None


def _is_box(loops: Sequence[For], index: Sequence[Expr]) -> bool:
    """Whether no bound depends on data or on another of the loops, nor the updated element on any of them."""
    inside = frozenset(loop.var for loop in loops)
    exprs = [*(e for loop in loops for e in (loop.lo, loop.hi)), *index]
    return not loads_of(*exprs) and not any(depends(e, inside) for e in exprs)


def _differ_by_constants(loads: Sequence[Load]) -> bool:
    """Whether loads are of one buffer, and differ in constants of their indices at most."""
    if len({e.buffer for e in loads}) > 1:
        return False
    for indices in zip(*(e.index for e in loads), strict=True):
        forms = [affine.linear(index) for index in indices]
        rests = {None if f is None else tuple(sorted((n, c) for n, c in f.items() if n)) for f in forms}
        if len(set(indices)) > 1 and (None in rests or len(rests) > 1):
            return False
    return True
