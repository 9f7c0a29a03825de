"""Turn a ``while`` that counts into a loop with a bound.

    k = 0
    while k < n:                    for i in 0 .. n:
        y[k] = x[k]        ->           y[i] = x[i]
        k += 1                      k = n

So it takes the same forms as a ``for``: lanes, threads, tapes of a known size. A counter has its first value,
plus its step times the iterations before. A test of counters tells in which iteration it ends the loop: see
bounds_of_tests.py. Where nothing runs before the test, or nothing behind it, the bound says all of it, and
the test goes. Elsewhere it stays, and so do other exits: then it is a loop with a bound and a break.

A loop whose counter might wrap around stays a ``while``, because it might run on.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..ir.grammar import (
    BOOL,
    FALSE,
    INT,
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Stmt,
    Type,
    Var,
    names_of,
    statements,
    unused,
    walk,
)
from ..ir.intervals import Interval, interval, interval_of_type
from ..ir.operate import operate
from ..ir.rewriter import map_body, rewrite, substitute, with_bodies
from ..ir.stops import is_unbounded
from ..ir.types import kind
from ..ir.uses import assigned_by, loads_of, variables_of
from .bounds_of_tests import Bound, Start, bounds, int64, step_of
from .inductions import Iteration, iteration_of

MAX_NODES = 16
"""A first value that is larger than this stays in its scalar."""
ONE = Const(1, INT)


def with_counted_whiles(kernel: Kernel) -> Kernel:
    """Return the kernel with each ``while`` that counts as a loop with a bound."""
    if not any(isinstance(s, For) and is_unbounded(s) for s in statements(kernel.body)):
        return kernel
    whiles = _Whiles(kernel)
    body = whiles.block(kernel.body, _values_of_scalars(kernel), inside=False)
    return replace(kernel, body=_without_unread(body, whiles.done, whiles.loops))


class _Whiles:
    """Rewrites the loops of a kernel, inner ones first.

    ``done`` are the scalars of loops that count now, which may be read no more, and ``loops`` those that have
    become variables of loops.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.taken = names_of(kernel)
        self.done: set[str] = set()
        self.loops: set[str] = set()

    def block(self, body: Sequence[Stmt], known: Mapping[str, Interval], *, inside: bool) -> tuple[Stmt, ...]:
        """Return the statements of a block; ``known`` are the values of the loops around it.

        ``inside``: there is such a loop, whose next iteration may read what this one leaves.
        """
        result: list[Stmt] = []
        for node in body:
            match node:
                case For():
                    inner = self.block(node.body, {**known, node.var: _values(node, known)}, inside=True)
                    loop = replace(node, body=inner)
                    result += (
                        self.counted(node, loop, result, known, inside) if is_unbounded(node) else [loop]
                    )
                case _:
                    within = functools.partial(self.block, known=known, inside=inside)
                    result.append(with_bodies(node, within))
        return tuple(result)

    def counted(
        self, author: For, loop: For, before: Sequence[Stmt], known: Mapping[str, Interval], inside: bool
    ) -> list[Stmt]:
        """Return what a ``while`` becomes: itself if it does not count. ``before`` stands ahead of it."""
        needed = _reads(self.kernel.body, author) | _reads(before, None)
        carried: set[str] = set()
        if inside:  # what is not set ahead of the loop is what its last run has left
            carried = assigned_by(author.body)
            carried -= {s.name for s in before if isinstance(s, Assign) and not s.op}
        found = iteration_of(loop, frozenset(needed | carried))
        if found is None or not found.counters or carried & {*found.counters}:
            return [loop]
        starts = {name: _start(name, before, found, known) for name in found.counters}
        ends: list[Stmt] = []

        def new(base: str, value: Expr) -> Expr:
            ends.append(Assign(name := self.new(base), value, line=loop.line))
            return Var(name, value.type)

        for bound, whole in bounds(found, starts, known, new):
            made = _Counted(self, found, starts, bound, before, whole)
            if made.is_right():
                return [*ends, *made.statements()]
            ends.clear()
        return [loop]

    def new(self, base: str) -> str:
        """Return a new name."""
        return unused(base, self.taken)


def _values_of_scalars(kernel: Kernel) -> dict[str, Interval]:
    """Return what the scalars may be that are assigned once."""
    assigns = [s for s in statements(kernel.body) if isinstance(s, Assign) and kind(s.type) in "iu"]
    names = [node.name for node in assigns]
    known: dict[str, Interval] = {}
    for node in assigns:
        if names.count(node.name) == 1 and not node.op:
            known[node.name] = interval(node.value, known)
    return known


def _values(loop: For, known: Mapping[str, Interval]) -> Interval:
    if is_unbounded(loop):
        return interval_of_type(INT)
    low, end = interval(loop.lo, known), interval(loop.hi, known)
    return low[0], max(low[0], end[1] - 1)


def _reads(body: Sequence[Stmt], without: For | None) -> set[str]:
    """Return the scalars that statements read, without those of one loop inside."""
    names: set[str] = set()
    for node in body:
        if node is without:
            continue
        names |= variables_of(node)
        match node:
            case For():
                names |= _reads(node.body, without)
            case If():
                names |= _reads((*node.body, *node.orelse), without)
            case Assign(name=name, op=op) if op:
                names.add(name)
    return names


def _start(name: str, before: Sequence[Stmt], found: Iteration, known: Mapping[str, Interval]) -> Start:
    """Return a counter's value ahead of its loop, as an expression that stays the same in it if possible."""
    of = found.counters[name].update.type
    changed = set(found.assigned)
    for node in reversed(before):
        if isinstance(node, Assign) and node.name == name and not node.op:
            value, parts = node.value, list(walk(node.value))
            leaves = [e for e in parts if isinstance(e, (Var, Load))]
            is_fixed = all(isinstance(e, Var) and e.name not in changed for e in leaves)
            return Start(
                value if is_fixed and len(parts) <= MAX_NODES else Var(name, of), interval(value, known)
            )
        changed |= assigned_by((node,))
        if name in assigned_by((node,)):
            break
    return Start(Var(name, of), interval_of_type(of))


class _Counted:
    """A loop with a bound. ``whole``: the comparisons of the bound are left out, as it says all of them.

    ``kept`` are the counters that stay in the loop, because another exit leaves them to what is behind it.
    """

    def __init__(
        self,
        whiles: _Whiles,
        found: Iteration,
        starts: Mapping[str, Start],
        bound: Bound,
        before: Sequence[Stmt],
        whole: bool,
    ) -> None:
        self.whiles, self.found, self.bound, self.whole = whiles, found, bound, whole
        self.body = found.body
        if whole:
            self.body = _folded(self.without_tests(found.body))
        unset = {s.name for s in before if isinstance(s, Assign) and s.value == FALSE} - found.needed
        unset &= found.flags
        for name in unset - _set_flags(self.body):
            self.body = _without_flag(self.body, name)
        self.flags = found.flags - (unset - _set_flags(self.body))
        self.live = [name for name in found.counters if name in found.needed]
        self.kept = self.live if self.flags else []
        self.starts = starts
        self.before: list[Stmt] = []

    def is_right(self) -> bool:
        """Whether counters that are read behind a loop with other exits have the right values there.

        The iteration of a test that is left out is not run at all, or run to its end. There it may compute
        nothing but the comparisons of the bound: behind ``k >= n or``, ``x[k]`` lies outside. A loop that
        does nothing stays as it is: its bound may be lower than the author's, as no loop gets so far.
        """
        test = self.bound.test
        missed = [name for name in self.kept if (name in test.updated) == test.is_first]
        if self.whole and missed:
            return False
        if self.whole and not test.is_first and not isinstance(self.known_condition(), Const):
            return False
        return any(not isinstance(s, (Assign, If)) or self.is_more(s) for s in statements(self.body))

    def is_more(self, node: Assign | If) -> bool:
        """Whether a statement does more than to count, or to decide what does."""
        return isinstance(node, Assign) and node.name not in {*self.found.counters, *self.found.flags}

    def known_condition(self) -> Expr:
        """Return the condition of the test where the comparisons of the bound are known."""
        stmt = self.bound.test.stmt
        return _fold(rewrite(stmt.condition if isinstance(stmt, If) else stmt.value, self.with_known))

    def with_known(self, expr: Expr) -> Expr:
        """Return a comparison of the bound as what it is in its iterations; others stay."""
        atom = next((op for op in self.bound.atoms if op == expr), None)
        if atom is None:
            return expr
        return Const(any(atom is op and name == op.name for op, name in self.bound.test.atoms), BOOL)

    def without_tests(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Return a body in which the comparisons of the bound are known."""
        result: list[Stmt] = []
        for node in body:
            if node is self.bound.test.stmt and isinstance(node, Assign):
                result.append(replace(node, value=self.known_condition()))
            elif isinstance(node, If):
                is_test = node is self.bound.test.stmt
                condition = self.known_condition() if is_test else node.condition
                then, other = self.without_tests(node.body), self.without_tests(node.orelse)
                result.append(replace(node, condition=condition, body=then, orelse=other))
            else:
                result.append(node)
        return tuple(result)

    def statements(self) -> list[Stmt]:
        """Return the loop, what must run before it, and the values of its counters behind it."""
        self.name_starts()
        found, bound, var = self.found, self.bound, self.variable()
        body = tuple(self.block(self.body, Var(var, INT), set()))
        if self.flags:
            false = dict.fromkeys(found.flags - self.flags, FALSE)
            guard = found.loop.body[0]
            assert isinstance(guard, If)
            body = (replace(guard, condition=_fold(substitute(guard.condition, false)), body=body),)
        self.whiles.done |= {*found.flags - self.flags, *(n for n in found.counters if n not in self.kept)}
        end = bound.end if self.whole and bound.test.is_first else self.past() + ONE
        loop = [replace(found.loop, var=var, lo=bound.lo, hi=end, body=body)] if body else []
        finals = [] if self.flags else [self.final(name) for name in self.live]
        return [*self.before, *loop, *finals]

    def name_starts(self) -> None:
        """Keep the first values of counters that change before these are read in scalars of their own."""
        values: dict[str, Expr] = {}
        for name in self.kept or (self.live if len(self.live) > 1 else []):
            value = self.starts[name].value
            if isinstance(value, Var) and value.name == name:
                new = Var(self.whiles.new(f"{name}_start"), value.type)
                self.before.append(Assign(new.name, value, line=self.found.loop.line))
                values[name] = new
        self.starts = {
            name: Start(substitute(start.value, values), start.within) for name, start in self.starts.items()
        }
        self.bound = replace(
            self.bound, lo=substitute(self.bound.lo, values), end=substitute(self.bound.end, values)
        )

    def variable(self) -> str:
        """Return the name of the loop's variable: that of its counter, if that is no scalar any more."""
        counters = variables_of(*self.bound.atoms) & {*self.found.counters}
        name = self.bound.counter or min(counters)
        others = [
            s
            for s in statements(self.whiles.kernel.body)
            if isinstance(s, Assign) and s.name == name and not s.op
        ]
        start = self.starts[name].value
        is_free = name not in self.found.needed and start != Var(name, self.found.counters[name].update.type)
        if is_free and name not in self.whiles.loops and all(_is_pure(node) for node in others):
            self.whiles.loops.add(name)
            return name
        return self.whiles.new(name)

    def past(self) -> Expr:
        """Return the end of the iterations before the one in which the test fails."""
        bound = self.bound
        return bound.end if bound.is_known else operate("max", bound.end, bound.lo)

    def block(self, body: Sequence[Stmt], var: Var, updated: set[str]) -> list[Stmt]:
        """Return statements in which counters are written out; ``updated`` are those that were changed."""
        result: list[Stmt] = []
        for node in body:
            if isinstance(node, Assign) and node.name in self.found.counters:
                result += [node] if node.name in self.kept else []
                updated.add(node.name)
                continue
            change = _WrittenOut(self, var, frozenset(updated)).change
            match node:
                case For():
                    inner = tuple(self.block(node.body, var, set(updated)))
                    lo, hi = rewrite(node.lo, change), rewrite(node.hi, change)
                    result.append(replace(node, lo=lo, hi=hi, body=inner))
                case If():
                    condition, then, other = rewrite(node.condition, change), set(updated), set(updated)
                    parts = (
                        tuple(self.block(node.body, var, then)),
                        tuple(self.block(node.orelse, var, other)),
                    )
                    result.append(replace(node, condition=condition, body=parts[0], orelse=parts[1]))
                    updated |= then | other
                case _:
                    result.append(rewrite(node, change))
        return result

    def value(self, name: str, iterations: Expr, at: Expr | None, updated: bool) -> Expr:
        """Return a counter as a Python int, after some iterations; ``at`` is the loop's value then."""
        step = step_of(self.found.counters[name].step)
        start = int64(self.starts[name].value)
        value = at if name == self.bound.counter and at is not None else None
        if value is None:
            value = start + step * iterations
        return _wrapped(value + step if updated else value)

    def final(self, name: str) -> Stmt:
        """Return the assignment of a counter behind the loop."""
        past = self.past()
        iterations = past - self.bound.lo
        value = self.value(name, iterations, past, name in self.bound.test.updated)
        return Assign(name, _typed(value, self.found.counters[name].update.type), line=self.found.loop.line)


class _WrittenOut:
    """Writes counters out in terms of the variable of their loop."""

    def __init__(self, made: _Counted, var: Var, updated: frozenset[str]) -> None:
        self.found = made.found
        bound = made.bound
        iterations = var - bound.lo
        self.values = {n: made.value(n, iterations, var, n in updated) for n in made.found.counters}
        self.exact = [value for name, value in self.values.items() if name == bound.counter]

    def change(self, expr: Expr) -> Expr:
        """Return the expression without counters: a number that fits into its type needs no cast to it."""
        match expr:
            case Var(name=name) if name in self.values:
                to = self.found.counters[name].update.type
                return self.values[name] if to.dtype == "int64" else _typed(self.values[name], to)
            case Op(name="cast", args=(Op(name="cast", args=(inner,)),)) if (
                expr.type.dtype == "int64" and inner in self.exact
            ):
                return inner
        return expr


def _typed(value: Expr, to: Type) -> Expr:
    """Return a Python int in another type, modulo what it wraps at."""
    if value.type == to:
        return value
    if isinstance(value, Const):
        low, high = interval_of_type(to)
        return Const((int(value.value) - low) % (high - low + 1) + low, to)
    return Op("cast", (value,), to)


def _wrapped(value: Expr) -> Expr:
    """Return a folded number as an int64 holds it."""
    return Const((int(value.value) + 2**63) % 2**64 - 2**63, INT) if isinstance(value, Const) else value


def _set_flags(body: Sequence[Stmt]) -> set[str]:
    """Return the scalars that statements set to anything but False."""
    return {s.name for s in statements(tuple(body)) if isinstance(s, Assign) and s.value != FALSE}


def _without_flag(body: Sequence[Stmt], name: str) -> tuple[Stmt, ...]:
    """Return statements in which a flag is never set."""
    rest = map_body(body, lambda s: () if isinstance(s, Assign) and s.name == name else (s,))
    return _folded(tuple(substitute(node, {name: FALSE}) for node in rest))


def _folded(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Return statements without conditions that are known."""
    result: list[Stmt] = []
    for node in body:
        match node:
            case If():
                condition, then, other = _fold(node.condition), _folded(node.body), _folded(node.orelse)
                if isinstance(condition, Const):
                    result += then if condition.value else other
                elif then or other:
                    result.append(replace(node, condition=condition, body=then, orelse=other))
            case For():
                result.append(replace(node, body=_folded(node.body)))
            case Assign(value=value) if value.type == BOOL and not node.op:
                result.append(replace(node, value=_fold(value)))
            case _:
                result.append(node)
    return tuple(result)


def _fold(condition: Expr) -> Expr:
    """Return a condition without parts that are known."""
    match condition:
        case Op(name="not", args=(inner,)):
            inner = _fold(inner)
            return (
                Const(not inner.value, BOOL)
                if isinstance(inner, Const)
                else replace(condition, args=(inner,))
            )
        case Op(name="and" | "or" as name, args=args):
            left, right = (_fold(arg) for arg in args)
            if isinstance(left, Const):
                return right if bool(left.value) == (name == "and") else left
            if isinstance(right, Const) and bool(right.value) == (name == "and"):
                return left
            return replace(condition, args=(left, right))
    return condition


def _is_pure(node: Assign) -> bool:
    return not bool(loads_of(node.value))


def _without_unread(body: tuple[Stmt, ...], names: set[str], loops: set[str]) -> tuple[Stmt, ...]:
    """Return statements without assignments to some names that nothing reads, and to variables of loops."""
    while True:
        read = _reads(body, None)
        gone = {*loops, *(names - read)}

        def kept(node: Stmt) -> Sequence[Stmt]:
            unread = isinstance(node, Assign) and node.name in gone and _is_pure(node)  # noqa: B023
            return () if unread else (node,)

        smaller = map_body(body, kept)
        if smaller == body:
            return body
        body = smaller
