"""Store the operands of a ``max`` or ``min`` over a loop, so that the winner can be found again.

    y = max(y, x[i] * x[i])     ->     y_of[i] = x[i] * x[i]
                                       y = max(y, y_of[i])

The gradient searches for the element that equals the result. A value that is computed twice may differ in its
last bit, and then no element would be equal: so both comparisons read the same memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...core.errors import GradientError
from ..ir.grammar import INT, Buffer, Const, Expr, For, If, Kernel, Load, Stmt, Store, Type, Var
from ..ir.operate import operate
from .derivation import Derivation
from .names import Names
from .ranges import extreme, length
from .scopes import Scopes


def keep_argmax_operands(derivation: Derivation) -> Derivation:
    """Return the derivation in which every ``max=`` and ``min=`` reads its operand from memory.

    Raises ``GradientError`` with the line where the number of operands depends on data.
    """
    kernel = derivation.kernel
    keeper = _Keeper(kernel, dict(derivation.owners))
    body = keeper.body(kernel.body, ())
    if not keeper.buffers:
        return derivation
    kernel = replace(kernel, body=body, buffers={**kernel.buffers, **keeper.buffers})
    return derivation.with_(kernel=kernel, owners=keeper.scopes)


class _Keeper:
    def __init__(self, kernel: Kernel, scopes: Scopes) -> None:
        self.kernel, self.scopes = kernel, dict(scopes)
        self.names = Names(kernel)
        self.buffers: dict[str, Buffer] = {}

    def body(self, body: Sequence[Stmt], loops: tuple[For, ...]) -> tuple[Stmt, ...]:
        found: list[Stmt] = []
        for node in body:
            match node:
                case For():
                    found.append(replace(node, body=self.body(node.body, (*loops, node))))
                case If(body=then, orelse=other):
                    found.append(replace(node, body=self.body(then, loops), orelse=self.body(other, loops)))
                case Store(op="max" | "min", value=value) if self._is_made_twice(node):
                    kept = self._kept(node, loops)
                    found += [
                        kept,
                        replace(node, value=Load(kept.buffer, kept.index, Type(value.type.dtype), node.line)),
                    ]
                case _:
                    found.append(node)
        return tuple(found)

    def _is_made_twice(self, node: Store) -> bool:
        """Whether what is compared would be computed for the comparison, and once more for the search."""
        value = node.value
        if not isinstance(value, Load):
            return not isinstance(value, Const)
        own, scope = (self.scopes.get(name, ()) for name in (value.buffer, node.buffer))
        return self.kernel.buffers[value.buffer].role == "local" and len(own) > len(scope)

    def _kept(self, node: Store, loops: Sequence[For]) -> Store:
        scope = self.scopes.get(node.buffer, ())
        ranges = {loop.var: (loop.lo, loop.hi) for loop in loops}
        index: list[Expr] = []
        shape: list[Expr] = []
        for loop in loops:
            if loop.var in scope:
                continue
            low, high = extreme(loop.lo, ranges, up=False), extreme(loop.hi, ranges, up=True)
            if low is None or high is None:
                kernel = self.kernel
                rule = (
                    f"what the {node.op} compares is needed, and how much that is cannot be told beforehand"
                )
                text = kernel.source.get(node.line, "").strip()
                raise GradientError(kernel.name, rule, text, where=kernel.where(node.line))
            index.append(operate("-", Var(loop.var, INT), low))
            shape.append(length(low, high))
        name = self.names.new(f"{node.buffer}_of")
        whole = tuple(shape) or (Const(1, INT),)
        self.buffers[name] = Buffer(name, node.value.type.dtype, whole, "local", node.line, exact=True)
        self.scopes[name] = scope
        return Store(name, tuple(index) or (Const(0, INT),), node.value, "", node.line)
