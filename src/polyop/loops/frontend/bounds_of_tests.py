"""Compute in which iteration a test of counters ends its loop.

    k = a                           the difference n - k falls by c in each iteration,
    while k < n: ...; k += c        so the test fails first in iteration ceil((n - a) / c)

That is right only if no number wraps around on the way, which types of numbers and sizes must prove.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ..ir.grammar import INT, Const, Expr, If, Op, Var, unconditional
from ..ir.intervals import Interval, interval, interval_of_type, is_within, unwrapped
from ..ir.operate import operate
from ..ir.types import kind
from ..ir.uses import loads_of
from .inductions import Iteration, Test

FAR, NEAR, MAX_STEP = 2**62, 2**60, 2**10
"""A bound beyond FAR becomes FAR: a loop from within NEAR, in steps up to MAX_STEP, never gets there."""
LEAST, MOST = interval_of_type(INT)
ZERO, ONE = Const(0, INT), Const(1, INT)
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
New = Callable[[str, Expr], Expr]
"""Keeps an expression in a new scalar before the loop."""


@dataclass(frozen=True)
class Start:
    """The value of a counter before its loop, and the numbers that it may be."""

    value: Expr
    within: Interval


@dataclass(frozen=True)
class Bound:
    """The iterations of a loop, which run from ``lo`` to below ``end``, up to those of other exits.

    They are the iterations before the one in which ``test`` fails, none if ``end`` is below ``lo``;
    ``is_known`` says that it is not. ``counter`` has the value of the loop's variable; "" if none does.
    ``atoms`` of the test hold in these iterations, and not all of them in the next.
    """

    test: Test
    atoms: tuple[Op, ...]
    counter: str
    lo: Expr
    end: Expr
    is_known: bool


def bounds(
    found: Iteration, starts: Mapping[str, Start], known: Mapping[str, Interval], new: New
) -> Iterator[tuple[Bound, bool]]:
    """Yield the bounds of a loop, the best one first, and whether the test can be left out."""
    tests = sorted(found.tests, key=lambda t: (not (t.is_first and t.is_bare), not (t.is_last and t.is_bare)))
    for test in tests:
        for whole in (True, False):
            if whole and not (test.is_bare and (test.is_first or test.is_last)):
                continue
            bound = _Tested(found, starts, known, test, whole and test.is_first).bound(new)
            if bound is not None:
                yield bound, whole


def int64(expr: Expr) -> Expr:
    """Return an integer as a Python int."""
    if isinstance(expr, Const):
        return Const(int(expr.value), INT)
    return expr if expr.type == INT else Op("cast", (expr,), INT)


def step_of(step: Expr) -> Expr:
    """Return the step of a counter as a Python int; it may differ by a multiple of what its type wraps at."""
    match step:
        case Op(name="neg", args=(Const(value=value),)):
            return Const(-int(value), INT)
    return int64(step)


@dataclass(frozen=True)
class _Line:
    """A side of a comparison: a sum of counters with factors, and the rest, which is the same always."""

    factors: Mapping[str, int]
    rest: Expr


@dataclass(frozen=True)
class _Atom:
    """A comparison: how many iterations go before it fails, also as an end of the counter's values."""

    count: Expr
    least: int
    counter: str = ""
    end: Expr = ZERO


@dataclass(frozen=True)
class _Tested:
    """A test of a loop. ``is_short``: the loop has no iteration in which the test fails."""

    found: Iteration
    starts: Mapping[str, Start]
    known: Mapping[str, Interval]
    test: Test
    is_short: bool

    def bound(self, new: New) -> Bound | None:
        """Return the bound that the comparisons of the test tell, or None."""
        condition = self.test.stmt.condition if isinstance(self.test.stmt, If) else self.test.stmt.value
        always = set(unconditional(condition)) if self.test.is_first else set()
        alone = [self.atom(op, name, op in always, _not_kept, True) for op, name in self.test.atoms]
        # of several counters the distances are compared, and those may not wrap around
        direct = len({atom.counter for atom in alone if atom is not None}) == 1
        rows = [(op, self.atom(op, name, op in always, new, direct)) for op, name in self.test.atoms]
        pairs = [(op, atom) for op, atom in rows if atom is not None]
        if not pairs:
            return None
        atoms = [atom for _, atom in pairs]
        least = min(atom.least for atom in atoms)
        (counter,) = {atom.counter for atom in atoms}
        if counter and not self.is_short and self.starts[counter].within[1] == MOST:
            return None  # the end is one more
        if counter:
            lo, end = int64(self.starts[counter].value), _least([atom.end for atom in atoms])
        else:
            lo, end = ZERO, _least([atom.count for atom in atoms])
        return Bound(self.test, tuple(op for op, _ in pairs), counter, lo, end, least >= 0)

    def atom(self, op: Op, name: str, always: bool, new: New, direct: bool) -> _Atom | None:
        """Return how often a comparison holds, if that is certain. ``always``: it is computed in any case.

        ``direct``: its counter may be the loop's variable.
        """
        left, right = (self.line(side) for side in op.args)
        if left is None or right is None:
            return None
        if not left.factors:
            left, right, name = right, left, SWAPPED[name]
        factors = _sum(left.factors, right.factors, -1)
        steps = {n: step_of(self.found.counters[n].step) for n in factors}
        gap = self.gap(factors, steps)
        if gap is None:
            return None
        speed, rises = gap
        fits = name == "!=" or (name in ("<", "<=")) == rises
        unequal = name == "!=" and speed != ONE
        end = right.rest if left.rest == ZERO else right.rest - left.rest
        within = self.exact(end, left.rest, right.rest)
        if not fits or unequal or name == "==" or within is None:
            return None
        loads = bool(loads_of(end))
        if loads and not always:
            return None
        first = self.first(factors, steps)
        reach = _Reach(first, within, interval(speed, self.known), rises, name in ("<=", ">="))
        direct = direct and rises and speed == ONE and [*factors.values()] == [1]
        counter = next(iter(factors)) if direct else ""
        limits = reach.limits(direct=direct, is_short=self.is_short, updated=counter in self.test.updated)
        if limits is None or (name == "!=" and reach.distance() < 0):
            return None
        if not self.stays(op, factors, steps, reach.clamped(limits)):
            return None
        end = new("end", end) if loads else end
        return self.counted(_clamped(end, limits), reach.clamped(limits), factors, steps, speed, counter)

    def line(self, expr: Expr) -> _Line | None:
        """Return a side as a sum of counters; None where it is none."""
        if kind(expr.type) not in "iu":
            return None
        if self.found.is_invariant(expr):
            return _Line({}, int64(expr)) if is_within(interval(expr, self.known), (LEAST, MOST)) else None
        match expr:
            case Var(name=name) if name in self.found.counters:
                return _Line({name: 1}, ZERO)
            case Op(name="cast", args=(inner,)):
                return self.line(inner)
            case Op(name="+" | "-" as sign, args=(one, other)):
                left, right = self.line(one), self.line(other)
                if left is None or right is None:
                    return None
                factors = _sum(left.factors, right.factors, 1 if sign == "+" else -1)
                return self.sound(factors, sign, left.rest, right.rest)
            case (
                Op(name="*", args=(Const(value=int(factor)) as times, inner))
                | Op(name="*", args=(inner, Const(value=int(factor)) as times))
            ):
                line = self.line(inner)
                if line is None:
                    return None
                return self.sound(
                    {n: f * factor for n, f in line.factors.items()}, "*", line.rest, int64(times)
                )
        return None

    def sound(self, factors: Mapping[str, int], name: str, *rest: Expr) -> _Line | None:
        """Return a line whose rest is computed of two, if that does not wrap around."""
        within = unwrapped(Op(name, rest, INT), self.known)
        if within is None or not is_within(within, (LEAST, MOST)):
            return None
        return _Line(factors, operate(name, *rest))

    def gap(self, factors: Mapping[str, int], steps: Mapping[str, Expr]) -> tuple[Expr, bool] | None:
        """Return by how much the sum of the counters changes in an iteration, and whether it rises."""
        numbers = {name: int(step.value) for name, step in steps.items() if isinstance(step, Const)}
        if len(numbers) == len(steps):
            total = sum(factor * numbers[name] for name, factor in factors.items())
            return (Const(abs(total), INT), total > 0) if total else None
        if len(factors) > 1 or abs(next(iter(factors.values()), 0)) != 1:
            return None
        ((name, factor),) = factors.items()
        low, high = interval(steps[name], self.known)
        if low > 0:
            return steps[name], factor > 0
        return (-steps[name], factor < 0) if low > LEAST and high < 0 else None

    def exact(self, end: Expr, *parts: Expr) -> Interval | None:
        """Return what the end may be; None if computing it from its parts may wrap around."""
        left, right = (interval(part, self.known) for part in parts)
        within = (right[0] - left[1], right[1] - left[0])
        return within if is_within(within, interval_of_type(end.type)) else None

    def first(self, factors: Mapping[str, int], steps: Mapping[str, Expr]) -> Interval:
        """Return what the sum of the counters may be in the first test."""
        low = high = 0
        for name, factor in factors.items():
            ends = [factor * value for value in self.value(name, steps[name])]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def value(self, name: str, step: Expr) -> Interval:
        """Return what a counter may be in the first test."""
        low, high = self.starts[name].within
        moved = interval(step, self.known) if name in self.test.updated else (0, 0)
        return low + moved[0], high + moved[1]

    def stays(self, op: Op, factors: Mapping[str, int], steps: Mapping[str, Expr], reach: _Reach) -> bool:
        """Whether no counter wraps around, and nothing that the comparison computes with it."""
        inside = dict(self.known)
        for name, factor in factors.items():
            start, moved = self.starts[name].within, self.value(name, steps[name])
            if len(factors) == 1 and abs(factor) == 1:
                ends = [factor * value for value in reach.values()]
            else:
                least, most = interval(steps[name], self.known)
                ends = [
                    value + step * times
                    for value in moved
                    for step in (least, most)
                    for times in reach.times()
                ]
            inside[name] = (min(start[0], *moved, *ends), max(start[1], *moved, *ends))
            of = self.found.counters[name].update.type
            if not all(is_within(inside[name], interval_of_type(one)) for one in (of, INT)):
                return False
        return all(_is_exact(side, self.found, inside) for side in op.args)

    def counted(
        self,
        end: Expr,
        reach: _Reach,
        factors: Mapping[str, int],
        steps: Mapping[str, Expr],
        speed: Expr,
        counter: str,
    ) -> _Atom:
        """Return the iterations before the comparison fails."""
        extra = Const(int(reach.inclusive), INT)
        if counter:
            moved = ONE if counter in self.test.updated else ZERO
            past = end + extra - moved
            distance = past - int64(self.starts[counter].value)
            return _Atom(distance, reach.least(), counter, past)
        start: Expr = ZERO
        for name, factor in factors.items():
            value = int64(self.starts[name].value)
            value = value + steps[name] if name in self.test.updated else value
            start = start + Const(factor, INT) * value
        distance = end - start if reach.rises else start - end
        distance = distance + extra
        if speed != ONE:
            distance = (distance + (speed - ONE)) // speed
        return _Atom(distance, reach.least())


def _not_kept(base: str, value: Expr) -> Expr:
    """Return an expression as it is, where it is only asked whether there is a bound."""
    del base
    return value


def _sum(one: Mapping[str, int], other: Mapping[str, int], sign: int) -> dict[str, int]:
    factors = {n: one.get(n, 0) + sign * other.get(n, 0) for n in dict.fromkeys((*one, *other))}
    return {name: factor for name, factor in factors.items() if factor}


def _least(values: list[Expr]) -> Expr:
    result = values[0]
    for value in values[1:]:
        result = result if value == result else operate("min", result, value)
    return result


def _is_exact(expr: Expr, found: Iteration, known: Mapping[str, Interval]) -> bool:
    """Whether nothing that is computed with a counter wraps around; what never changes may, as it stands."""
    if found.is_invariant(expr) or not isinstance(expr, Op):
        return True
    within = unwrapped(expr, known)
    fits = within is not None and is_within(within, interval_of_type(expr.type))
    return fits and all(_is_exact(arg, found, known) for arg in expr.args)


@dataclass(frozen=True)
class _Reach:
    """The numbers that a sum of counters passes: from ``first``, by ``speed`` in an iteration, to ``end``."""

    first: Interval
    end: Interval
    speed: Interval
    rises: bool
    inclusive: bool

    def limits(self, *, direct: bool, is_short: bool, updated: bool) -> tuple[int | None, int | None] | None:
        """Return what the end is raised to, and lowered to, so that nothing wraps around; None if it might.

        ``direct``: the end is the loop's, and no distance is computed. ``is_short``: it is not raised by one.
        """
        extra = self.inclusive + (not is_short)
        if direct:
            past, before = self.end[1] + extra > MOST, self.end[0] - updated < LEAST
        else:
            longest = (self.end[1] - self.first[0] if self.rises else self.first[1] - self.end[0]) + extra
            too_long, too_short = longest + self.speed[1] > MOST, self.distance() < LEAST
            past, before = (too_long, too_short) if self.rises else (too_short, too_long)
            if (past and self.end[1] <= FAR) or (before and self.end[0] >= -FAR):
                return None
        if not (past or before):
            return None, None
        is_near = is_within(self.first, (-NEAR, NEAR)) and self.speed[1] <= MAX_STEP
        return (-FAR if before else None, FAR if past else None) if is_near else None

    def clamped(self, limits: tuple[int | None, int | None]) -> _Reach:
        """Return the same with an end within some limits."""
        low = self.end[0] if limits[0] is None else max(self.end[0], limits[0])
        high = self.end[1] if limits[1] is None else min(self.end[1], limits[1])
        return _Reach(self.first, (low, high), self.speed, self.rises, self.inclusive)

    def values(self) -> Interval:
        """Return the least and the greatest number on the way."""
        over = self.speed[1] - 1 + self.inclusive
        if self.rises:
            return self.first[0], max(self.first[1], self.end[1] + over)
        return min(self.first[0], self.end[0] - over), self.first[1]

    def times(self) -> Interval:
        """Return how many iterations there may be, and one."""
        distance = self.end[1] - self.first[0] if self.rises else self.first[1] - self.end[0]
        return 0, max(0, distance + 1) // self.speed[0] + 2

    def least(self) -> int:
        """Return a number of iterations, or below 0 if there may be none at all for certain."""
        return self.distance() + self.inclusive

    def distance(self) -> int:
        """Return how far the end is at least, in the direction of the sum; below 0 if it may be behind."""
        return self.end[0] - self.first[1] if self.rises else self.first[0] - self.end[1]


def _clamped(end: Expr, limits: tuple[int | None, int | None]) -> Expr:
    low, high = limits
    end = end if high is None else operate("min", end, Const(high, INT))
    return end if low is None else operate("max", end, Const(low, INT))
