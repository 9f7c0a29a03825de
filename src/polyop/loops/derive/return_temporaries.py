"""Return temporaries that the gradient reads as further outputs, so that it need not compute them again.

    for i in range(n):                      for i in range(n):
        mean = 0.0                              mean[i] = 0.0
        for j in range(m):           ->         for j in range(m):
            mean += x[i, j] / m                     mean[i] += x[i, j] / m

A mean or a maximum of each row is little to keep, and a pass over memory to compute again.
"""

from __future__ import annotations

from dataclasses import replace

from ..analysis.ranges import length, span
from ..analysis.tree import Loop
from ..ir.grammar import INT, Buffer, Expr, For, Kernel, Load, Var
from ..ir.rewriter import with_places
from ..passes.initialisation import initialisation
from .derivation import SCALAR_INDEX, SCALAR_SHAPE, Derivation
from .recording import Recording


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
        own = () if kernel.buffers[name].shape == SCALAR_SHAPE else kernel.buffers[name].shape
        if derivation.tape == "all" or len(rows) + len(own) < rank or name in derivation.winners:
            kernel = _returned(kernel, name, rows)
            saved.append(name)
    if not saved:
        return derivation
    name = f"{kernel.name}__saving"
    kernel = replace(kernel, name=name, outputs=(*kernel.outputs, *saved))
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
    spans = [span(loops[var], loops.values()) for var in scope]
    return None if None in spans else [(var, *ends) for var, ends in zip(scope, spans, strict=True) if ends]


def _returned(kernel: Kernel, name: str, rows: list[tuple[str, Expr, Expr]]) -> Kernel:
    """Return the kernel with a temporary as an output that has one for each iteration of its loops."""
    buffer = kernel.buffers[name]
    alone = buffer.shape == SCALAR_SHAPE
    lengths = tuple(length(low, high) for _, low, high in rows)
    first = tuple(Var(var, INT) - low for var, low, _ in rows)

    def place(expr: Var | Load) -> Expr:
        if isinstance(expr, Var) or expr.buffer != name:
            return expr
        own = () if alone and first and expr.index == SCALAR_INDEX else expr.index
        return replace(expr, index=(*first, *own))

    shape = (*lengths, *(() if alone and lengths else buffer.shape))
    made = Buffer(name, buffer.dtype, shape, "output", buffer.line)
    return replace(kernel, body=with_places(kernel.body, place), buffers={**kernel.buffers, name: made})
