"""The forward kernel with temporaries as further outputs: what it hands over is not computed again.

A mean or a maximum of each row is little to keep, and a pass over memory to compute again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..analysis.initialisation import with_initialisation
from ..analysis.session import IslSession
from ..analysis.tree import Loop
from ..ir.grammar import (
    INT,
    Assign,
    Buffer,
    Const,
    Expr,
    For,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
    map_body,
    rewrite,
)
from ..ir.operate import operate
from ..ir.types import is_real
from .adjoint import proved
from .memory import ZERO
from .ranges import extreme, length
from .reverse import Reverse


def saving(kernel: Kernel, tape: str, left: frozenset[str] = frozenset()) -> Kernel | None:
    """Return a typed kernel with further outputs, of what its gradient reads; None where there are none.

    ``tape``: "all" of what would be computed again, or "auto": what is of fewer dimensions than an input is.
    ``left`` are temporaries that are not handed over in any case.
    """

    def derive(session: IslSession) -> Kernel | None:
        reverse = Reverse(kernel, session)
        reverse.collect()
        most = max((len(reverse.kernel.buffers[n].shape) for n in reverse.inputs), default=0)
        made = reverse.kernel
        chosen = []
        for name in reverse.needs.recomputed():
            rows = _rows(reverse, name)
            if rows is None or name in left or not is_real(made, name):
                continue
            own = made.buffers[name].shape if made.buffers[name].shape != (Const(1, INT),) else ()
            if tape == "all" or len(rows) + len(own) < most:
                made = _handed_over(made, name, rows)
                chosen.append(name)
        if not chosen:
            return None
        name = f"{kernel.name}__saving"
        made = replace(made, name=name, outputs=(*made.outputs, *chosen), derived=True)
        return with_initialisation(made, reverse.session)

    return proved(kernel, derive)[0]


def _rows(reverse: Reverse, name: str) -> list[tuple[str, Expr, Expr]] | None:
    """Return (variable, lowest, past the highest) of each loop that has the temporary for itself."""
    scope = reverse.scopes.get(name, ())
    loops: dict[str, For] = {}
    for around in reverse.order.around.values():
        loops.update({node.var: node.node for node in around if isinstance(node, Loop)})
    ranges = {v: (loop.lo, loop.hi) for v, loop in loops.items()}
    found = []
    for var in scope:
        low, high = extreme(loops[var].lo, ranges, up=False), extreme(loops[var].hi, ranges, up=True)
        if low is None or high is None:
            return None
        found.append((var, low, high))
    return found


def _handed_over(kernel: Kernel, name: str, rows: list[tuple[str, Expr, Expr]]) -> Kernel:
    """Return the kernel with a temporary as an output that has one for each iteration of its loops."""
    buffer = kernel.buffers[name]
    alone = buffer.shape == (Const(1, INT),)
    lengths = tuple(length(low, high) for _, low, high in rows)
    first = tuple(operate("-", Var(var, INT), low) for var, low, _ in rows)

    def at(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return (*first, *(() if alone and index == ZERO and first else index))

    def read(expr: Expr) -> Expr:
        return replace(expr, index=at(expr.index)) if isinstance(expr, Load) and expr.buffer == name else expr

    def written(node: Store | Assign) -> Sequence[Stmt]:
        ours = isinstance(node, Store) and node.buffer == name
        return (replace(node, index=at(node.index)) if ours and isinstance(node, Store) else node,)

    shape = (*lengths, *(() if alone and lengths else buffer.shape))
    made = Buffer(name, buffer.dtype, shape, "output", buffer.line)
    body = map_body([rewrite(node, read) for node in kernel.body], written)
    return replace(kernel, body=body, buffers={**kernel.buffers, name: made})
