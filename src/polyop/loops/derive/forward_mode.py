"""Forward mode: the loops run once, and the tangent of each statement runs before it.

    y[i] = x[i] * w[i]     ->     t_y[i] = t_x[i] * w[i] + x[i] * t_w[i]
                                  y[i] = x[i] * w[i]

Of ``x[f] = e`` the tangent of x[f] becomes that of e, of ``x[f] += e`` that of e is added to it, and
``x[f] *= e`` follows the product rule. A ``max`` or ``min`` over a loop has the tangent of the last of equal
elements, as in reverse mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.grammar import (
    BOOL,
    INT,
    Assign,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Size,
    Stmt,
    Store,
    Type,
    Var,
    substitute,
    walk,
)
from ..ir.operate import operate
from ..ir.types import cast, is_real
from .activity import active
from .derivation import Derivation
from .names import Names
from .partials import number, push


def forward_mode(derivation: Derivation) -> Derivation:
    """Return the derivation with the kernel of the tangents; all of the primal is still in it."""
    tangent = _Tangent(derivation.kernel, derivation.inputs, derivation.outputs)
    buffers = derivation.kernel.buffers
    shapes = {tangent.given[n]: buffers[n].shape for n in derivation.inputs}
    return derivation.with_(kernel=tangent.run(), owners={}, shapes=shapes)


class _Tangent:
    """Derives forward mode of one kernel."""

    def __init__(self, kernel: Kernel, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.kernel, self.inputs = kernel, inputs
        self.names = Names(self.kernel)
        self.tensors = [n for n in self.kernel.parameters if n in self.kernel.buffers]
        self.given = {n: self.names.new(f"t_{n}") for n in self.tensors}
        self.made = {n: self.names.new(f"t_{n}") for n in self.kernel.outputs}
        self.moved = {
            n: self.given.get(n) or self.made.get(n) or self.names.new(f"t_{n}")
            for n in sorted(active(self.kernel, inputs, outputs))
        }

    def run(self) -> Kernel:
        """Return the kernel, with every tensor among its parameters."""
        outputs = tuple(self.made[n] for n in self.kernel.outputs)
        parameters = (*self.tensors, *self.given.values(), *self.kernel.attributes)
        return replace(
            self.kernel,
            name=f"{self.kernel.name}__tangent",
            parameters=parameters,
            buffers=self._buffers(),
            outputs=outputs,
            body=self._block(self.kernel.body),
            derived=True,
        )

    def _block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(s for node in body for s in self._node(node))

    def _node(self, node: Stmt) -> list[Stmt]:
        match node:
            case For():
                return self._last_of_equals(node) or [replace(node, body=self._block(node.body))]
            case If():
                return [replace(node, body=self._block(node.body), orelse=self._block(node.orelse))]
            case Store() if node.buffer in self.moved:
                return [*self._tangent(node), node]  # the tangent first: it reads what was there before
        return [node]

    def _tangent(self, node: Store) -> list[Stmt]:
        of = Type(self.kernel.buffers[node.buffer].dtype)
        own = Load(node.buffer, node.index, of, node.line)
        moved = self._of(node.value)
        if node.op in ("max", "min"):
            taken = operate(">=" if node.op == "max" else "<=", node.value, own)
            return [If(taken, (self._set(node, moved),), (), node.line)]
        if node.op == "*":
            if moved is None:
                return [self._set(node, node.value, "*")]
            kept = operate("*", replace(own, buffer=self.moved[node.buffer]), node.value)
            return [self._set(node, operate("+", kept, operate("*", own, moved)))]
        return [] if node.op == "+" and moved is None else [self._set(node, moved, node.op)]

    def _of(self, value: Expr) -> Expr | None:
        """Return the tangent of an expression, None for zero."""

        def moved(load: Load) -> Expr | None:
            name = self.moved.get(load.buffer)
            return None if name is None else replace(load, buffer=name)

        found = push(value, moved)
        return None if found is None else cast(found, value.type)

    def _set(self, node: Store, value: Expr | None, op: str = "") -> Store:
        zero = number(0.0, node.value.type)
        return Store(self.moved[node.buffer], node.index, zero if value is None else value, op, node.line)

    def _last_of_equals(self, loop: For) -> list[Stmt] | None:
        """Return a max over a loop and the search for its element, where that is all the loop does.

        The search is itself a max over the loop, of whole numbers: neither has an order to keep.
        """
        node = loop.body[0] if len(loop.body) == 1 else None
        if not isinstance(node, Store) or node.op not in ("max", "min") or node.buffer not in self.moved:
            return None
        reads = {e.buffer for e in (*walk(node), *walk(loop.lo)) if isinstance(e, Load)}
        if node.buffer in reads or not _is_exact(node.value) or _names(node.index, loop.var):
            return None
        of = Type(self.kernel.buffers[node.buffer].dtype)
        last, here = Var(self.names.new("last"), INT), Var(self.names.new(loop.var), INT)
        none = Const(-1, INT)
        equal = operate("==", node.value, Load(node.buffer, node.index, of, node.line))
        place = operate("-", Var(loop.var, INT), loop.lo)
        search = Assign(last.name, Op("select", (equal, place, none), INT), "max", node.line)
        at = operate("+", last, loop.lo)
        found = self._set(node, self._of(node.value))
        return [
            loop,
            Assign(last.name, none, "", node.line),
            replace(loop, var=here.name, body=(substitute(search, {loop.var: here}),)),
            If(Op("<", (none, last), BOOL), (substitute(found, {loop.var: at}),), (), node.line),
        ]

    def _buffers(self) -> dict[str, Buffer]:
        own = self.kernel.buffers
        buffers = {n: own[n] for n in self.tensors}
        for name, handed in self.given.items():
            there = own[name].shape if name in self.inputs else ()
            shape: tuple[Expr, ...] = tuple(Size(handed, k) for k in range(len(there)))
            dtype = own[name].dtype if name in self.inputs else "bool"
            buffers[handed] = replace(own[name], name=handed, dtype=dtype, shape=shape)
        for name, buffer in own.items():
            if buffer.role != "input":
                buffers[name] = replace(buffer, role="local")
            if buffer.role == "local" and name in self.moved:
                buffers[self.moved[name]] = replace(buffer, name=self.moved[name])
        for name, moved in self.made.items():
            shape = own[name].shape if is_real(self.kernel, name) else (Const(1, INT),)
            buffers[moved] = replace(own[name], name=moved, shape=shape)
        return buffers


def _is_exact(value: Expr) -> bool:
    """Whether computing a value twice gives the same bits, however it is compiled."""
    if isinstance(value, Op):
        return value.name in ("neg", "abs", "max", "min", "cast") and all(map(_is_exact, value.args))
    return isinstance(value, (Load, Const))


def _names(index: tuple[Expr, ...], var: str) -> bool:
    return any(isinstance(e, Var) and e.name == var for i in index for e in walk(i))
