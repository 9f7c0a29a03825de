"""Checkpointing: run a long recurrence in segments, and keep only the state that each segment starts from.

A tape of a value that each iteration overwrites has one element for each iteration. With segments it has one
for each segment, and one for each iteration of the segment that is being recomputed.

Griewank and Walther, Evaluating Derivatives (2008), chapter 12.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..analysis.strides import depends
from ..analysis.tree import Loop
from ..ir.grammar import (
    BOOL,
    INT,
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
    names_of,
    statements,
    unused,
)
from ..ir.note import Note
from ..ir.rewriter import Place, loops_over, nested, substitute, with_places, with_statements
from ..ir.stops import is_unbounded
from .derivation import SCALAR_INDEX, SCALAR_SHAPE, Derivation
from .recorded_values import RecordedValues
from .scopes import Scopes

SEGMENT_LENGTH = 64
"""Iterations of a segment: the most that are taped at a time."""


def checkpointing(derivation: Derivation) -> Derivation:
    """Return the derivation with each taped recurrence divided into segments."""
    recording = derivation.recording
    assert recording is not None, "to_be_recorded runs before checkpointing"
    carried = _recurrences(recording.values)
    if not carried:
        return derivation
    result = _Segmented(derivation.kernel, recording.scopes)
    for var, names in carried.items():
        result = _with_segments(result, var, names)
    return derivation.with_(
        *result.notes, kernel=result.kernel, owners=result.scopes, origins=result.origins, recording=None
    )


def _recurrences(values: RecordedValues) -> dict[str, tuple[str, ...]]:
    """Return the loops that tape a value in each iteration, each with its loop-carried buffers."""
    found: dict[str, tuple[str, ...]] = {}
    for own, reads in values.tapes.items():
        for read in reads:
            around = values.order.around[read.leaf][: read.depth]
            loops = [node for node in around if isinstance(node, Loop)]
            if len(loops) > len(own) and loops[len(own)].var not in found:
                loop = loops[len(own)]
                carried = _carried(values, loop.node, own)
                if carried and not is_unbounded(loop.node):
                    found[loop.var] = carried
    return found


def _carried(values: RecordedValues, loop: For, own: tuple[str, ...]) -> tuple[str, ...]:
    """Return the loop-carried buffers: each iteration stores to the same elements."""
    stores = [s for s in statements(loop.body) if isinstance(s, Store)]
    apart = {s.buffer for s in stores if any(depends(i, frozenset({loop.var})) for i in s.index)}
    names = dict.fromkeys(s.buffer for s in stores)
    return tuple(n for n in names if n not in apart and values.scope(n) == own)


@dataclass(frozen=True)
class _Segmented:
    """A kernel with loops in segments, and its temporaries' scopes.

    ``origins`` has for each buffer of a segment the one whose values it has.
    """

    kernel: Kernel
    scopes: Scopes
    origins: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def _with_segments(done: _Segmented, var: str, names: Iterable[str]) -> _Segmented:
    """Return the kernel with one more loop in segments; ``names`` are the buffers that it carries on."""
    kernel, scopes = done.kernel, done.scopes
    used_names = names_of(kernel)
    segment, step = unused(f"segment_of_{var}", used_names), unused(f"{var}_of_segment", used_names)
    now = {name: unused(f"{name}_of_segment", used_names) for name in names}
    axes = [unused(f"e{k}", used_names) for k in range(max(len(kernel.buffers[n].shape) for n in now))]
    around: list[str] = []
    lines: list[int] = []

    def changed(node: Stmt, place: Place) -> tuple[Stmt, ...] | None:
        if not isinstance(node, For) or node.var != var:
            return None
        around[:], lines[:] = (loop.var for loop in place.loops), [node.line]
        return (_in_segments(kernel, node, segment, step, now, axes),)

    body = with_statements(kernel.body, changed)
    made = {
        inner: replace(kernel.buffers[n], name=inner, role="local", zeroed=False, first_read=0)
        for n, inner in now.items()
    }
    places = {n: _renamed(scope, var, segment, step) for n, scope in scopes.items()}
    places |= dict.fromkeys(now.values(), (*around, segment))
    segments = f"goes backwards in segments of {SEGMENT_LENGTH} iterations"
    text = f"loop {var} {segments}: {', '.join(now)} is kept where each begins"
    return _Segmented(
        replace(kernel, body=body, buffers={**kernel.buffers, **made}),
        places,
        {**done.origins, **{inner: n for n, inner in now.items()}},
        (*done.notes, *(Note(line, text, "checkpointing") for line in lines)),
    )


def _renamed(scope: tuple[str, ...], var: str, segment: str, step: str) -> tuple[str, ...]:
    return tuple(v for loop in scope for v in ((segment, step) if loop == var else (loop,)))


def _in_segments(
    kernel: Kernel, loop: For, segment: str, step: str, now: dict[str, str], axes: list[str]
) -> For:
    """Return the loop over segments: copy the state in, run the iterations, copy the state out.

    All have as many iterations, the last of which may do nothing: turned round, indices stay affine.
    """
    length = Const(SEGMENT_LENGTH, INT)
    count = (loop.hi - loop.lo + Const(SEGMENT_LENGTH - 1, INT)) // length
    begun = Var(segment, INT) * length
    at = loop.lo + begun + Var(step, INT)
    body = tuple(_within(substitute(s, {loop.var: at}), now) for s in loop.body)
    there = If(Op("<", (at, loop.hi), BOOL), body, (), loop.line)
    steps = For(step, Const(0, INT), length, (there,), loop.line, loop.hint)
    into = [_copy(kernel, name, inner, name, axes, loop.line) for name, inner in now.items()]
    back = [_copy(kernel, name, name, inner, axes, loop.line) for name, inner in now.items()]
    return For(segment, Const(0, INT), count, (*into, steps, *back), loop.line)


def _copy(kernel: Kernel, like: str, target: str, source: str, axes: list[str], line: int) -> Stmt:
    """Return loops that copy one buffer into another, both of the shape and dtype of ``like``."""
    buffer = kernel.buffers[like]
    alone = buffer.shape == SCALAR_SHAPE
    names = [] if alone else axes[: len(buffer.shape)]
    index = SCALAR_INDEX if alone else tuple(Var(name, INT) for name in names)
    store = Store(target, index, Load(source, index, Type(buffer.dtype), line), "", line)
    return nested(loops_over(names, () if alone else buffer.shape, line), store)


def _within(node: Stmt, now: dict[str, str]) -> Stmt:
    """Return a statement that uses the segment's buffers; sizes are still the tensors' own."""

    def place(expr: Var | Load) -> Expr:
        return replace(expr, buffer=now.get(expr.buffer, expr.buffer)) if isinstance(expr, Load) else expr

    return with_places((node,), place)[0]
