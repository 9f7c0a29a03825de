"""Forward mode: the loops run once, and the tangent of each statement runs before it.

    y[i] = x[i] * w[i]     ->     t_y[i] = t_x[i] * w[i] + x[i] * t_w[i]
                                  y[i] = x[i] * w[i]

``x[f] = e`` sets the tangent of ``x[f]`` to that of ``e``. ``x[f] += e`` adds it, and ``x[f] *= e`` follows
the product rule. A ``max`` or ``min`` over a loop has the tangent of the last of equal elements, as in
reverse mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..analysis.searches import search
from ..ir.derivatives import number
from ..ir.grammar import (
    INT,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Var,
    own_sizes,
)
from ..ir.operate import operate
from ..ir.rewriter import Place, with_statements
from ..ir.types import cast, is_real
from ..ir.uses import tensors_of, variables_of
from .activity import active
from .derivation import SCALAR_SHAPE, Derivation
from .names import Names
from .partials import tangent_of


def forward_mode(derivation: Derivation) -> Derivation:
    """Return the derivation with the kernel of the tangents; all of the primal is still in it."""
    tangent = _Tangent(derivation.kernel, derivation.inputs, derivation.outputs)
    buffers = derivation.kernel.buffers
    shapes = {tangent.input_tangents[n]: buffers[n].shape for n in derivation.inputs}
    return derivation.with_(kernel=tangent.run(), owners={}, shapes=shapes)


class _Tangent:
    """Derives forward mode of one kernel."""

    def __init__(self, kernel: Kernel, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.kernel, self.inputs = kernel, inputs
        self.names = Names(self.kernel)
        self.input_tangents = {n: self.names.new(f"t_{n}") for n in kernel.tensor_parameters}
        self.output_tangents = {n: self.names.new(f"t_{n}") for n in self.kernel.outputs}
        # by active buffer
        self.tangents = {
            n: self.input_tangents.get(n) or self.output_tangents.get(n) or self.names.new(f"t_{n}")
            for n in sorted(active(self.kernel, inputs, outputs))
        }

    def run(self) -> Kernel:
        """Return the kernel, with every tensor among its parameters."""
        outputs = tuple(self.output_tangents[n] for n in self.kernel.outputs)
        parameters = (*self.kernel.tensor_parameters, *self.input_tangents.values(), *self.kernel.attributes)
        return replace(
            self.kernel,
            name=f"{self.kernel.name}__tangent",
            parameters=parameters,
            buffers=self._buffers(),
            outputs=outputs,
            body=with_statements(self.kernel.body, self._change),
            derived=True,
        )

    def _change(self, node: Stmt, _place: Place) -> list[Stmt] | None:
        """Return what comes in place of a statement, or None to keep it."""
        match node:
            case For():
                return self._last_of_equals(node) or None
            case Store() if node.buffer in self.tangents:
                return [*self._tangent(node), node]  # the tangent reads the old value of the element
        return None

    def _tangent(self, node: Store) -> list[Stmt]:
        """Return the statements that set the tangent of a stored element."""
        tangent = self._of(node.value)
        if node.op in ("max", "min"):
            wins = operate(">=" if node.op == "max" else "<=", node.value, node.target)
            return [If(wins, (self._set(node, tangent),), (), node.line)]
        if node.op == "*":
            if tangent is None:
                return [self._set(node, node.value, "*")]
            first = replace(node.target, buffer=self.tangents[node.buffer]) * node.value
            return [self._set(node, first + node.target * tangent)]
        return [] if node.op == "+" and tangent is None else [self._set(node, tangent, node.op)]

    def _of(self, value: Expr) -> Expr | None:
        """Return the tangent of an expression, None for zero."""

        def of_load(load: Load) -> Expr | None:
            name = self.tangents.get(load.buffer)
            return None if name is None else replace(load, buffer=name)

        tangent = tangent_of(value, of_load)
        return None if tangent is None else cast(tangent, value.type)

    def _set(self, node: Store, value: Expr | None, op: str = "") -> Store:
        zero = number(0.0, node.value.type)
        return Store(self.tangents[node.buffer], node.index, zero if value is None else value, op, node.line)

    def _last_of_equals(self, loop: For) -> list[Stmt] | None:
        """Return a max over a loop, and then the search for the element that wins and its tangent.

        None if the loop does more than the max. The search is itself a max over the loop, of integers, so
        both may run in any order.
        """
        node = loop.body[0] if len(loop.body) == 1 else None
        if not isinstance(node, Store) or node.op not in ("max", "min") or node.buffer not in self.tangents:
            return None
        if node.buffer in tensors_of(node, loop.lo) or loop.var in variables_of(*node.index):
            return None
        if not _is_exact(node.value):
            return None
        last = Var(self.names.new("last"), INT)
        over = replace(loop, var=self.names.new(loop.var))
        equal = operate("==", node.value, node.target)
        tangent = self._set(node, self._of(node.value))
        return [loop, *search(loop.var, over, equal, [tangent], last, node.line)]

    def _buffers(self) -> dict[str, Buffer]:
        """Return the buffers of the primal, and one for each tangent."""
        own = self.kernel.buffers
        buffers = {n: own[n] for n in self.kernel.tensor_parameters}
        for name, tangent in self.input_tangents.items():
            if name in self.inputs:
                buffers[tangent] = replace(own[name], name=tangent, shape=own_sizes(tangent, own[name]))
            else:
                buffers[tangent] = replace(
                    own[name], name=tangent, dtype="bool", shape=(), pairs=False, absent=True
                )
        for name, buffer in own.items():
            if buffer.role != "input":
                buffers[name] = replace(buffer, role="local")
            if buffer.role == "local" and name in self.tangents:
                buffers[self.tangents[name]] = replace(buffer, name=self.tangents[name])
        for name, tangent in self.output_tangents.items():
            shape = own[name].shape if is_real(self.kernel, name) else SCALAR_SHAPE
            buffers[tangent] = replace(own[name], name=tangent, shape=shape)
        return buffers


def _is_exact(value: Expr) -> bool:
    """Whether computing a value twice gives the same bits, however it is compiled."""
    if isinstance(value, Op):
        return value.name in ("neg", "abs", "max", "min", "cast") and all(map(_is_exact, value.args))
    return isinstance(value, (Load, Const))
