"""Stop gradients at running maxima that no output depends on.

An online softmax walks over its row once. When the maximum changes, it rescales what it has summed:

    new = max(top, x)
    total = total * exp(top - new) + exp(x - new)
    top = new

``total`` is ``A * exp(-top)`` before and after each iteration, whatever numbers the maxima are. The analysis
runs the kernel on degrees (shift_degrees.py). Each maximum is a shift of its own. A loop is run until the
degrees at its head stay the same, expressed by the shift that ``top`` holds there. If every output is FREE at
the end, its derivative with respect to all maxima is exactly zero.

The degree of a tensor is that of any one of its elements. This is enough where all accesses in a loop use the
same element in one iteration (:func:`elementwise`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..ir.grammar import Const, Expr, For, If, Kernel, Load, Op, Stmt, Store, Type, Var, statements, walk
from ..ir.note import Note
from ..ir.types import is_real
from .derivation import SCALAR, Derivation
from .shift_degrees import FREE, UNKNOWN, ZERO, Degree, degree_of, joined, renamed, shift
from .stop_shift_gradients import with_stopped_reads

State = dict[str, Degree]
"""By buffer, the degree of its elements; one that is missing is ZERO."""
ROUNDS = 4
"""A loop whose degrees still change after so many rounds is UNKNOWN."""


def stop_running_shifts(derivation: Derivation) -> Derivation:
    """Return the derivation with gradients stopped at running maxima that no output depends on."""
    for group in _groups(derivation.kernel):
        given = {n: FREE for n, b in derivation.kernel.buffers.items() if b.role not in ("local", "output")}
        state = _Degrees(derivation.kernel, group).after(given, derivation.kernel.body)
        if all(state.get(name, ZERO) in (FREE, ZERO) for name in derivation.outputs):
            derivation = _stopped(derivation, group)
    return derivation


def _stopped(derivation: Derivation, group: Sequence[str]) -> Derivation:
    kernel = derivation.kernel
    for name in group:
        kernel = replace(kernel, body=tuple(with_stopped_reads(s, name) for s in kernel.body))
    notes = (
        Note(kernel.buffers[n].line, f"no output depends on {n}: it gets no gradient", "stop_running_shifts")
        for n in group
    )
    return derivation.with_(*notes, kernel=kernel)


def _groups(kernel: Kernel) -> Iterator[tuple[str, ...]]:
    """Yield the temporaries of one element that hold a running maximum or minimum, and its copies."""
    stores = [s for s in statements(kernel.body) if isinstance(s, Store) and _is_single(kernel, s.buffer)]
    found: set[str] = set()
    for first in stores:
        if not is_extreme(first) or first.buffer in found:
            continue
        group = {first.buffer}
        before: set[str] = set()
        while before != group:
            before = set(group)
            for store in stores:
                value = store.value
                if isinstance(value, Load) and not store.op and _is_single(kernel, value.buffer):
                    pair = {store.buffer, value.buffer}
                    group |= pair if pair & group else set()
        found |= group
        if len(group) > 1 and any(_is_subtracted(s, group) for s in statements(kernel.body)):
            yield tuple(sorted(group))


def _is_single(kernel: Kernel, name: str) -> bool:
    buffer = kernel.buffers[name]
    return buffer.role == "local" and buffer.shape == SCALAR and is_real(kernel, name)


def is_extreme(store: Store) -> bool:
    """Whether a statement stores a maximum or a minimum."""
    value = store.value
    return store.op in ("max", "min") or (isinstance(value, Op) and value.name in ("max", "min"))


def _is_subtracted(node: Stmt, group: set[str]) -> bool:
    """Whether a shift of the group is in the argument of an exponential."""
    exponentials = [e for e in walk(node) if isinstance(e, Op) and e.name == "exp"]
    return any(isinstance(x, Load) and x.buffer in group for e in exponentials for x in walk(e))


class _Degrees:
    """Runs statements on degrees; the buffers of ``group`` hold the shifts.

    Names of shifts: ``t#5`` is what the fifth store makes; ``t@j`` is what ``t`` holds at the head of loop j;
    ``tif7`` is what it holds after a condition. Names that an iteration makes are unknown outside its loop.
    """

    def __init__(self, kernel: Kernel, group: Sequence[str]) -> None:
        self.kernel = kernel
        self.carried_first: Sequence[str] = group
        self.group = frozenset(group)
        self.elementwise = {name for name in kernel.buffers if elementwise(kernel, name)}
        self.count = 0

    def after(self, state: State, body: Sequence[Stmt]) -> State:
        """Return the degrees after statements."""
        for node in body:
            match node:
                case Store() if is_real(self.kernel, node.buffer):
                    state = {**state, node.buffer: self._stored(node, state)}
                case If():
                    then, other = self.after(state, node.body), self.after(state, node.orelse)
                    state = self._either(then, other, f"if{self._next()}")
                case For():
                    state = self._loop(node, state)
                case _:
                    pass
        return state

    def _next(self) -> int:
        self.count += 1
        return self.count

    def _stored(self, node: Store, state: State) -> Degree:
        if node.buffer in self.group and not self._is_copy(node):
            return shift(f"{node.buffer}#{self._next()}")
        value: Expr = node.value
        if node.op:
            old = Load(node.buffer, node.index, Type(self.kernel.buffers[node.buffer].dtype))
            value = Op(node.op, (old, node.value), old.type)
        degree = degree_of(value, lambda load: self._read(load, state))
        if node.buffer not in self.elementwise:  # other elements keep the degree that they had
            degree = joined(degree, state.get(node.buffer, ZERO))
        return UNKNOWN if degree is None else degree

    def _is_copy(self, node: Store) -> bool:
        """Whether a statement stores a constant, or what another shift holds. All others make a new shift."""
        value = node.value
        number = value.args[0] if isinstance(value, Op) and value.name in ("neg", "cast") else value
        is_copy = isinstance(value, Load) and value.buffer in self.group
        return not node.op and (is_copy or isinstance(number, Const))

    def _read(self, load: Load, state: State) -> Degree:
        is_input = self.kernel.buffers[load.buffer].role == "input"
        return FREE if is_input or not is_real(self.kernel, load.buffer) else state.get(load.buffer, ZERO)

    def _loop(self, loop: For, entry: State) -> State:
        """Return the degrees after a loop: those at its head, and of its own elements those at its end."""
        tag = f"@{loop.var}"
        entry = _renamed(entry, {name: f"{name}#{self._next()}" for name in _shifts(entry) if tag in name})
        own = {n for n in self.elementwise if _uses(loop, n)}
        outside = _shifts(entry)
        before, self.carried_first = self.carried_first, self._carried_first(loop)
        head = entry
        for _ in range(ROUNDS):
            end = self.after(head, loop.body)
            shared = {name: degree for name, degree in end.items() if name not in own}
            found = {**self._either(entry, shared, tag), **{n: entry[n] for n in own if n in entry}}
            if found == head:
                break
            head = found
        else:
            self.carried_first = before
            return dict.fromkeys((*head, *end), UNKNOWN)
        self.carried_first = before
        # the shifts that an iteration makes have no meaning outside of it
        ended = {n: _known(end.get(n, ZERO), outside) for n in own}
        return {**head, **ended}

    def _carried_first(self, loop: For) -> list[str]:
        """Return the shifts, those first that an iteration reads before it writes them."""
        first: dict[str, bool] = {}
        for node in statements(loop.body):
            for expr in walk(node):
                if isinstance(expr, Load) and expr.buffer in self.group:
                    first.setdefault(expr.buffer, True)
            if isinstance(node, Store) and node.buffer in self.group:
                first.setdefault(node.buffer, bool(node.op))
        return sorted(self.group, key=lambda name: (not first.get(name, False), name))

    def _either(self, one: State, other: State, tag: str) -> State:
        """Return the degrees where either state holds, expressed by the shifts that buffers hold there."""
        states, names = [dict(one), dict(other)], [dict[str, str](), dict[str, str]()]
        for buffer in self.carried_first:
            degrees = [state.get(buffer, ZERO) for state in states]
            if degrees[0] == degrees[1] or UNKNOWN in degrees:
                continue
            held = [_only_shift(degree) for degree in degrees]
            if any(h is None and d not in (FREE, ZERO) for h, d in zip(held, degrees, strict=True)):
                continue
            if any(h in known for h, known in zip(held, names, strict=True)):
                continue  # another buffer holds the same shift in one of the states only
            name = f"{buffer}{tag}"
            for state, known, h in zip(states, names, held, strict=True):
                if h is None:
                    state[buffer] = shift(name)  # a number that depends on no shift: it may be called one
                else:
                    known[h] = name
        if tag.startswith("@"):  # a shift of the iteration that no buffer hands on to the next one
            known_there = {*names[1], *_shifts(one)}
            states[1] = {n: _known(degree, known_there) for n, degree in states[1].items()}
        first, second = (_renamed(state, known) for state, known in zip(states, names, strict=True))
        both = {n: joined(first.get(n, ZERO), second.get(n, ZERO)) for n in {*first, *second}}
        return {n: UNKNOWN if degree is None else degree for n, degree in both.items()}


def _known(degree: Degree, names: set[str]) -> Degree:
    """Return a degree, or UNKNOWN if it is in terms of other shifts."""
    return degree if all(name in names for name, _ in (*degree.power, *degree.slope)) else UNKNOWN


def _only_shift(degree: Degree) -> str | None:
    """Return the shift that a degree is the plain value of, if it is one."""
    is_plain = not degree.power and len(degree.slope) == 1 and degree.slope[0][1] == 1.0
    return degree.slope[0][0] if is_plain else None


def _shifts(state: State) -> set[str]:
    return {name for degree in state.values() for name, _ in (*degree.power, *degree.slope)}


def _renamed(state: State, names: Mapping[str, str]) -> State:
    return {n: renamed(degree, names) for n, degree in state.items()} if names else dict(state)


def _uses(loop: For, name: str) -> bool:
    """Whether an access of a buffer in a loop has the loop's variable as an index."""
    return any(Var(loop.var, i.type) == i for index in _indices(loop.body, name) for i in index)


def _indices(body: Sequence[Stmt], name: str) -> Iterator[tuple[Expr, ...]]:
    """Yield the index of each access of a buffer."""
    for node in statements(tuple(body)):
        if isinstance(node, Store) and node.buffer == name:
            yield node.index
        for expr in walk(node):
            if isinstance(expr, Load) and expr.buffer == name:
                yield expr.index


def elementwise(kernel: Kernel, name: str) -> bool:
    """Whether all accesses of a buffer walk over the same elements, one in each iteration of their loops.

    Each axis is always indexed by a constant, or by the variable of a loop with the same range. A loop whose
    variable indexes an axis in one access does so in all accesses inside it.
    """
    loops = {s.var: s for s in statements(kernel.body) if isinstance(s, For)}
    ranges: dict[int, set[object]] = {}
    axes: dict[str, int] = {}
    for index in _indices(kernel.body, name):
        for axis, expr in enumerate(index):
            if isinstance(expr, Var) and expr.name in loops:
                loop = loops[expr.name]
                ranges.setdefault(axis, set()).add((loop.lo, loop.hi))
                if axes.setdefault(expr.name, axis) != axis or not _is_fixed(kernel, (loop.lo, loop.hi)):
                    return False
            elif isinstance(expr, Const):
                ranges.setdefault(axis, set()).add(expr)
            else:
                return False
    inside = all(
        index[axis] == Var(var, index[axis].type)
        for var, axis in axes.items()
        for index in _indices(loops[var].body, name)
    )
    return inside and all(len(found) == 1 for found in ranges.values())


def _is_fixed(kernel: Kernel, exprs: Sequence[Expr]) -> bool:
    """Whether expressions have the same value wherever they are: they read sizes and attributes alone."""
    leaves = [e for expr in exprs for e in walk(expr)]
    return not any(
        isinstance(e, Load) or (isinstance(e, Var) and e.name not in kernel.attributes) for e in leaves
    )
