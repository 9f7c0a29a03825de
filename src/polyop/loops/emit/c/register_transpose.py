"""Register transpose: lanes that walk along their own rows load squares and transpose them.

Gathering the same column of neighbouring rows takes one load for each lane. A loop along the rows needs the
next column at each step. So a square of rows and columns is loaded as vectors and transposed in registers,
once for all that the loop reads of it. What the loop stores waits in such a square until that is full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...analysis import affine
from ...analysis.bounds import key
from ...analysis.strides import STRIDED, depends, stride
from ...analysis.transposes import transposed_loads
from ...ir.grammar import Assign, For, Load, Store, Type, children, statements, walk
from ...ir.uses import stored_by, tensors_of
from ..common.c_text import SIZES, identifier, memory, word
from ..common.copies import Copy
from ..common.expressions import Expressions, Lanes, Scope
from ..common.writer import Writer
from .indexed_rows import always
from .optimisations import is_on

COLUMNS = 16
"""Columns that are transposed at once: few enough for out-of-order execution to begin the next ones."""
LINE = 64
"""Bytes of a cache line. Where it holds more than ``COLUMNS`` elements, so many are transposed at once."""
MIN_LOADS = 4
"""The fewest loads for which a loop without strips of stores transposes: fewer are gathered as fast.

A transposing loop (``analysis/strides.py``) has no such limit."""
MAX_SPAN = 8
"""The largest distance of columns in one strip."""
MAX_STRIPS = 12
"""Most strips of a loop: they are on the stack."""


@dataclass
class Strip:
    """Loads of one row in neighbouring columns, the least one first, or a store; ``step`` is 1 or -1."""

    accesses: list[Load | Store]
    scope: Scope
    step: int
    span: int = 0

    @property
    def first(self) -> Load | Store:
        """The access of the least column."""
        return self.accesses[0]


def strips(node: For, copies: Sequence[Copy], expressions: Expressions) -> list[Strip]:
    """Return the strips of a loop inside a vector loop.

    They are of what each iteration loads and none writes, and of what each stores and none loads.
    """
    if not is_on("register_transpose"):
        return []
    inside = list(statements(node.body))
    assigned = frozenset(s.name for s in inside if isinstance(s, Assign))
    written = {s.buffer for s in inside if isinstance(s, Store)}
    direct = [s for s in node.body if isinstance(s, (Assign, Store))]
    loads = dict.fromkeys(e for s in direct for e in always(children(s)) if e.buffer not in written)
    elsewhere = stored_by(expressions.kernel.body)
    result: list[Strip] = []
    stores = 0
    across = [transposed_loads(node, c.scope.lanes.var) if c.scope.lanes is not None else [] for c in copies]
    for copy, narrow in zip(copies, across, strict=True):
        groups: dict[object, list[tuple[int, Load]]] = {}
        for load in loads:
            form = _form(load, node.var, assigned, copy.scope, expressions, narrow=load in narrow)
            if form is not None:
                row = (load.buffer, load.index[:-1], tuple(sorted((n, c) for n, c in form.items() if n)))
                groups.setdefault(row, []).append((form.get("", 0), load))
        for group in groups.values():
            gap = 1 if group[0][1].buffer in elsewhere else MAX_SPAN
            result += _split(group, gap, copy.scope, node.var)
        kept = _stored(node, assigned, copy, expressions)
        result, stores = [*kept, *result], stores + len(kept)
    several = sum(len(s.accesses) for s in result) >= MIN_LOADS * len(copies)
    return result[:MAX_STRIPS] if stores or several or any(across) else []


def _stored(node: For, assigned: frozenset[str], copy: Copy, expressions: Expressions) -> list[Strip]:
    """Return a strip for each tensor that a loop writes by one plain store and does not read."""
    inside = list(statements(node.body))
    read = tensors_of(*inside)
    written = Counter(s.buffer for s in inside if isinstance(s, Store))
    result = []
    for store in node.body:
        if not isinstance(store, Store) or store.op or copy.scope.mask is not None or copy.start is not None:
            continue
        if store.buffer in read or written[store.buffer] > 1 or expressions.axes(store):
            continue
        dtype = expressions.kernel.buffers[store.buffer].dtype
        place = Load(store.buffer, store.index, Type(dtype), store.line)
        form = _form(place, node.var, assigned, copy.scope, expressions)
        if form is not None:
            result.append(Strip([store], copy.scope, form[node.var]))
    return result


def _form(
    load: Load,
    var: str,
    assigned: frozenset[str],
    scope: Scope,
    expressions: Expressions,
    *,
    narrow: bool = False,
) -> affine.Linear | None:
    """Return the column of a load that a strip can have, as a linear form; ``narrow``: also of few bytes."""
    lanes = scope.lanes
    if lanes is None or not load.index or load.buffer in lanes.varying:
        return None
    if not narrow and SIZES[memory(load.type.dtype)] < 4:
        return None
    if stride(load, lanes.var, lanes.varying) != STRIDED:
        return None
    if expressions.axes(load) or key(load) in expressions.bounds.guarded:
        return None
    *rows, column = load.index
    form = affine.linear(column)
    if form is None or abs(form.get(var, 0)) != 1 or depends(column, frozenset({lanes.var})):
        return None
    fixed = not any(depends(i, frozenset({var})) for i in rows)
    plain = not any(depends(i, assigned) or isinstance(e, Load) for i in load.index for e in walk(i))
    return form if fixed and plain else None


def is_transposable(load: Load, var: str, lane: str, expressions: Expressions) -> bool:
    """Whether a load's lanes are rows, along which the loop walks forward."""
    scope = Scope(lanes=Lanes(lane, SIZES[memory(load.type.dtype)]))
    form = _form(load, var, frozenset(), scope, expressions)
    return form is not None and form.get(var) == 1


def _split(group: list[tuple[int, Load]], gap: int, scope: Scope, var: str) -> list[Strip]:
    """Return strips of loads whose columns are near one another."""
    result: list[Strip] = []
    start = last = 0
    for at, load in sorted(group, key=lambda pair: pair[0]):
        if not result or at - last > gap or at - start > MAX_SPAN:
            step = (affine.linear(load.index[-1]) or {})[var]
            result.append(Strip([], scope, step))
            start = at
        result[-1].accesses.append(load)
        result[-1].span, last = at - start, at
    return result


def declare(new_strips: Sequence[Strip], first: int, expressions: Expressions, out: Writer) -> None:
    """Declare the memory of strips, numbered from ``first``, and let ``expressions`` load from it."""
    columns = _columns(new_strips, expressions)
    for number, strip in enumerate(new_strips, first):
        lanes = strip.scope.lanes
        assert lanes is not None
        elem = memory(expressions.kernel.buffers[strip.first.buffer].dtype)
        size = f"({columns + strip.span} + {lanes.number}) * {lanes.number}"
        out.line(f"{elem} strip{number}_panel[{size}] __attribute__((aligned(64)));")
        out.line(f"int64_t strip{number}_lo = 0;")
        for access in strip.accesses:
            expressions.strips[access, _lane(strip.scope)] = f"strip{number}"


def fill(
    strips_of_loop: Sequence[Strip], first: int, var: str, start: str, expressions: Expressions, out: Writer
) -> None:
    """Print the transpose of the next columns, for iterations that have used up the last ones."""
    columns = _columns(strips_of_loop, expressions)
    with out.block(f"if (({var} - {start}) % {columns} == 0)"):
        out.line(f"{var}_n0 = min({columns}, {var}_end - {var});")
        for number, strip in enumerate(strips_of_loop, first):
            scope = replace(strip.scope, lanes=None)
            column = expressions.scalar(strip.first.index[-1], scope)
            at = column if strip.step > 0 else f"{column} - ({var}_n0 - 1)"
            out.line(f"strip{number}_lo = {at};")
            if isinstance(strip.first, Load):
                kind, source, steps, count = _rows(strip, number, expressions)
                width = f"{var}_n0 + {strip.span}"
                out.line(
                    f"polyop_transpose_{kind}(strip{number}_panel, {source}, {steps}, {width}, {count});"
                )


def store_back(
    strips_of_loop: Sequence[Strip], first: int, var: str, start: str, expressions: Expressions, out: Writer
) -> None:
    """Print the transpose back of stored columns, for iterations that complete a strip."""
    stored = [(number, s) for number, s in enumerate(strips_of_loop, first) if isinstance(s.first, Store)]
    if not stored:
        return
    with out.block(f"if (({var} - {start}) % {_columns(strips_of_loop, expressions)} == {var}_n0 - 1)"):
        for number, strip in stored:
            kind, target, steps, count = _rows(strip, number, expressions)
            panel = f"strip{number}_panel, {var}_n0, {count}"
            out.line(f"polyop_untranspose_{kind}({target}, {steps}, {panel});")


def _columns(strips_of_loop: Sequence[Strip], expressions: Expressions) -> int:
    """Return how many columns a loop transposes at once."""
    dtypes = [expressions.kernel.buffers[strip.first.buffer].dtype for strip in strips_of_loop]
    return max(COLUMNS, *(LINE // SIZES[memory(dtype)] for dtype in dtypes))


def _rows(strip: Strip, number: int, expressions: Expressions) -> tuple[str, str, str, str]:
    """Return the vector type, where the first row is, how far apart rows are and how many, in C."""
    lanes, access = strip.scope.lanes, strip.first
    assert lanes is not None
    scope = replace(strip.scope, lanes=None)
    rows = (expressions.scalar(i, scope) for i in access.index[:-1])
    place = expressions.address(access.buffer, (*rows, f"strip{number}_lo"))
    expressions.used.headers.add("transpose.h")
    kind = expressions.vector(word(expressions.kernel.buffers[access.buffer].dtype), strip.scope)
    at = f"&{identifier(access.buffer)}[{place}]"
    return kind, at, expressions.strides(access, lanes), lanes.count or lanes.number


def forget(strips_of_loop: Sequence[Strip], expressions: Expressions) -> None:
    """End the use of strips: accesses go to the tensors again."""
    for strip in strips_of_loop:
        for access in strip.accesses:
            expressions.strips.pop((access, _lane(strip.scope)), None)


def _lane(scope: Scope) -> str:
    assert scope.lanes is not None
    return scope.names.get(scope.lanes.var, identifier(scope.lanes.var))
