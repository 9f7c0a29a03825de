"""Array privatisation: give each iteration a temporary of its own.

    t = allocate((n,), x.dtype)            each iteration i writes t before it reads t,
    for i in range(m):                     so iterations do not conflict over it
        for j in range(n):
            t[j] = x[i, j] * 2.0
        ...                                reads of t

If an iteration uses one element of the temporary, the temporary becomes a scalar. A larger one is marked as
owned by the loop (``owners``): each thread gets its own memory for it. An axis whose index does not change
within an iteration is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..analysis.bounds import is_inside_once_checked
from ..analysis.initialisation import Coverage
from ..analysis.polyhedra import Model
from ..analysis.session import IslSession
from ..ir.grammar import (
    Assign,
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
)
from ..ir.rewriter import map_body, rewrite, with_bodies, with_places
from ..ir.types import NARROW
from ..ir.uses import loads_of, used_by, variables_of
from ..program import AnyProgram
from .inline import rounded


def array_privatisation(program: AnyProgram) -> AnyProgram:
    """Return the program with private temporaries turned into scalars, or owned by loops."""
    kernel, owners = privatise(program.kernel, program.session)
    before = program.before_privatisation or program.kernel
    return program.with_(kernel=kernel, owners=owners, before_privatisation=before)


def privatise(kernel: Kernel, session: IslSession) -> tuple[Kernel, dict[str, tuple[str, ...]]]:
    """Return the kernel with one-element temporaries turned into scalars, and the owners of the others.

    The owners of a buffer are the loops whose iterations each have a private copy.
    """
    coverage = Coverage(Model(kernel, session))
    owners: dict[str, tuple[str, ...]] = {}
    for name in [n for n, b in kernel.buffers.items() if b.role == "local"]:
        if not coverage.reads(name) or not coverage.writes(name):
            continue
        loops = coverage.shared_loops(name)
        levels = range(len(loops), -1, -1)
        level = next((n for n in levels if coverage.uncovered_read(name, n) is None), None)
        if level is None and kernel.buffers[name].zeroed and _is_own_element(coverage, name, loops):
            level = len(loops)
        if level is None:
            continue
        if _single_element(coverage, name, frozenset(loops[:level])):
            kernel = _as_scalar(kernel, name, loops[:level])
        elif level:
            kernel = _without_axes(kernel, name, _fixed_axes(coverage, name, frozenset(loops[:level])))
            owners[name] = loops[:level]
    return kernel, owners


def _is_own_element(coverage: Coverage, name: str, loops: tuple[str, ...]) -> bool:
    """Whether each iteration uses one element, which no other iteration uses, so that it starts as zero."""
    index = coverage.writes(name)[0][1].node.index
    plain = {e.name for e in index if isinstance(e, Var)}
    return plain >= {*loops} and _single_element(coverage, name, frozenset(loops))


def _single_element(coverage: Coverage, name: str, outer: frozenset[str]) -> bool:
    """Whether all accesses are of one element, whose index depends on the outer loops only."""
    places = [*coverage.reads(name), *coverage.writes(name)]
    first = places[0][1].node.index
    if any(access.node.index != first for _, access in places):
        return False
    narrow = coverage.model.kernel.buffers[name].dtype in NARROW
    if narrow and any(access.op for _, access in places):
        return False  # memory rounds each step of the sum, a scalar would not
    if not all(
        is_inside_once_checked(coverage.model, *place, axis) for place in places for axis in range(len(first))
    ):
        return False  # an index out of range must stay an error, and a scalar has no index
    inner = {v for leaf, _ in places for v in leaf.vars} - outer
    return not loads_of(*first) and not variables_of(*first) & {*inner, *coverage.model.owners}


def _fixed_axes(coverage: Coverage, name: str, outer: frozenset[str]) -> frozenset[int]:
    """Return the axes whose index is the same in all accesses of an iteration: they can be removed."""
    places = [*coverage.reads(name), *coverage.writes(name)]
    axes = set()
    for axis, first in enumerate(places[0][1].node.index):
        names = variables_of(first)
        same = all(access.node.index[axis] == first for _, access in places)
        inside = all(is_inside_once_checked(coverage.model, *place, axis) for place in places)
        if same and inside and not loads_of(first) and names and names <= outer:
            axes.add(axis)
    return frozenset(axes)


def _without_axes(kernel: Kernel, name: str, axes: frozenset[int]) -> Kernel:
    """Return the kernel in which a buffer has no such axes."""
    if not axes:
        return kernel

    def without(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(e for axis, e in enumerate(index) if axis not in axes)

    def place(expr: Var | Load) -> Expr:
        ours = isinstance(expr, Load) and expr.buffer == name
        return replace(expr, index=without(expr.index)) if ours and isinstance(expr, Load) else expr

    buffer = replace(kernel.buffers[name], shape=without(kernel.buffers[name].shape))
    return replace(kernel, body=with_places(kernel.body, place), buffers={**kernel.buffers, name: buffer})


def _as_scalar(kernel: Kernel, name: str, loops: tuple[str, ...]) -> Kernel:
    """Return the kernel with a scalar of ``loops``, one for each iteration, in place of a buffer."""
    type_ = Type(kernel.buffers[name].dtype)

    def change(expr: Expr) -> Expr:
        return Var(name, type_) if isinstance(expr, Load) and expr.buffer == name else expr

    def store(node: Store | Assign) -> Sequence[Stmt]:
        if isinstance(node, Store) and node.buffer == name:
            return (Assign(name, rounded(node.value), node.op, node.line),)
        return (node,)

    body = map_body([rewrite(s, change) for s in kernel.body], store)
    buffers = {key: b for key, b in kernel.buffers.items() if key != name}
    return replace(kernel, body=_declared(body, name, type_, loops), buffers=buffers)


def _declared(body: tuple[Stmt, ...], name: str, type_: Type, loops: tuple[str, ...]) -> tuple[Stmt, ...]:
    """Assign zero to the scalar at the start of the last of ``loops``, unless that assigns it first."""
    if loops:

        def inside(node: Stmt) -> Stmt:
            if isinstance(node, For) and node.var != loops[0]:
                return node
            rest = loops[1:] if isinstance(node, For) else loops
            return with_bodies(node, lambda part: _declared(part, name, type_, rest))

        return tuple(map(inside, body))
    match body:
        case (If(orelse=()) as only,) if name not in variables_of(only):
            # the condition stays around the whole body: it may be what ends the loop (ir/stops.py)
            return (replace(only, body=_declared(only.body, name, type_, ())),)
    first = next((n for n in body if isinstance(n, Assign) and n.name == name), None)
    is_plain = first is not None and not first.op and name not in variables_of(first)
    if first is not None and is_plain and name not in used_by(body[: body.index(first)]):
        return body
    if name not in used_by(body):
        return body
    zero = 0.0 if type_.dtype.startswith(("float", "bfloat")) else 0
    return (Assign(name, Const(zero, type_)), *body)
