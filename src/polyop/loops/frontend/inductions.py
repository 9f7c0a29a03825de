"""Find what each iteration of a ``while`` changes: the scalars it adds to, and the tests that may end it.

    while True:
        k += 1                      k is a counter: every iteration adds 1 to it, once
        if k > n:                   a test: the loop ends where k > n
            break
        if x[k] < 0:                what is in a branch is not in every iteration
            y[k] = 0

The *spine* of a loop are the statements that run in each iteration which does not end the loop before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..ir.grammar import Assign, Const, Expr, For, If, Load, Op, Stmt, Store, Var, statements, walk
from ..ir.stops import stop_flags
from ..ir.types import kind
from ..ir.uses import loads_of

OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


@dataclass(frozen=True)
class Counter:
    """A scalar that each iteration changes by ``step``; ``update`` is the statement that does."""

    update: Assign
    step: Expr

    @property
    def name(self) -> str:
        """The scalar's name."""
        return self.update.name


@dataclass(frozen=True)
class Test:
    """A statement that ends the loop unless all of its comparisons hold.

    ``atoms`` are the comparisons with an operator that holds if the loop goes on; the first one is computed
    in any case. ``updated`` are the counters that the iteration has changed before. ``is_first``: nothing
    else has run; ``is_last``: nothing runs after it. ``is_bare``: it does nothing but to end the loop.
    """

    stmt: Assign | If
    atoms: tuple[tuple[Op, str], ...]
    updated: frozenset[str]
    is_first: bool
    is_last: bool
    is_bare: bool


@dataclass
class Iteration:
    """What a loop that flags end does in each iteration: ``body`` is behind its flags.

    ``assigned`` and ``stored`` are the scalars and tensors that it changes. ``needed`` are the scalars that
    are read outside of it.
    """

    loop: For
    flags: frozenset[str]
    body: tuple[Stmt, ...]
    assigned: frozenset[str]
    stored: frozenset[str]
    needed: frozenset[str]
    counters: dict[str, Counter] = field(default_factory=dict)
    tests: list[Test] = field(default_factory=list)

    def is_invariant(self, expr: Expr) -> bool:
        """Whether an expression has one value in all iterations."""
        return not any(
            (isinstance(e, Var) and e.name in self.assigned)
            or (isinstance(e, Load) and e.buffer in self.stored)
            for e in walk(expr)
        )


def iteration_of(loop: For, needed: frozenset[str]) -> Iteration | None:
    """Return what the iterations of a loop do; None if its flags are no scalars."""
    flags = stop_flags(loop)
    if not flags or not all(isinstance(flag, Var) for flag in flags):
        return None
    guard = loop.body[0]
    assert isinstance(guard, If)
    inside = list(statements(loop.body))
    names = [s.var if isinstance(s, For) else s.name for s in inside if isinstance(s, (For, Assign))]
    found = Iteration(
        loop,
        frozenset(flag.name for flag in flags if isinstance(flag, Var)),
        guard.body,
        frozenset((*names, loop.var)),
        frozenset(s.buffer for s in inside if isinstance(s, Store)),
        needed,
    )
    if not _is_guard(guard.condition, found.flags):
        return None
    spine = list(_spine(guard.body, found.flags))
    for node in spine:
        step = _step(node) if isinstance(node, Assign) and names.count(node.name) == 1 else None
        if step is not None and isinstance(node, Assign) and found.is_invariant(step):
            found.counters[node.name] = Counter(node, step)
    found.tests = list(_tests(spine, found))
    return found


def _step(node: Assign) -> Expr | None:
    """Return the integer that a statement adds to a scalar, or None; an element may lie outside."""
    is_integer = node.op == "+" and kind(node.value.type) in "iu"
    return node.value if is_integer and not bool(loads_of(node.value)) else None


def _is_guard(condition: Expr, flags: frozenset[str]) -> bool:
    """Whether a condition says no more than that the loop has not ended."""
    match condition:
        case Op(name="and", args=args):
            return all(_is_guard(part, flags) for part in args)
        case Op(name="not", args=(Var(name=name),)):
            return name in flags
    return False


def ends(body: Sequence[Stmt], flags: frozenset[str]) -> bool:
    """Whether the loop has ended behind some statements."""
    for node in body:
        if isinstance(node, Assign) and node.name in flags and _is_true(node.value):
            return True
        if isinstance(node, If) and ends(node.body, flags) and ends(node.orelse, flags):
            return True
    return False


def _is_true(value: Expr) -> bool:
    return isinstance(value, Const) and bool(value.value)


def _spine(body: Sequence[Stmt], flags: frozenset[str]) -> Iterator[Stmt]:
    """Yield the statements that each iteration runs; an ``if`` before those of the branch that goes on."""
    for node in body:
        yield node
        if isinstance(node, If):
            if _is_guard(node.condition, flags) or ends(node.orelse, flags):
                yield from _spine(node.body, flags)
            elif ends(node.body, flags):
                yield from _spine(node.orelse, flags)


def _tests(spine: Sequence[Stmt], found: Iteration) -> Iterator[Test]:
    updated: set[str] = set()
    has_run = False
    for position, node in enumerate(spine):
        if isinstance(node, Assign) and node.name in found.counters:
            updated.add(node.name)
            continue
        condition, holds, is_bare = _condition(node, found)
        atoms = tuple(_atoms(condition, holds)) if condition is not None else ()
        if isinstance(node, (Assign, If)) and atoms:
            is_last = all(_is_nothing(one, found) for one in spine[position + 1 :])
            yield Test(node, atoms, frozenset(updated), not has_run, is_last, is_bare)
        has_run = has_run or not _is_nothing(node, found)


def _is_nothing(node: Stmt, found: Iteration) -> bool:
    """Whether a statement changes counters or flags at most: what an ``if`` contains counts by itself."""
    match node:
        case Assign(name=name, value=value):
            local = name not in found.flags | found.needed
            return name in found.counters or (local and isinstance(value, Const))
        case If(condition=condition, orelse=orelse):
            return _is_guard(condition, found.flags) and not orelse
    return False


def _condition(node: Stmt, found: Iteration) -> tuple[Expr | None, bool, bool]:
    """Return the condition of a test, whether the loop goes on if it holds, and whether the rest is bare."""
    flags = found.flags
    match node:
        case Assign(name=name, value=value) if name in flags and not node.op:
            return value, False, name not in found.needed
        case If(condition=condition, body=body, orelse=orelse) if not _is_guard(condition, flags):
            if ends(orelse, flags):
                return condition, True, _is_bare(orelse, found)
            if ends(body, flags):
                return condition, False, _is_bare(body, found)
    return None, False, False


def _is_bare(body: Sequence[Stmt], found: Iteration) -> bool:
    return len(body) == 1 and isinstance(body[0], Assign) and body[0].name not in found.needed


def _atoms(condition: Expr, holds: bool) -> Iterator[tuple[Op, str]]:
    """Yield the comparisons that hold if a condition holds (or does not), each with its operator."""
    match condition:
        case Op(name="not", args=(inner,)):
            yield from _atoms(inner, not holds)
        case Op(name="and" | "or" as name, args=args):
            if (name == "and") == holds:
                for part in args:
                    yield from _atoms(part, holds)
        case Op(name=name) if name in OPPOSITE:
            yield condition, name if holds else OPPOSITE[name]
