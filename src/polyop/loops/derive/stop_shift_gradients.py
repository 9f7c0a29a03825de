"""Stop gradients at maxima that no output depends on.

A softmax subtracts the maximum ``t`` so that no exponential overflows. Its result does not depend on ``t``:

    exp(x - t) / sum(exp(x - t))

An online softmax rescales what it has summed when its maximum changes. ``total`` is ``A * exp(-top)`` before
and after each iteration, whatever numbers the maxima are:

    new = max(top, x)
    total = total * exp(top - new) + exp(x - new)
    top = new

The analysis runs the kernel on degrees (shift_degrees.py). Each maximum that is stored is a shift of its own.
A loop is run until the degrees at its head stay the same, expressed by the shift that ``top`` holds there. If
every output is FREE at the end, its derivative with respect to all maxima is exactly zero. Then the gradient
needs neither their adjoints nor their positions.

A tensor has one degree: that of each element that the iteration uses, see swept.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..ir.grammar import Const, Expr, For, If, Kernel, Load, Op, Stmt, Store, statements, walk
from ..ir.note import Note
from ..ir.rewriter import rewrite, with_bodies
from ..ir.types import is_real
from .derivation import Derivation
from .shift_degrees import FREE, UNKNOWN, ZERO, Degree, MaybeDegree, degree_of, joined, renamed, shift
from .swept import Swept

State = dict[str, Degree]
"""By buffer, the degree of its elements; one that is missing has not been stored yet."""
MAX_ROUNDS = 4
"""Rounds of the iteration to a fixed point. If degrees of a loop still change then, all are UNKNOWN."""


def stop_shift_gradients(derivation: Derivation) -> Derivation:
    """Return the derivation with gradients stopped at maxima that no output depends on."""
    kernel = derivation.kernel
    groups = _groups(kernel)
    exprs = (e for s in statements(kernel.body) for e in walk(s))
    if not groups or not any(isinstance(e, Op) and e.name == "exp" for e in exprs):
        return derivation
    swept = Swept(derivation)
    free = {name for group in groups if _Run(swept, group, derivation.outputs).is_free() for name in group}
    notes = (
        Note(kernel.buffers[n].line, f"no output depends on {n}: it gets no gradient", "stop_shift_gradients")
        for n in sorted(free)
    )
    body = tuple(_with_stopped_reads(s, free) for s in kernel.body)
    return derivation.with_(*notes, kernel=replace(kernel, body=body)) if free else derivation


def _groups(kernel: Kernel) -> list[frozenset[str]]:
    """Return each buffer that holds a maximum or minimum, with the temporaries that hold copies of it."""
    stores = [s for s in statements(kernel.body) if isinstance(s, Store) and is_real(kernel, s.buffer)]
    copies = [(s.buffer, s.value.buffer) for s in stores if isinstance(s.value, Load) and not s.op]
    groups = []
    for first in dict.fromkeys(s.buffer for s in stores if _is_extreme(s)):
        group, more = set[str](), {first}
        while more:
            group |= more
            more = {a for a, b in copies if b in group and kernel.buffers[a].role == "local"} - group
        groups.append(frozenset(group))
    return groups


def _is_extreme(store: Store) -> bool:
    """Whether a statement stores a maximum or a minimum."""
    value = store.value
    return store.op in ("max", "min") or (isinstance(value, Op) and value.name in ("max", "min"))


def _with_stopped_reads(node: Stmt, names: set[str]) -> Stmt:
    """Return a statement in which ``stop_gradient`` is around reads of buffers, but in their own stores."""
    if not isinstance(node, Store):
        return with_bodies(node, lambda body: tuple(_with_stopped_reads(s, names) for s in body))

    def change(expr: Expr) -> Expr:
        ours = isinstance(expr, Load) and expr.buffer in names - {node.buffer}
        return Op("stop_gradient", (expr,), expr.type) if ours else expr

    return replace(node, value=rewrite(node.value, change))


class _Run:
    """Runs a kernel on degrees; the buffers of ``group`` hold the shifts.

    The name of a shift tells where it is from, with numbers of stores and conditions in the order of the run:

        t#5   stored in t by number 5
        t@j   held by t at the head of the loop j
        t?7   held by t behind the condition number 7

    Outside of a loop, names that an iteration makes are unknown.
    """

    def __init__(self, swept: Swept, group: frozenset[str], outputs: Sequence[str]) -> None:
        self.swept, self.kernel, self.group, self.outputs = swept, swept.kernel, sorted(group), outputs
        self.count = 0
        self.returns_shifts = False
        """Whether an output of the group is made of shifts, so that its gradient needs their reads."""

    def is_free(self) -> bool:
        """Whether no output depends on the shifts; one may be a maximum itself, which all others read."""
        zeros = {name: ZERO for name, buffer in self.kernel.buffers.items() if buffer.zeroed}
        state = self._after(zeros, self.kernel.body, ())
        others = [name for name in self.outputs if name not in self.group]
        return not self.returns_shifts and all(state.get(name, ZERO) in (FREE, ZERO) for name in others)

    def _after(self, state: State, body: Sequence[Stmt], loops: tuple[For, ...]) -> State:
        """Return the degrees after statements inside some loops."""
        for node in body:
            match node:
                case Store() if is_real(self.kernel, node.buffer):
                    degree = self._stored(node, state, loops)
                    state = {n: d for n, d in {**state, node.buffer: degree}.items() if d is not None}
                case If():
                    only = self.swept.only_in_arm(node)
                    then, other = (
                        {n: d for n, d in self._after(state, body, loops).items() if only.get(n, arm) == arm}
                        for arm, body in enumerate((node.body, node.orelse))
                    )
                    state = self._either(then, other, f"?{self._next()}", self.group)
                case For():
                    state = self._loop(node, state, loops)
                case _:
                    pass
        return state

    def _next(self) -> int:
        """Return the next number of a store or a condition."""
        self.count += 1
        return self.count

    def _stored(self, node: Store, state: State, loops: tuple[For, ...]) -> MaybeDegree:
        """Return the degree of a buffer after a store."""
        name, value = node.buffer, node.value

        def read(load: Load) -> MaybeDegree:
            is_input = self.kernel.buffers[load.buffer].role == "input"
            return FREE if is_input or not is_real(self.kernel, load.buffer) else state.get(load.buffer)

        if name in self.group and name in self.outputs:
            self.returns_shifts |= degree_of(value, read) not in (None, FREE, ZERO)
        if name in self.group and not self._is_copy(node):
            degree: MaybeDegree = shift(f"{name}#{self._next()}")
        else:
            degree = degree_of(Op(node.op, (node.target, value), value.type) if node.op else value, read)
        # other elements keep the degree that they had
        return degree if self.swept.is_one(node, loops) else joined(degree, state.get(name))

    def _is_copy(self, node: Store) -> bool:
        """Whether a statement stores a constant, or what another shift holds. All others make a new shift."""
        value = node.value
        number = value.args[0] if isinstance(value, Op) and value.name in ("neg", "cast") else value
        is_copy = isinstance(value, Load) and value.buffer in self.group
        return not node.op and (is_copy or isinstance(number, Const))

    def _loop(self, loop: For, entry: State, loops: tuple[For, ...]) -> State:
        """Return the degrees after a loop: those at its head, and of what it sweeps over those at its end."""
        tag = f"@{loop.var}"
        entry = _renamed(entry, {name: f"{name}#{self._next()}" for name in _shifts(entry) if tag in name})
        carried = self.swept.carried(loop)
        kept = {name: degree for name, degree in entry.items() if name not in carried}
        shifts = [name for name in self.group if name in carried]
        head = entry
        for _ in range(MAX_ROUNDS):
            end = self._after(head, loop.body, (*loops, loop))
            handed_on = {name: degree for name, degree in end.items() if name in carried}
            found = {**self._either(entry, handed_on, tag, shifts), **kept}
            if found == head:
                break
            head = found
        else:
            head = end = dict.fromkeys((*head, *end), UNKNOWN)
        # the shifts that an iteration makes have no meaning outside of it
        swept = {n: _known(d, _shifts(entry)) for n, d in end.items() if n not in carried}
        partly = {n: entry.get(n) for n in swept if not self.swept.is_whole(loop, n)}
        return {**head, **{n: joined(d, partly.get(n)) or UNKNOWN for n, d in swept.items()}}

    def _either(self, one: State, other: State, tag: str, shifts: Sequence[str]) -> State:
        """Return the degrees where either state holds, expressed by what ``shifts`` hold there."""
        states, names = [dict(one), dict(other)], [dict[str, str](), dict[str, str]()]
        for buffer in shifts:
            held = [_held(state.get(buffer)) for state in states]
            if None in held or one[buffer] == other[buffer]:
                continue
            if any(h in known for h, known in zip(held, names, strict=True)):
                continue  # another buffer holds the same shift in one of the states only
            for state, known, h in zip(states, names, held, strict=True):
                if h:
                    known[h] = f"{buffer}{tag}"
                else:
                    state[buffer] = shift(f"{buffer}{tag}")
        if tag.startswith("@"):  # a shift of the iteration that no buffer hands on to the next one
            known_there = {*names[1], *_shifts(one)}
            states[1] = {n: _known(degree, known_there) for n, degree in states[1].items()}
        first, second = (_renamed(state, known) for state, known in zip(states, names, strict=True))
        return {n: joined(first.get(n), second.get(n)) or UNKNOWN for n in {*first, *second}}


def _known(degree: Degree, names: set[str]) -> Degree:
    """Return a degree, or UNKNOWN if it is in terms of other shifts."""
    return degree if _shifts({"": degree}) <= names else UNKNOWN


def _held(degree: MaybeDegree) -> str | None:
    """Return the shift that a value is; "" for one that depends on none, which may be called a shift."""
    if degree in (FREE, ZERO):
        return ""
    return next((name for name, _ in degree.slope if degree == shift(name)), None) if degree else None


def _shifts(state: State) -> set[str]:
    return {name for degree in state.values() for name, _ in (*degree.power, *degree.slope)}


def _renamed(state: State, names: Mapping[str, str]) -> State:
    return {n: renamed(degree, names) for n, degree in state.items()} if names else dict(state)
