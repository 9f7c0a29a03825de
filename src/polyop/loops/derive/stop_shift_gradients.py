"""Stop gradients at maxima that no output depends on.

A softmax subtracts the maximum ``t`` so that no exponential overflows. Its result does not depend on ``t``:

    exp(x - t) / sum(exp(x - t))

The analysis follows how each value depends on one maximum ``t``. With an ``A`` that does not depend on it:

    A                   degree (power 0, slope 0), FREE
    A + s * t           degree (power 0, slope s)
    A * exp(p * t)      degree (power p, slope 0)

If every output is FREE, its derivative with respect to ``t`` is exactly zero, for all inputs. Then the
gradient needs neither the adjoint of ``t`` nor the position of the maximum. A running maximum is not one
``t``: it changes after it was read, so ``old - t`` is not FREE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..analysis.tree import StatementNode
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
from ..ir.note import Note
from ..ir.types import is_real, kind
from .derivation import Derivation
from .order import Order
from .scopes import scopes_of


class Degree(NamedTuple):
    """The degree of ``A * exp(power * t)``, or of ``A + slope * t``: one of the two numbers is zero."""

    power: float = 0.0
    slope: float = 0.0


FREE = Degree()
ZERO = Degree(float("inf"), 0.0)
"""The degree of the number zero, which has any power."""
UNKNOWN = Degree(float("inf"), float("inf"))
MaybeDegree = Degree | None
"""None: no store that reaches the value has a degree yet."""


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
    stopped: list[str] = []
    order = Order(kernel, session, {**derivation.owners, **scopes_of(kernel, session, kernel.outputs)})
    for name in names:
        others = [o for o in derivation.outputs if o != name]
        single = _is_single(order, name) and _is_settled(order, name)
        if single and _Degrees(order, name).are_free(others):
            kernel = replace(kernel, body=tuple(_stopped(s, name) for s in kernel.body))
            stopped.append(name)
    return kernel, stopped


def _is_single(order: Order, name: str) -> bool:
    """Whether each iteration of a buffer's scope uses one element of it."""
    indices = {a.node.index for x in order.model.leaves for a in x.accesses if a.target == name}
    used = {e.name for index in indices for i in index for e in walk(i) if isinstance(e, Var)}
    loads = any(isinstance(e, Load) for index in indices for i in index for e in walk(i))
    return len(indices) == 1 and not loads and used <= {*order.scopes.get(name, ())}


def _is_settled(order: Order, name: str) -> bool:
    """Whether other statements read a buffer only after its last change: there is one t, not several."""
    for place in order.statements.values():
        node = place.node
        if not isinstance(node, Store) or node.buffer == name:
            continue
        for load in {e for e in walk(node.value) if isinstance(e, Load) and e.buffer == name}:
            if any(order.overwritten(place.leaf, a) is not None for a in order.reads(place.leaf, load)):
                return False
    return True


def _stopped(node: Stmt, name: str) -> Stmt:
    """Return a statement in which ``stop_gradient`` is around each read of a buffer."""

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
    """The degree of each statement's value in one buffer, by a fixed point over all stores."""

    def __init__(self, order: Order, target: str) -> None:
        self.order, self.target = order, target
        self.scope = order.scopes.get(target, ())
        self.degrees: dict[str, MaybeDegree] = {}
        self._sources: dict[tuple[str, Load], list[str]] = {}

    def are_free(self, outputs: Sequence[str]) -> bool:
        """Whether the last value of each output is free of the buffer."""
        kernel = self.order.kernel
        stores = [
            p
            for p in self.order.statements.values()
            if isinstance(p.node, Store) and p.node.buffer != self.target and is_real(kernel, p.node.buffer)
        ]
        changed = True
        while changed:
            before = dict(self.degrees)
            for place in stores:
                leaf = place.leaf.id
                self.degrees[leaf] = _both(self.degrees.get(leaf), self._stored(place))
            changed = self.degrees != before
        last = [leaf.id for name in outputs for leaf in self.order.written_last(name)]
        return all(self.degrees.get(leaf) in (None, FREE, ZERO) for leaf in last)

    def _stored(self, place: StatementNode) -> MaybeDegree:
        node = place.node
        degree = self._value(node.value, place.leaf.id)
        if node.op == "*":  # the old value keeps its degree
            return None if degree in (None, FREE, ZERO) else UNKNOWN
        return UNKNOWN if node.op == "+" and degree is not None and degree.slope else degree

    def _value(self, expr: Expr, leaf: str) -> MaybeDegree:
        match expr:
            case Const(value=value):
                return ZERO if value == 0 else FREE
            case Load():
                return self._read(expr, leaf)
            case Op(name=name, args=args) if kind(expr.type) == "f" and name != "stop_gradient":
                degrees = [self._value(a, leaf) for a in (args[1:] if name == "select" else args)]
                if any(degree is None for degree in degrees):
                    return None
                return _combined(expr, [degree for degree in degrees if degree is not None])
        return FREE

    def _read(self, load: Load, leaf: str) -> MaybeDegree:
        buffer = self.order.kernel.buffers[load.buffer]
        if load.buffer == self.target:
            return Degree(slope=1.0)
        if buffer.role == "input" or kind(Type(buffer.dtype)) != "f":
            return FREE
        key = leaf, load
        if key not in self._sources:
            self._sources[key] = [x.id for x in self.order.sources(self.order.statements[leaf].leaf, load)]
        degree: MaybeDegree = ZERO if buffer.zeroed else None
        for source in self._sources[key]:
            degree = _both(degree, self.degrees.get(source))
        same_scope = self.order.scopes.get(load.buffer, ())[: len(self.scope)] == self.scope
        # outside its scope the value may depend on the t of another iteration
        return degree if same_scope or degree in (None, FREE, ZERO) else UNKNOWN


def _both(a: MaybeDegree, b: MaybeDegree) -> MaybeDegree:
    """Return the degree of a value that has one of two degrees."""
    if a is None or b is None or a == b:
        return b if a is None else a
    for one, other in ((a, b), (b, a)):
        if one == ZERO and other.slope == 0:
            return other
    return UNKNOWN


def _combined(node: Op, degrees: Sequence[Degree]) -> Degree:
    """Return the degree of an operator's result, from those of its arguments."""
    if UNKNOWN in degrees:
        return UNKNOWN
    if node.name in RULES:
        return RULES[node.name](node, *degrees)
    return FREE if all(degree in (FREE, ZERO) for degree in degrees) else UNKNOWN


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
    degree = _both(a, b)
    assert degree is not None
    return degree


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
"""By operator. The result of any other operator is FREE if its arguments are, and UNKNOWN otherwise."""
