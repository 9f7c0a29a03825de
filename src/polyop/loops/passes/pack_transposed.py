"""Copy a tensor transposed, so that vector lanes do not run along a short window.

    for c in range(n):              for i in range(m):
        for p in range(3):              for o in range(k):
            for o in range(k):              d_t[i, o] = d[o, i]
                for i in range(m):  for t in range(ceil_div(m, 512)):
                    w[o, c, p] += (     for p in range(3):
                        d[o, i]   ->        for c in range(n):
                        * x[c, i + p]           for o in range(k):
                    )                               w_part = 0.0
                                                    for i in range(512 * t, min(512 * t + 512, m)):
                                                        w_part += d_t[i, o] * x[c, i + p]
                                                    w[o, c, p] += w_part

Lanes along ``p`` would read whole vectors of x, but ``p`` is short. So ``d`` is copied with axis ``o`` last,
and the lanes run along ``o``. Loop ``c``, on which ``d`` does not depend, goes directly around the lanes: it
becomes the rows of the register tile.
Whether ``p`` is short often follows from the range of ``i``. Where it does not, both nests are kept, and the
sizes of a call choose. A nest with a ``serial`` loop, or one of the author's schedule, stays as it is.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ..analysis import affine
from ..analysis.bounds import is_inside_once_checked
from ..analysis.loop_order import reordered
from ..analysis.polyhedra import Model
from ..analysis.ranges import LONG, SHORT, UNKNOWN, compared
from ..analysis.strides import STRIDED, UNIFORM, UNIT, depends, stride
from ..ir.grammar import (
    INT,
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
    names_of,
    perfect,
    statements,
    unused,
)
from ..ir.note import Note
from ..ir.rewriter import loops_over, nested, rewrite, with_replaced
from ..ir.uses import loads_of, tensors_of, variables_of
from ..program import Program
from .index_set_splitting import renamed_copy
from .strip_mine import in_blocks, trips

BLOCK = 512
"""Elements of a row that are summed at a time: such blocks of a hundred rows fit into a cache."""
ENOUGH_LANES = 32
"""Lanes along a loop with so many iterations fill the vectors of all targets well."""


Each = TypeVar("Each", bound=Expr)


@dataclass(frozen=True)
class Nest:
    """A perfect nest around one sum: its loops over elements, those that sum, and its only addition."""

    top: For
    free: tuple[For, ...]
    sums: tuple[For, ...]
    added: Store

    @property
    def loops(self) -> tuple[For, ...]:
        """All its loops, outermost first."""
        return (*self.free, *self.sums)

    def with_order(
        self, free: Sequence[For], row: For, change: Callable[[Expr], Expr], type_: Type, used_names: set[str]
    ) -> For:
        """Return the nest with its loops over elements in another order, and its expressions changed.

        The summing loops outside ``row`` go outermost if bounds allow, then the loop over blocks of ``row``.
        All elements then read one block, which stays in the cache. ``type_``: the type of the elements. Only
        sums of float32 and float64 may have another order.
        """
        sums = self.sums if type_.dtype in ("float32", "float64") else ()
        outer = sums[: sums.index(row)] if sums else ()
        found = reordered((*outer, *free, *self.sums[len(outer) :])) if outer else None
        loops = tuple(found.loops) if found else (*free, *self.sums)
        added = rewrite(self.added, change)
        assert isinstance(added, Store)
        if sums and (found or not outer) and self._has_blocks(row):
            block, part = in_blocks(row, BLOCK, used_names)
            loops = (*loops[: len(outer)], block, *loops[len(outer) : -1])
            node = nested(loops, *_partial_sum(part, added, type_, used_names))
        else:
            node = nested(loops, added)
        assert isinstance(node, For)
        return node

    def _has_blocks(self, row: For) -> bool:
        """Whether a row is summed block by block: it is the inner loop, and is not known to be short."""
        if row is not self.sums[-1] or variables_of(row.lo, row.hi) & {loop.var for loop in self.loops}:
            return False
        count = trips(row)
        return count is None or count > BLOCK


def _partial_sum(loop: For, added: Store, type_: Type, used_names: set[str]) -> tuple[Stmt, ...]:
    """Return statements that sum over a loop that is not empty into a scalar, and add it to the element."""
    name = unused(f"{added.buffer}_part", used_names)
    term = Assign(name, added.value, "+", added.line)
    start = Assign(name, Const(0.0, type_), "", added.line)
    return start, replace(loop, body=(term,)), replace(added, value=Var(name, type_))


@dataclass(frozen=True)
class Transposition:
    """A tensor of a nest, the axis that becomes the last one of its copy, and the nest's free loops then.

    ``row`` is the first summing loop that slides with a free loop, or else the innermost one. ``tests``: what
    must hold of sizes for lanes along that axis to be the better ones.
    """

    buffer: str
    axis: int
    free: tuple[For, ...]
    row: For
    tests: tuple[Expr, ...]


def pack_transposed(program: Program) -> Program:
    """Return the program with transposed copies, each made before the nest that reads it."""
    kernel, notes, copies = program.kernel, list[Note](), dict[tuple[str, int, tuple[Expr, ...]], str]()
    used_names = names_of(kernel)
    authors = program.frozen | program.kept_loops()
    body: list[Stmt] = []
    for node in kernel.body:
        changed = dict[int, Stmt]()
        for nest in _nests(node):
            if any(loop.hint == "serial" or loop.var in authors for loop in nest.loops):
                continue
            one = _transposition(kernel, nest)
            if one is None or not _is_inside(Model(kernel, program.session), one.buffer):
                continue
            if one.tests and program.schedule.is_deterministic:
                continue  # the size of a batch may decide them, and the two versions add in different orders
            key = (one.buffer, one.axis, one.tests)
            if key not in copies:
                copies[key] = unused(f"{one.buffer}_transposed", used_names)
                kernel, copy = _with_copy(kernel, one, copies[key], used_names, node.line)
                body += affine.guarded(one.tests, copy)
                text = f"{one.buffer}: read from a copy with dimension {one.axis} last"
                notes.append(Note(node.line, text, "pack_transposed"))
            read = functools.partial(_read, one=one, name=copies[key])
            type_ = Type(kernel.buffers[nest.added.buffer].dtype)
            made = nest.with_order(one.free, one.row, read, type_, used_names)
            if one.tests:
                made = renamed_copy(made, "_lanes", used_names)
            (changed[id(nest.top)],) = affine.guarded(one.tests, made, orelse=(nest.top,))
        body.append(with_replaced(node, changed))
    return program.with_(*notes, kernel=replace(kernel, body=tuple(body))) if notes else program


def _is_inside(model: Model, buffer: str) -> bool:
    """Whether no access to a tensor needs a check: a failing one would name the copy, and its dimension."""
    return all(
        is_inside_once_checked(model, leaf, access, axis)
        for leaf in model.leaves
        for access in leaf.accesses
        if access.target == buffer
        for axis in range(len(access.index))
    )


def _nests(node: Stmt) -> Iterator[Nest]:
    """Yield the nests around a single sum."""
    if isinstance(node, If):
        for inner in (*node.body, *node.orelse):
            yield from _nests(inner)
    if not isinstance(node, For) or node.hint == "border":
        return
    loops = perfect(node)
    match loops[-1].body:
        case (Store(op="+") as added,):
            free = tuple(loop for loop in loops if loop.var in variables_of(*added.index))
            sums = tuple(loop for loop in loops if loop not in free)
            if added.buffer not in tensors_of(*statements((node,))):
                yield Nest(node, free, sums, added)
        case body:
            for inner in body:
                yield from _nests(inner)


def _transposition(kernel: Kernel, nest: Nest) -> Transposition | None:
    """Return which operand of a nest is copied, and its loops then; None if none is."""
    loads = list(dict.fromkeys(loads_of(nest.added.value)))
    names, sums = {loop.var for loop in nest.loops}, {loop.var for loop in nest.sums}
    windows = {load: _sliding(load, names, sums) for load in loads}
    sliding = {name for of_load in windows.values() for name in of_load}
    along = [loop for loop in nest.free if any(stride(load, loop.var) == UNIT for load in loads)]
    if not sliding or any(loop.var not in sliding for loop in along):
        return None
    lengths = [_compared(loop, nest, loads) for loop in along]
    if LONG in lengths:
        return None
    if any(loop.hint or variables_of(loop.lo, loop.hi) & sums for loop in nest.free):
        return None  # their order stays
    edges = {name for loop in nest.loops for name in variables_of(loop.lo, loop.hi) & names}
    inner = [loop for loop in nest.free if loop.var not in edges]
    for load in sorted(loads, key=lambda one: bool(windows[one])):
        for axis, lane in _lanes(kernel, load, loads, inner):
            rows = [loop for loop in inner if loop is not lane and stride(load, loop.var) == UNIFORM]
            row = min(rows, key=lambda x: x.var in sliding, default=None)  # a window has few iterations
            tests = _tests(kernel, along, lane) if {*lengths} - {SHORT} else ()
            if row is not None and lane not in along and tests is not None:
                others = (loop for loop in nest.free if loop not in (row, lane))
                slides = (x for x in nest.sums if any(_slide_together(x, y, loads) for y in nest.free))
                of_rows = next(slides, nest.sums[-1])
                return Transposition(load.buffer, axis, (*others, row, lane), of_rows, tests)
    return None


def _sliding(load: Load, names: set[str], sums: set[str]) -> set[str]:
    """Return the free loops that share an index of a load with a summing loop."""
    used = [variables_of(i) & names for i in load.index]
    return {name for one in used if one & sums for name in one - sums}


def _lanes(
    kernel: Kernel, load: Load, loads: Sequence[Load], free: Sequence[For]
) -> Iterator[tuple[int, For]]:
    """Yield each axis that may become the lanes, with its loop; no other operand depends on that loop."""
    others = [e for e in loads if e is not load]
    if kernel.buffers[load.buffer].role == "input" and all(e.buffer != load.buffer for e in others):
        for axis, loop in itertools.product(range(len(load.index) - 1), free):
            elsewhere = any(depends(i, frozenset({loop.var})) for e in others for i in e.index)
            if load.index[axis] == Var(loop.var, INT) and stride(load, loop.var) == STRIDED and not elsewhere:
                yield axis, loop


def _compared(loop: For, nest: Nest, loads: Sequence[Load]) -> str:
    """Compare a loop with the summing one that slides over the same axis: LONG, SHORT or UNKNOWN."""
    beside = (other for other in nest.sums if _slide_together(loop, other, loads))
    return next((compared(loop, other) for other in beside), UNKNOWN)


def _slide_together(loop: For, other: For, loads: Sequence[Load]) -> bool:
    """Whether two loops slide over the last axis of an operand."""
    return any({loop.var, other.var} <= variables_of(load.index[-1]) for load in loads if load.index)


def _tests(kernel: Kernel, along: Sequence[For], lane: For) -> tuple[Expr, ...] | None:
    """Return the conditions under which lanes along ``lane`` are better; None if sizes do not tell."""
    extents = [affine.simplified(loop.hi - loop.lo) for loop in (lane, *along)]
    if variables_of(*extents) - {*kernel.attributes} or loads_of(*extents):
        return None
    return tuple(test for extent in extents[1:] for test in (extent < ENOUGH_LANES, extent <= extents[0]))


def _with_copy(
    kernel: Kernel, one: Transposition, name: str, used_names: set[str], line: int
) -> tuple[Kernel, Stmt]:
    """Return the kernel with the memory of a copy, and the loops that fill it."""
    old = kernel.buffers[one.buffer]
    local = replace(
        old, name=name, shape=_axis_last(old.shape, one.axis), role="local", pairs=False, for_lanes=True
    )
    kernel = replace(kernel, buffers={**kernel.buffers, name: local})
    return kernel, _copy_loops(kernel, one, name, used_names, line)


def _axis_last(values: tuple[Each, ...], axis: int) -> tuple[Each, ...]:
    """Return what belongs to each axis, with one axis last."""
    return (*values[:axis], *values[axis + 1 :], values[axis])


def _read(expr: Expr, one: Transposition, name: str) -> Expr:
    """Return an expression with the copy of a tensor in place of the tensor."""
    if isinstance(expr, Load) and expr.buffer == one.buffer:
        return replace(expr, buffer=name, index=_axis_last(expr.index, one.axis))
    return expr


def _copy_loops(kernel: Kernel, one: Transposition, name: str, used_names: set[str], line: int) -> Stmt:
    """Return the loops that fill a copy, in the order of its memory."""
    buffer = kernel.buffers[one.buffer]
    index = tuple(Var(unused(f"{name}_e{k}", used_names), INT) for k in range(len(buffer.shape)))
    value = Load(one.buffer, index, Type(buffer.dtype), line)
    target = _axis_last(index, one.axis)
    loops = loops_over([var.name for var in target], _axis_last(buffer.shape, one.axis), line)
    return nested(loops, Store(name, target, value, "", line))
