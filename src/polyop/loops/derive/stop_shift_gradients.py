"""Maxima that outputs do not depend on: what softmax subtracts, so that no exponential is too large.

Followed is how each value depends on one maximum t: as ``A``, as ``A + s * t`` or as ``A * exp(p * t)`` with
an A that does not. Where every output is an A, its derivative by t is exactly zero, whatever the inputs
are: what t would be handed is not computed, nor which element was the greatest. A t that changes after it
was read, as a running maximum does, is several: ``old - t`` is no A.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..analysis.tree import Place
from ..ir.grammar import (
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Type,
    Var,
    rewrite,
    statements,
    walk,
)
from ..ir.types import is_real, kind
from ..program import Note
from .derivation import Derivation
from .order import Order
from .scopes import scopes_of


class Degree(NamedTuple):
    """Of ``A * exp(power * t)``, or of ``A + slope * t``: one of the two is zero."""

    power: float = 0.0
    slope: float = 0.0


FREE = Degree()
ZERO = Degree(float("inf"), 0.0)
"""Of the number zero, which has any power."""
UNKNOWN = Degree(float("inf"), float("inf"))
Found = Degree | None
"""None: nothing seen yet."""


def stop_shift_gradients(derivation: Derivation) -> Derivation:
    """Return the derivation with gradients stopped at maxima that no output depends on."""
    kernel, shifts = _without_shifts(derivation)
    buffers = kernel.buffers
    notes = (
        Note(buffers[n].line, f"no output depends on {n}: it gets no gradient", "stop_shift_gradients")
        for n in shifts
    )
    return derivation.with_(*notes, kernel=kernel)


def _without_shifts(derivation: Derivation) -> tuple[Kernel, list[str]]:
    """Return the kernel, and the maxima at which gradients were stopped."""
    kernel, session = derivation.kernel, derivation.session
    nodes = list(statements(kernel.body))
    extremes = {s.buffer for s in nodes if isinstance(s, Store) and s.op in ("max", "min")}
    names = sorted(name for name in extremes if is_real(kernel, name))
    if not names or not any(isinstance(e, Op) and e.name == "exp" for s in nodes for e in walk(s)):
        return kernel, []
    found: list[str] = []
    order = Order(kernel, session, {**derivation.owners, **scopes_of(kernel, session, kernel.outputs)})
    for name in names:
        others = [o for o in derivation.outputs if o != name]
        single = _is_single(order, name) and _is_settled(order, name)
        if single and _Degrees(order, name).are_free(others):
            kernel = replace(kernel, body=tuple(_stopped(s, name) for s in kernel.body))
            found.append(name)
    return kernel, found


def _is_single(order: Order, name: str) -> bool:
    """Whether each iteration of a buffer's scope uses one element of it."""
    indices = {a.node.index for x in order.model.leaves for a in x.accesses if a.target == name}
    used = {e.name for index in indices for i in index for e in walk(i) if isinstance(e, Var)}
    loads = any(isinstance(e, Load) for index in indices for i in index for e in walk(i))
    return len(indices) == 1 and not loads and used <= {*order.scopes.get(name, ())}


def _is_settled(order: Order, name: str) -> bool:
    """Whether others read a buffer only when nothing changes it any more: there is one t, not several."""
    for place in order.places.values():
        node = place.node
        if not isinstance(node, Store) or node.buffer == name:
            continue
        for load in {e for e in walk(node.value) if isinstance(e, Load) and e.buffer == name}:
            if any(order.overwritten(place.leaf, a) is not None for a in order.reads(place.leaf, load)):
                return False
    return True


def _stopped(node: Stmt, name: str) -> Stmt:
    def change(expr: Expr) -> Expr:
        ours = isinstance(expr, Load) and expr.buffer == name
        return Op("stop_gradient", (expr,), expr.type) if ours else expr

    match node:
        case For():
            return replace(node, body=tuple(_stopped(s, name) for s in node.body))
        case If():
            then, other = (tuple(_stopped(s, name) for s in body) for body in (node.body, node.orelse))
            return replace(node, body=then, orelse=other)
        case Store(buffer=buffer) if buffer != name:
            return replace(node, value=rewrite(node.value, change))
    return node


class _Degrees:
    """How what each statement stores depends on one buffer."""

    def __init__(self, order: Order, target: str) -> None:
        self.order, self.target = order, target
        self.scope = order.scopes.get(target, ())
        self.known: dict[str, Found] = {}
        self._sources: dict[tuple[str, Load], list[str]] = {}

    def are_free(self, outputs: Sequence[str]) -> bool:
        """Whether no output depends on the buffer in the end."""
        kernel = self.order.kernel
        stores = [
            p
            for p in self.order.places.values()
            if isinstance(p.node, Store) and p.node.buffer != self.target and is_real(kernel, p.node.buffer)
        ]
        changed = True
        while changed:
            before = dict(self.known)
            for place in stores:
                leaf = place.leaf.id
                self.known[leaf] = _both(self.known.get(leaf), self._stored(place))
            changed = self.known != before
        last = [leaf.id for name in outputs for leaf in self.order.written_last(name)]
        return all(self.known.get(leaf) in (None, FREE, ZERO) for leaf in last)

    def _stored(self, place: Place) -> Found:
        node = place.node
        found = self._value(node.value, place.leaf.id)
        if node.op == "*":  # what was there keeps its degree
            return None if found in (None, FREE, ZERO) else UNKNOWN
        return UNKNOWN if node.op == "+" and found is not None and found.slope else found

    def _value(self, expr: Expr, leaf: str) -> Found:
        match expr:
            case Const(value=value):
                return ZERO if value == 0 else FREE
            case Load():
                return self._read(expr, leaf)
            case Op(name=name, args=args) if kind(expr.type) == "f" and name != "stop_gradient":
                found = [self._value(a, leaf) for a in (args[1:] if name == "select" else args)]
                if any(f is None for f in found):
                    return None
                return _combined(expr, [f for f in found if f is not None])
        return FREE

    def _read(self, load: Load, leaf: str) -> Found:
        buffer = self.order.kernel.buffers[load.buffer]
        if load.buffer == self.target:
            return Degree(slope=1.0)
        if buffer.role == "input" or kind(Type(buffer.dtype)) != "f":
            return FREE
        key = leaf, load
        if key not in self._sources:
            self._sources[key] = [x.id for x in self.order.sources(self.order.places[leaf].leaf, load)]
        found: Found = ZERO if buffer.zeroed else None
        for source in self._sources[key]:
            found = _both(found, self.known.get(source))
        alone = self.order.scopes.get(load.buffer, ())[: len(self.scope)] == self.scope
        return found if alone or found in (None, FREE, ZERO) else UNKNOWN  # else of another iteration's t


def _both(a: Found, b: Found) -> Found:
    """Return the degree of what is one or the other."""
    if a is None or b is None or a == b:
        return b if a is None else a
    for one, other in ((a, b), (b, a)):
        if one == ZERO and other.slope == 0:
            return other
    return UNKNOWN


def _combined(node: Op, found: Sequence[Degree]) -> Degree:
    if UNKNOWN in found:
        return UNKNOWN
    if node.name in RULES:
        return RULES[node.name](node, *found)
    return FREE if all(f in (FREE, ZERO) for f in found) else UNKNOWN


def _plus(node: Op, a: Degree, b: Degree) -> Degree:
    if ZERO in (a, b):
        return b if a == ZERO else a
    if a.power == b.power == 0:
        slope = a.slope + (-b.slope if node.name == "-" else b.slope)
        return Degree(0.0, slope)
    return a if a == b else UNKNOWN


def _times(node: Op, a: Degree, b: Degree) -> Degree:
    if ZERO in (a, b):
        return ZERO
    for one, other, factor in ((a, b, node.args[1]), (b, a, node.args[0])):
        if one.slope:
            value = factor.value if isinstance(factor, Const) else None
            return UNKNOWN if value is None or other != FREE else Degree(0.0, one.slope * float(value))
    return Degree(a.power + b.power)


def _over(_node: Op, a: Degree, b: Degree) -> Degree:
    if a.slope or b.slope or b == ZERO:
        return UNKNOWN
    return ZERO if a == ZERO else Degree(a.power - b.power)


def _either(_node: Op, a: Degree, b: Degree) -> Degree:
    found = _both(a, b)
    assert found is not None
    return found


def _scaled(by: float) -> Callable[[Op, Degree], Degree]:
    def rule(_node: Op, a: Degree) -> Degree:
        return a if a == ZERO else UNKNOWN if a.slope else Degree(a.power * by)

    return rule


RULES: Mapping[str, Callable[..., Degree]] = {
    "+": _plus,
    "-": _plus,
    "*": _times,
    "/": _over,
    "neg": lambda node, a: a if a == ZERO else Degree(a.power, -a.slope),
    "exp": lambda node, a: FREE if a == ZERO else UNKNOWN if a.power else Degree(a.slope),
    "log": lambda node, a: FREE if a == ZERO else UNKNOWN if a.slope else Degree(0.0, a.power),
    "abs": _scaled(1.0),
    "sqrt": _scaled(0.5),
    "rsqrt": lambda node, a: FREE if a == ZERO else _scaled(-0.5)(node, a),
    "max": _either,
    "min": _either,
    "select": _either,
    "cast": lambda node, a: a,
}
"""By operator; what has no row depends on t where an argument does, nobody knows how."""
