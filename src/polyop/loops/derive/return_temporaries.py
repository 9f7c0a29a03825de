"""Return temporaries that the gradient reads as further outputs, so that it need not compute them again.

    for i in range(n):                      for i in range(n):
        mean = 0.0                              mean[i] = 0.0
        for j in range(m):           ->         for j in range(m):
            mean += x[i, j] / m                     mean[i] += x[i, j] / m

A mean or a maximum of each row is little to keep, and a pass over memory to compute again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...core.derived_names import derived_name
from ..analysis.ranges import extreme, length
from ..analysis.tree import Loop
from ..ir.grammar import INT, Assign, Buffer, Const, Expr, For, Kernel, Load, Stmt, Store, Var
from ..ir.rewriter import map_body, rewrite
from ..passes.initialisation import initialisation
from .derivation import Derivation
from .recording import Recording
from .scalars_to_memory import ZERO


def return_temporaries(derivation: Derivation) -> Derivation:
    """Return the derivation with its temporaries as outputs: "all" of them, or those that are small ("auto").

    A temporary is small when all its copies together have fewer dimensions than an input has. The winner of
    a maximum is returned in any case: it is smaller than what it was chosen from.
    """
    recording, kernel = derivation.recording, derivation.kernel
    assert recording is not None, "to_be_recorded runs before return_temporaries"
    rank = max((len(kernel.buffers[n].shape) for n in derivation.inputs), default=0)
    saved: list[str] = []
    for name in recording.values.recomputed():
        rows = _rows(recording, name)
        if rows is None or name in derivation.not_saved or kernel.buffers[name].dtype == "bool":
            continue
        own = kernel.buffers[name].shape if kernel.buffers[name].shape != (Const(1, INT),) else ()
        if derivation.tape == "all" or len(rows) + len(own) < rank or name in derivation.winners:
            kernel = _returned(kernel, name, rows)
            saved.append(name)
    if not saved:
        return derivation
    name = derived_name(f"{kernel.name}__saving", "saving", kernel.name)
    kernel = replace(kernel, name=name, outputs=(*kernel.outputs, *saved), derived=True)
    return derivation.with_(kernel=kernel, owners={}, saved=tuple(saved))


def initialisation_of_saved(derivation: Derivation) -> Derivation:
    """Return the derivation with the initialisation of its buffers settled, if temporaries are outputs."""
    return initialisation(derivation) if derivation.saved else derivation


def _rows(recording: Recording, name: str) -> list[tuple[str, Expr, Expr]] | None:
    """Return (variable, lowest, past the highest) of each loop that has the temporary for itself."""
    scope = recording.scopes.get(name, ())
    loops: dict[str, For] = {}
    for around in recording.order.around.values():
        loops.update({node.var: node.node for node in around if isinstance(node, Loop)})
    ranges = {v: (loop.lo, loop.hi) for v, loop in loops.items()}
    found = []
    for var in scope:
        low, high = extreme(loops[var].lo, ranges, up=False), extreme(loops[var].hi, ranges, up=True)
        if low is None or high is None:
            return None
        found.append((var, low, high))
    return found


def _returned(kernel: Kernel, name: str, rows: list[tuple[str, Expr, Expr]]) -> Kernel:
    """Return the kernel with a temporary as an output that has one for each iteration of its loops."""
    buffer = kernel.buffers[name]
    alone = buffer.shape == (Const(1, INT),)
    lengths = tuple(length(low, high) for _, low, high in rows)
    first = tuple(Var(var, INT) - low for var, low, _ in rows)

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
