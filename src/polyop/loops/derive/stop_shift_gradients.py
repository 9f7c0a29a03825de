"""Stop gradients at maxima that no output depends on.

A softmax subtracts the maximum ``t`` so that no exponential overflows. Its result does not depend on ``t``:

    exp(x - t) / sum(exp(x - t))

The analysis follows how each value depends on one maximum ``t``: its degree, by shift_degrees.py. If every
output is FREE, its derivative with respect to ``t`` is exactly zero, for all inputs. Then the gradient needs
neither the adjoint of ``t`` nor the position of the maximum. A maximum that changes after it was read is not
one ``t``: stop_running_shifts.py is about those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..analysis.tree import StatementNode
from ..ir.grammar import (
    Expr,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Type,
    Var,
    statements,
    walk,
)
from ..ir.note import Note
from ..ir.rewriter import rewrite, with_bodies
from ..ir.types import is_real, kind
from .derivation import Derivation
from .order import Order
from .scopes import scopes_of
from .shift_degrees import FREE, UNKNOWN, ZERO, MaybeDegree, degree_of, joined, shift


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
            kernel = replace(kernel, body=tuple(with_stopped_reads(s, name) for s in kernel.body))
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


def with_stopped_reads(node: Stmt, name: str) -> Stmt:
    """Return a statement in which ``stop_gradient`` is around each read of a buffer."""

    def change(expr: Expr) -> Expr:
        ours = isinstance(expr, Load) and expr.buffer == name
        return Op("stop_gradient", (expr,), expr.type) if ours else expr

    if isinstance(node, Store) and node.buffer != name:
        return replace(node, value=rewrite(node.value, change))
    return with_bodies(node, lambda body: tuple(with_stopped_reads(s, name) for s in body))


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
                self.degrees[leaf] = joined(self.degrees.get(leaf), self._stored(place))
            changed = self.degrees != before
        last = [leaf.id for name in outputs for leaf in self.order.written_last(name)]
        return all(self.degrees.get(leaf) in (None, FREE, ZERO) for leaf in last)

    def _stored(self, place: StatementNode) -> MaybeDegree:
        node = place.node
        degree = degree_of(node.value, lambda load: self._read(load, place.leaf.id))
        if node.op == "*":  # the old value keeps its degree
            return None if degree in (None, FREE, ZERO) else UNKNOWN
        return UNKNOWN if node.op == "+" and degree is not None and degree.slope else degree

    def _read(self, load: Load, leaf: str) -> MaybeDegree:
        buffer = self.order.kernel.buffers[load.buffer]
        if load.buffer == self.target:
            return shift(self.target)
        if buffer.role == "input" or kind(Type(buffer.dtype)) != "f":
            return FREE
        key = leaf, load
        if key not in self._sources:
            self._sources[key] = [x.id for x in self.order.sources(self.order.statements[leaf].leaf, load)]
        degree: MaybeDegree = ZERO if buffer.zeroed else None
        for source in self._sources[key]:
            degree = joined(degree, self.degrees.get(source))
        same_scope = self.order.scopes.get(load.buffer, ())[: len(self.scope)] == self.scope
        # outside its scope the value may depend on the t of another iteration
        return degree if same_scope or degree in (None, FREE, ZERO) else UNKNOWN
