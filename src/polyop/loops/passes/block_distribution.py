"""Block distribution: move contractions of a loop's iterations into loops of their own, block by block.

    for i in range(m):                         for i_outer in range(ceil_div(m, 48)):
        for j in range(n):                         for i in (the block):
            p[j] = dot(q[i], k[j])                     for j in range(n):
        ...exponentials of p...          ->                p[i - 48 * i_outer, j] = dot(q[i], k[j])
        for j in range(n):                         for i in (the block):
            y[i] += p[j] * v[j]                        ...exponentials of p...
                                                   for i in (the block):
                                                       for j in range(n):
                                                           y[i] += p[i - 48 * i_outer, j] * v[j]

What an iteration keeps for itself is in the way of loop_distribution. Here it gets a place for each iteration
of a block (scalar expansion). The contractions become products of matrices, which are tiled in registers. A
block has 48 iterations, so that what all of them read is packed once for many.

Each thread has a block, whose memory grows with the length of an iteration's row. Where it would exceed
``MAX_BLOCK_BYTES``, the loop runs as it was, with one row for each thread: both are compiled, and the sizes
of a call choose.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...core.dtypes import dtype
from ...core.limits import MAX_BLOCK_BYTES
from ..analysis import affine
from ..analysis.polyhedra import scalar_owners
from ..analysis.strides import depends
from ..analysis.tree import Branch, Loop, Node, Rearrangement, statements_of, tree_of, with_distinct_loops
from ..ir.grammar import (
    FALSE,
    INT,
    TRUE,
    Assign,
    Buffer,
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
    children,
    names_of,
    statements,
    unused,
    walk,
)
from ..ir.note import Note
from ..ir.rewriter import with_places
from ..ir.stops import stop_flags
from ..ir.types import NARROW
from ..ir.uses import used_by
from ..program import Program
from .loop_distribution import has_products, parts_of
from .rows_of_scalars import with_rows_of_scalars
from .strip_mine import Copies, loop_of, tiled, with_loop_replaced

BLOCK_ROWS = 48
"""Iterations of a block: a multiple of the rows of all register tiles.

So few that a block, as of the scores of attention, stays in the second cache.
"""


def block_distribution(program: Program) -> Program:
    """Return the program with contractions of private temporaries in separate loops, where that is legal."""
    if not has_products(program.kernel):
        return program
    for node in program.kernel.body:
        if isinstance(node, For):
            changes = (_blocked(program, path) for path in _paths(node, ()))
            program = next((changed for changed in changes if changed is not None), program)
    return program


def _paths(node: Stmt, around: tuple[For, ...]) -> Iterator[tuple[For, ...]]:
    """Yield each loop of a nest with the loops around it, outer ones first."""
    if isinstance(node, For):
        path = (*around, node)
        yield path
        for inner in node.body:
            yield from _paths(inner, path)
    elif isinstance(node, If):
        for inner in (*node.body, *node.orelse):
            yield from _paths(inner, around)


def _blocked(program: Program, path: tuple[For, ...]) -> Program | None:
    """Return the program with the last loop of ``path`` in blocks, contractions apart; None if it stays."""
    head = path[-1]
    if head.hint or stop_flags(head) or head.var in program.kept_loops():
        return None
    program = with_rows_of_scalars(program, path)
    *around, loop = _in(tree_of(program.model), head.var)
    groups = [statements_of(part.body) for part in parts_of(loop, tuple(around), expanded=True)]
    shared = _shared(program, path, groups) if len(groups) > 1 else None
    if not shared or not _are_values(head, shared):
        return None
    blocked, outer = tiled(program, loop_of(program.kernel, head.var), BLOCK_ROWS)
    place = Var(head.var, INT) - loop_of(blocked.kernel, head.var).lo
    owners = {name: loops for name, loops in program.owners.items() if name not in shared}
    blocked = blocked.with_(kernel=_expanded(blocked.kernel, shared, place), owners=owners)
    fits = _fits(shared)
    done = None if fits == FALSE else _distributed(blocked, head, outer, fits)
    if done is None or fits == TRUE:
        return done
    return _where_it_fits(fits, program, path[0].var, done, outer if len(path) == 1 else path[0].var)


def _fits(shared: dict[str, Buffer]) -> Expr:
    """Return the condition on sizes under which the memory of a block is within its limit.

    It is affine, so that isl knows it: each tensor gets the same part of the limit, and each of its sizes
    that is no constant gets the same root of that. It is ``FALSE`` if constant sizes alone exceed the limit.
    """
    left, varying = MAX_BLOCK_BYTES, list[tuple[int, list[Expr]]]()
    for buffer in shared.values():
        bytes_ = dtype(buffer.dtype).itemsize
        bytes_ *= math.prod(int(size.value) for size in buffer.shape if isinstance(size, Const))
        sizes: list[Expr] = [size for size in buffer.shape if not isinstance(size, Const)]
        if sizes:
            varying.append((bytes_, sizes))
        else:
            left -= bytes_
    if left < 0:
        return FALSE
    limits: dict[Expr, int] = {}
    for bytes_, sizes in varying:
        limit = int((left / len(varying) / max(bytes_, 1)) ** (1 / len(sizes)))
        limits |= {size: min(limit, limits.get(size, limit)) for size in sizes}
    tests = [size <= Const(limit, INT) for size, limit in limits.items()]
    return affine.conjunction(tests) if tests else TRUE


def _where_it_fits(fits: Expr, plain: Program, nest: str, blocked: Program, its_nest: str) -> Program:
    """Return the program that runs ``its_nest`` of ``blocked`` for such sizes, else ``nest`` of ``plain``."""
    short, long = loop_of(blocked.kernel, its_nest), loop_of(plain.kernel, nest)
    copies = Copies(plain, long, names_of(blocked.kernel))
    choice = If(fits, (short,), (copies.new("_long", None),), long.line)
    kernel = with_loop_replaced(blocked.kernel, its_nest, (choice,))
    kernel = replace(kernel, buffers={**copies.buffers, **kernel.buffers})
    owners = {name: loops for name, loops in copies.owners.items() if name not in plain.owners}
    return blocked.with_(kernel=kernel, owners={**blocked.owners, **owners})


def _in(tree: Sequence[Node], var: str) -> tuple[Loop, ...]:
    """Return a loop of a tree, after those around it."""

    def visit(nodes: Sequence[Node], around: tuple[Loop, ...]) -> Iterator[tuple[Loop, ...]]:
        for node in nodes:
            match node:
                case Loop():
                    yield (*around, node)
                    yield from visit(node.body, (*around, node))
                case Branch():
                    yield from visit((*node.body, *node.orelse), around)

    return next(path for path in visit(tree, ()) if path[-1].var == var)


def _distributed(program: Program, head: For, outer: str, fits: Expr) -> Program | None:
    """Return the program with the contractions of a block in loops of their own; None if not legal."""
    loops = Rearrangement(program.model)
    path = _in(loops.tree, head.var)
    around = tuple(other for other in path[:-1] if other.var != outer)
    parts = parts_of(path[-1], around, expanded=True)
    if not loops.replace(path[-1], tuple(parts)):
        return None
    used_names = names_of(program.kernel)
    body = with_distinct_loops(statements_of(loops.tree), lambda name: unused(name, used_names))
    where = "" if fits == TRUE else f", where that takes a thread at most {MAX_BLOCK_BYTES >> 20} MiB"
    blocks = f"for {BLOCK_ROWS} of its iterations at a time{where}"
    text = f"loop {head.var}: contractions have loops of their own, {blocks}"
    note = Note(head.line, text, "block_distribution")
    return program.with_(note, kernel=replace(program.kernel, body=body))


def _shared(
    program: Program, path: tuple[For, ...], groups: Sequence[Sequence[Stmt]]
) -> dict[str, Buffer] | None:
    """Return what each iteration has for itself: the buffers for a block, by name.

    A scalar that one group alone uses stays as it is. None where an inner loop owns a buffer.
    """
    kernel, var = program.kernel, path[-1].var
    scalars = scalar_owners(kernel)
    assigns = {s.name: s for s in statements(kernel.body) if isinstance(s, Assign)}
    vars_ = tuple(loop.var for loop in path)
    found: dict[str, Buffer] = {}
    for name in sorted(set().union(*map(used_by, groups))):
        is_shared = sum(name in used_by(group) for group in groups) > 1
        if is_shared and var in scalars.get(name, ()):
            one = assigns[name]
            found[name] = Buffer(name, one.type.dtype, (Const(BLOCK_ROWS, INT),), "local", one.line)
        owners = program.owners.get(name, ())
        if len(owners) > len(vars_) and var in owners:
            return None
        if owners == vars_:
            buffer = kernel.buffers[name]
            found[name] = replace(buffer, shape=(Const(BLOCK_ROWS, INT), *buffer.shape))
    return found


def _are_values(loop: For, shared: dict[str, Buffer]) -> bool:
    """Whether what is expanded is in no index, bound or condition, and is not rounded in memory."""
    names = frozenset(shared)
    for node in statements((loop,)):
        heads: list[Expr] = [e for x in walk(node) if isinstance(x, Load) for e in x.index]
        match node:
            case For() | If():
                heads += children(node)
            case Store(index=index):
                heads += index
        if any(depends(e, names) for e in heads):
            return False
    return not any(buffer.dtype in (*NARROW, "bool") for buffer in shared.values())


def _expanded(kernel: Kernel, shared: dict[str, Buffer], place: Expr) -> Kernel:
    """Return the kernel in which names have one more axis, the place in the block."""
    scalars = shared.keys() - kernel.buffers.keys()

    def at(expr: Var | Load) -> Expr:
        match expr:
            case Var(name=name) if name in scalars:
                buffer = shared[name]
                return Load(name, (place,), Type(buffer.dtype), buffer.line)
            case Load(buffer=name, index=index) if name in shared and name not in scalars:
                return replace(expr, index=(place, *index))
        return expr

    return replace(kernel, body=with_places(kernel.body, at), buffers={**kernel.buffers, **shared})
