"""The tensors that a gradient reads (its residuals), found without deriving the gradient.

A framework asks in the forward call which tensors to keep. The derived gradient is the answer, but to
derive it takes long, and a call that wants no gradient would pay for it. A simple kernel needs no proofs:

    y[i] = x[i] * z[i]        the partial derivatives are z[i] and x[i]: it keeps x and z
    y[i] = x[i] + 2 * z[i]    the partial derivatives are constants: it reads no element
    y[i] = exp(x[i])          the partial derivative is the result: it keeps y

Simple means: it has no temporaries, it reads no element of an output, and it only assigns or adds. So
each value that a partial derivative reads is an element of an input, or the result of the statement. For any
other kernel the passes run that decide where such values come from, and no further.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..analysis.writes import is_sole_write
from ..ir.grammar import Expr, For, If, Kernel, Load, Op, Size, Store, children, statements, walk
from ..ir.rewriter import placed, rewrite
from ..ir.types import is_real
from .partials import partial_derivatives

if TYPE_CHECKING:
    from ..analysis.session import IslSession
    from .derivation import Derivation


def is_simple(kernel: Kernel) -> bool:
    """Whether the kernel has no temporaries, reads no output, and only assigns and adds."""
    if any(buffer.role not in ("input", "output") for buffer in kernel.buffers.values()):
        return False
    for node in statements(kernel.body):
        if not isinstance(node, (For, If, Store)) or (isinstance(node, Store) and node.op not in ("", "+")):
            return False
        if any(isinstance(e, Load) and kernel.buffers[e.buffer].role == "output" for e in walk(node)):
            return False
    return True


def residuals(kernel: Kernel, results: int) -> frozenset[str] | None:
    """Return the tensors whose elements or sizes a gradient reads; None where only the gradient tells.

    They are those of the whole gradient: the first ``results`` outputs have adjoints, and so has each further
    output that a gradient reads, because a second derivative goes through it. Every input's gradient is
    computed. None where proofs take too long. Raises ``GradientError`` for a kernel that has no derivative.
    """
    if not any(is_real(kernel, n) for n, b in kernel.buffers.items() if b.role == "input"):
        return frozenset()
    names = simple_residuals(kernel)
    return _recorded_residuals(kernel, results) if names is None else names


def _recorded_residuals(kernel: Kernel, results: int) -> frozenset[str] | None:
    """Return the residuals by the passes that come before the gradient is made."""
    import islpy  # late, like the next ones: a simple kernel does without isl

    from ..analysis.session import IslSession
    from .proved import OPERATIONS
    from .start import start_of_gradient

    read: frozenset[str] = frozenset()
    while True:
        present = [k < results or name in read for k, name in enumerate(kernel.outputs)]
        try:  # a quarter of the quota: a forward call waits for this, and without it the gradient tells
            derivation = _recorded(start_of_gradient(kernel, present), IslSession(OPERATIONS // 4))
        except islpy.Error:
            return None
        assert derivation.recording is not None
        read = _with_recorded_sizes(derivation, derivation.recording.given())
        if all(flag or name not in read for flag, name in zip(present, kernel.outputs, strict=True)):
            return read


def _recorded(derivation: Derivation, session: IslSession) -> Derivation:
    """Return the derivation after the passes that decide where the values come from."""
    from ..runner import run_passes
    from .pipelines import NORMAL_FORM, RECORD

    return run_passes(derivation.with_(session=session), (*NORMAL_FORM, *RECORD), is_derivation=True)


def simple_residuals(kernel: Kernel) -> frozenset[str] | None:
    """Return :func:`residuals` of a simple kernel; None for others.

    Also None where a partial derivative reads a result that a later iteration may overwrite.
    """
    if not is_simple(kernel):
        return None
    values: list[Expr] = []
    for store, place in placed(kernel.body):
        if not isinstance(store, Store) or not is_real(kernel, store.buffer):
            continue
        parts = [e for part in partial_derivatives(kernel, store) for e in part.expressions]
        reads_result = isinstance(store.value, Op) and any(e == store.value for p in parts for e in walk(p))
        if store.op == "" and reads_result:
            if not is_sole_write(kernel, store, place.loops):
                return None
            parts = [_with_result(part, store) for part in parts]
        # an assignment clears its element's adjoint, so its index is read anyway
        if parts or store.op != "+":
            values += [*parts, *store.index, *(e for node in place.around for e in children(node))]
    return _with_sizes(kernel, values)


def _with_result(expr: Expr, store: Store) -> Expr:
    """Return an expression that reads the element that a statement has stored, in place of its value."""
    changed: Expr = rewrite(expr, lambda e: store.target if e == store.value else e)
    return changed


def _with_sizes(kernel: Kernel, values: Iterable[Expr]) -> frozenset[str]:
    """Return the tensors that ``values`` read, and those of whose sizes nothing else tells."""
    nodes = [e for value in values for e in walk(value)]
    read = {e.buffer for e in nodes if isinstance(e, Load)}
    return _size_sources(kernel, read, {e for e in nodes if isinstance(e, Size)})


def _with_recorded_sizes(derivation: Derivation, read: set[str]) -> frozenset[str]:
    """Return ``read`` and the tensors of whose sizes nothing else tells, for all that the kernel computes."""
    kernel = derivation.kernel
    shapes = [size for b in kernel.buffers.values() if b.role == "local" for size in b.shape]
    nodes = [e for top in (*statements(kernel.body), *shapes) for e in walk(top)]
    names = _size_sources(kernel, read, {e for e in nodes if isinstance(e, Size)})
    return names & {n for n, b in kernel.buffers.items() if b.role != "local"}


def _size_sources(kernel: Kernel, read: set[str], sizes: set[Size]) -> frozenset[str]:
    """Return ``read`` and the tensors of whose ``sizes`` no tensor in it tells.

    A gradient of an input has the input's shape. The gradient of a sole output has the output's, which may be
    written in sizes of inputs.
    """
    for name, buffer in kernel.buffers.items():
        if is_real(kernel, name) and buffer.role == "input":
            sizes |= {Size(name, axis) for axis in range(len(buffer.outer_shape))}
        elif is_real(kernel, name) and buffer.role == "output":
            sizes |= {e for size in buffer.shape for e in walk(size) if isinstance(e, Size)}
    outputs = [kernel.buffers[n] for n in kernel.outputs if len(kernel.outputs) == 1 or n in read]
    given = {size for buffer in outputs for size in buffer.shape if is_real(kernel, buffer.name)}
    return frozenset(read | {size.buffer for size in sizes - given})
