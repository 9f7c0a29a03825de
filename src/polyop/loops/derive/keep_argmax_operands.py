"""Store the operands of a ``max`` or ``min`` over a loop, so that the winner can be found again.

    y = max(y, x[i] * x[i])     ->     y_of[i] = x[i] * x[i]
                                       y = max(y, y_of[i])

The gradient searches for the element that equals the result. A value that is computed twice may differ in its
last bit, and then no element would be equal: so both comparisons read the same memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..analysis.ranges import length, span
from ..ir.grammar import INT, Buffer, Const, For, Kernel, Load, Stmt, Store, Type, Var
from ..ir.rewriter import Place, with_statements
from .activity import active
from .derivation import SCALAR_INDEX, SCALAR_SHAPE, Derivation
from .names import Names
from .scopes import Scopes


def keep_argmax_operands(derivation: Derivation) -> Derivation:
    """Return the derivation in which ``max=`` and ``min=`` of counted loops read operands from memory."""
    kernel = derivation.kernel
    gradients = active(kernel, derivation.inputs, derivation.outputs)
    rewriter = _Rewriter(kernel, dict(derivation.owners), gradients)
    body = with_statements(kernel.body, rewriter.change)
    if not rewriter.buffers:
        return derivation
    kernel = replace(kernel, body=body, buffers={**kernel.buffers, **rewriter.buffers})
    return derivation.with_(kernel=kernel, owners=rewriter.scopes)


class _Rewriter:
    """Rewrites a kernel's body; ``buffers`` are the new ones, and ``scopes`` the owners of all."""

    def __init__(self, kernel: Kernel, scopes: Scopes, active_buffers: frozenset[str]) -> None:
        self.kernel, self.scopes, self.active = kernel, dict(scopes), active_buffers
        self.names = Names(kernel)
        self.buffers: dict[str, Buffer] = {}

    def change(self, node: Stmt, place: Place) -> list[Stmt] | None:
        """Return the store of an operand and the update that reads it; None keeps a statement."""
        match node:
            case Store(op="max" | "min", value=value) if self._is_computed_twice(node):
                store = self._store_of_operand(node, place.loops)
                if store is not None:
                    operand = Load(store.buffer, store.index, Type(value.type.dtype), node.line)
                    return [store, replace(node, value=operand)]
        return None

    def _is_computed_twice(self, node: Store) -> bool:
        """Whether the operand would be computed twice: for the max or min, and for the winner's search."""
        value = node.value
        if node.buffer not in self.active:
            return False
        if not isinstance(value, Load):
            return not isinstance(value, Const)
        own, scope = (self.scopes.get(name, ()) for name in (value.buffer, node.buffer))
        return self.kernel.buffers[value.buffer].role == "local" and len(own) > len(scope)

    def _store_of_operand(self, node: Store, loops: Sequence[For]) -> Store | None:
        """Return a store of the operand into a new buffer, with one element for each iteration of a scope.

        None where the number of iterations depends on data: then each step chooses, see recording.py.
        """
        scope = self.scopes.get(node.buffer, ())
        inner = [loop for loop in loops if loop.var not in scope]
        spans = [ends for loop in inner if (ends := span(loop, loops))]
        if len(spans) < len(inner):
            return None
        name = self.names.new(f"{node.buffer}_of")
        shape = tuple(length(*ends) for ends in spans) or SCALAR_SHAPE
        self.buffers[name] = Buffer(name, node.value.type.dtype, shape, "local", node.line, exact=True)
        self.scopes[name] = scope
        index = tuple(Var(loop.var, INT) - low for loop, (low, _) in zip(inner, spans, strict=True))
        return Store(name, index or SCALAR_INDEX, node.value, "", node.line)
