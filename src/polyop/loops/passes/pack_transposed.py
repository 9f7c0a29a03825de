"""Copy a tensor, transposed, before a contraction that reads it across its rows several times.

In ``d_w[o, c, p, q] += d_y[n, o, i, j] * x[n, c, i + p, j + q]`` the vector lanes run along c, which is not
the last dimension of x, and overlapping windows read each element several times. So x is transposed once,
into ``x_transposed[n, i, j, c]``, whose elements are then read as whole vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..analysis import affine
from ..analysis.bounds import is_inside_once_checked
from ..analysis.polyhedra import Model
from ..analysis.strides import STRIDED, depends, stride
from ..ir.grammar import (
    INT,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Stmt,
    Store,
    Type,
    Var,
    names_of,
    perfect,
    unused,
)
from ..ir.note import Note
from ..ir.rewriter import rewrite
from ..ir.uses import loads_of, variables_of
from ..program import Program


@dataclass(frozen=True)
class Transposition:
    """A tensor, and the axis that becomes the last one of its copy."""

    buffer: str
    axis: int


def pack_transposed(program: Program) -> Program:
    """Return the program with transposed copies, each made before the nest that reads it."""
    kernel, notes = program.kernel, list[Note]()
    used_names = names_of(kernel)
    body: list[Stmt] = []
    for node in kernel.body:
        transpositions = dict.fromkeys(t for nest in _nests(node) for t in _transpositions(kernel, nest))
        changed = node
        for one in transpositions:
            if not _is_inside(Model(kernel, program.session), one.buffer):
                continue
            name, shape = unused(f"{one.buffer}_transposed", used_names), kernel.buffers[one.buffer].shape
            local = replace(
                kernel.buffers[one.buffer], name=name, shape=_axis_last(shape, one.axis), role="local"
            )
            kernel = replace(kernel, buffers={**kernel.buffers, name: local})
            body.append(_copy_loops(kernel, one, name, used_names, node.line))
            changed = rewrite(changed, lambda e, one=one, name=name: _read(e, one, name))  # type: ignore[misc]
            text = f"{one.buffer}: read from a copy with dimension {one.axis} last"
            notes.append(Note(node.line, text, "pack_transposed"))
        body.append(changed)
    return program.with_(*notes, kernel=replace(kernel, body=tuple(body)))


def _is_inside(model: Model, buffer: str) -> bool:
    """Whether no access to a tensor needs a check; its error would name the copy and the wrong dimension."""
    return all(
        is_inside_once_checked(model, leaf, access, axis)
        for leaf in model.leaves
        for access in leaf.accesses
        if access.target == buffer
        for axis in range(len(access.index))
    )


def _nests(node: Stmt) -> Iterator[list[For]]:
    """Yield the loops of each perfect nest around a single store."""
    if isinstance(node, If):
        for inner in (*node.body, *node.orelse):
            yield from _nests(inner)
    if not isinstance(node, For):
        return
    loops = perfect(node)
    if len(loops[-1].body) == 1 and isinstance(loops[-1].body[0], Store):
        yield loops
    else:
        for inner in loops[-1].body:
            yield from _nests(inner)


def _transpositions(kernel: Kernel, loops: list[For]) -> Iterator[Transposition]:
    (store,) = loops[-1].body
    assert isinstance(store, Store)
    if store.op != "+":
        return
    names = {loop.var for loop in loops}
    sums = {v for v in names if not any(depends(i, frozenset({v})) for i in store.index)}
    loads = loads_of(store.value)
    for load in dict.fromkeys(loads):
        if kernel.buffers[load.buffer].role != "input" or not load.index or not sums:
            continue
        variables = [variables_of(i) & names for i in load.index]
        windows = any(names_ & sums and names_ - sums for names_ in variables)
        free = variables[-1] - sums
        if free and not _is_short(free, variables[-1] & sums, loops):
            continue  # the lanes run along the last axis, where elements are adjacent
        plain = [a for a, i in enumerate(load.index) if isinstance(i, Var) and i.name in names - sums]
        lanes = [a for a in plain[:1] if _lanes(loads, load, a)]
        if windows and lanes:
            yield Transposition(load.buffer, lanes[0])


def _is_short(free: set[str], summed: set[str], loops: list[For]) -> bool:
    """Whether a free loop of an index is a window, whose size the summed loops lose at the border."""
    ranges = {loop.var: affine.linear(loop.hi) or {} for loop in loops}
    windows = ({n for n in ranges[one] if n} for one in free)
    lost = {name for other in summed for name, c in ranges[other].items() if name and c < 0}
    return any(window and window <= lost for window in windows)


def _lanes(loads: list[Load], load: Load, axis: int) -> bool:
    """Whether lanes may run along an axis that is not the last: no other factor is indexed by its loop."""
    index = load.index[axis]
    assert isinstance(index, Var)
    others = [e for e in loads if e.buffer != load.buffer]
    same = [e for e in loads if e.buffer == load.buffer]
    strided = stride(load, index.name) == STRIDED and axis < len(load.index) - 1
    return (
        strided
        and len(same) == 1
        and not any(depends(i, frozenset({index.name})) for e in others for i in e.index)
    )


def _axis_last(values: tuple[Expr, ...], axis: int) -> tuple[Expr, ...]:
    return (*values[:axis], *values[axis + 1 :], values[axis])


def _read(expr: Expr, one: Transposition, name: str) -> Expr:
    if isinstance(expr, Load) and expr.buffer == one.buffer:
        return replace(expr, buffer=name, index=_axis_last(expr.index, one.axis))
    return expr


def _copy_loops(kernel: Kernel, one: Transposition, name: str, used_names: set[str], line: int) -> Stmt:
    buffer = kernel.buffers[one.buffer]
    index = tuple(Var(unused(f"{name}_e{k}", used_names), INT) for k in range(len(buffer.shape)))
    value = Load(one.buffer, index, Type(buffer.dtype), line)
    node: Stmt = Store(name, _axis_last(index, one.axis), value, "", line)
    for axis in reversed([*(k for k in range(len(index)) if k != one.axis), one.axis]):
        node = For(index[axis].name, Const(0, INT), buffer.shape[axis], (node,), line)
    return node
