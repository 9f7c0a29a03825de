"""Register transpose: lanes that walk along their own rows load squares and transpose them.

Gathering the same column of neighbouring rows takes one load for each lane. A loop along the rows needs the
next column at each step. So a square of rows and columns is loaded as vectors and transposed in registers,
once for all that the loop reads of it. What the loop stores waits in such a square until that is full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...core.dtypes import dtype
from ..analysis import affine
from ..analysis.bounds import Bounds
from ..analysis.strides import STRIDED, depends, stride
from ..analysis.transposes import transposed_loads
from ..ir.grammar import Assign, For, Load, Store, Type, children, statements, walk
from ..ir.plan import Strip
from ..ir.uses import assigned_by, stored_by, tensors_of, unconditional_loads
from ..program import Program
from .vector_loops import VectorLoop, vector_loops

MIN_LOADS = 4
"""The fewest loads for which a loop without strips of stores transposes: fewer are gathered as fast.

A transposing loop (``analysis/transposes.py``) has no such limit."""
MAX_SPAN = 8
"""The largest distance of columns in one strip."""
MAX_STRIPS = 12
"""Most strips of a loop: they are on the stack."""


@dataclass(frozen=True)
class Lanes:
    """The variable of a vector loop, and the scalars and private tensors that differ between its lanes."""

    var: str
    varying: frozenset[str] = frozenset()


def register_transpose(program: Program) -> Program:
    """Return the program with the strips of the loops inside vector loops."""
    found = {loop.var: _strips(vector, loop) for vector in vector_loops(program) for loop in vector.inner}
    plan = replace(program.plan, transposed={var: strips for var, strips in found.items() if strips})
    return program.with_(plan=plan)


def _strips(vector: VectorLoop, node: For) -> tuple[Strip, ...]:
    """Return the strips of a loop inside a vector loop.

    They are of what each iteration loads and none writes, and of what each stores and none loads.
    """
    program, lanes = vector.program, Lanes(vector.node.var, vector.varying)
    assigned, written = frozenset(assigned_by(node.body)), stored_by(node.body)
    direct = [s for s in node.body if isinstance(s, (Assign, Store))]
    always = dict.fromkeys(e for s in direct for e in unconditional_loads(children(s)))
    loads = [e for e in always if e.buffer not in written]
    elsewhere = stored_by(program.kernel.body)
    narrow = transposed_loads(node, lanes.var)
    groups: dict[object, list[tuple[int, Load]]] = {}
    for load in loads:
        form = column_of(load, node.var, assigned, lanes, program.bounds, narrow=load in narrow)
        if form is not None:
            row = (load.buffer, load.index[:-1], tuple(sorted((n, c) for n, c in form.items() if n)))
            groups.setdefault(row, []).append((form.get("", 0), load))
    loaded: list[Strip] = []
    for group in groups.values():
        gap = 1 if group[0][1].buffer in elsewhere else MAX_SPAN
        loaded += _split(group, gap, node.var)
    stored = _stored(node, assigned, lanes, program)
    strips = [*stored, *loaded]
    several = sum(len(s.accesses) for s in strips) >= MIN_LOADS
    return tuple(strips[:MAX_STRIPS]) if stored or several or narrow else ()


def _stored(node: For, assigned: frozenset[str], lanes: Lanes, program: Program) -> list[Strip]:
    """Return a strip for each tensor that a loop writes by one plain store and does not read."""
    inside = list(statements(node.body))
    read = tensors_of(*inside)
    written = Counter(s.buffer for s in inside if isinstance(s, Store))
    result = []
    for store in node.body:
        if not isinstance(store, Store) or store.op or store.buffer in read or written[store.buffer] > 1:
            continue
        if program.bounds.axes(store):
            continue
        of_elements = Type(program.kernel.buffers[store.buffer].dtype)
        place = Load(store.buffer, store.index, of_elements, store.line)
        form = column_of(place, node.var, assigned, lanes, program.bounds)
        if form is not None:
            result.append(Strip((store,), form[node.var]))
    return result


def column_of(
    load: Load, var: str, assigned: frozenset[str], lanes: Lanes, bounds: Bounds, *, narrow: bool = False
) -> affine.Linear | None:
    """Return the column of a load that a strip can have, as a linear form; ``narrow``: also of few bytes.

    ``var`` is the loop along the row, which assigns the scalars ``assigned``.
    """
    if not load.index or load.buffer in lanes.varying:
        return None
    if not narrow and dtype(load.type.dtype).itemsize < 4:
        return None
    if stride(load, lanes.var, lanes.varying) != STRIDED or not bounds.is_plain(load):
        return None
    *rows, column = load.index
    form = affine.linear(column)
    if form is None or abs(form.get(var, 0)) != 1 or depends(column, frozenset({lanes.var})):
        return None
    fixed = not any(depends(i, frozenset({var})) for i in rows)
    plain = not any(depends(i, assigned) or isinstance(e, Load) for i in load.index for e in walk(i))
    return form if fixed and plain else None


def _split(group: Sequence[tuple[int, Load]], gap: int, var: str) -> list[Strip]:
    """Return strips of loads whose columns are near one another."""
    result: list[Strip] = []
    start = last = 0
    for at, load in sorted(group, key=lambda pair: pair[0]):
        if not result or at - last > gap or at - start > MAX_SPAN:
            step = (affine.linear(load.index[-1]) or {})[var]
            result.append(Strip((), step))
            start = at
        result[-1] = replace(result[-1], accesses=(*result[-1].accesses, load), span=at - start)
        last = at
    return result
