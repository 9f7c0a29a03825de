"""Rows that an index tensor selects: an index is checked once per row, and next rows are prefetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...analysis.bounds import Bounds, key
from ...analysis.strides import UNIT, depends, stride
from ...ir.grammar import Assign, Expr, For, Load, Store, children, statements, unconditional, walk
from ...ir.uses import tensors_of
from ..common.c_text import identifier, memory
from ..common.expressions import Expressions, Scope
from ..common.writer import Writer
from .optimisations import is_on

AHEAD = 4
"""Rows between a prefetch and its use: enough to hide the latency behind rows of a few cache lines."""


@dataclass(frozen=True)
class Around:
    """The loop around a vector loop; in C, a later iteration of it, and the condition that this one exists.

    ``apart``: iterations between the two may belong to other threads, whose memory must not be touched.
    """

    loop: For
    later: str
    later_exists: str
    apart: bool = True

    @classmethod
    def counting(cls, loop: For, end: str) -> Around:
        """Return a loop that runs up to an end."""
        var = identifier(loop.var)
        return cls(loop, f"({var} + {AHEAD})", f"{var} + {AHEAD} < {end}", apart=False)


Element = Load | Store
"""An access, of one element in each iteration."""


def rows(node: For, bounds: Bounds) -> list[Element]:
    """Return the unconditional accesses of a vector loop whose checked indices do not change in the loop."""
    inside = list(statements(node.body))
    names = frozenset({node.var, *(s.name for s in inside if isinstance(s, Assign))})
    written = {s.buffer for s in inside if isinstance(s, Store)}
    accesses: dict[Element, None] = {}
    for statement in node.body:
        if not isinstance(statement, (Assign, Store)):
            continue
        loads: list[Element] = [e for e in always(children(statement)) if e.buffer not in written]
        for row in (*loads, *([statement] if isinstance(statement, Store) else [])):
            checked = [row.index[axis] for axis in bounds.axes(row)]
            reads = tensors_of(*checked)
            fixed = not any(depends(i, names) for i in checked) and not reads & written
            if checked and fixed and stride(row, node.var) == UNIT and is_on("hoist_checks"):
                accesses[row] = None
    return list(accesses)


def rows_checked_once(loops: Sequence[For], bounds: Bounds) -> set[tuple[str, int]]:
    """Return the tensor and line of each access that these vector loops check once per row."""
    picked = {key(row) for loop in loops for row in rows(loop, bounds)}
    return {(buffer, line) for buffer, (_, line) in picked}


def always(exprs: Sequence[Expr]) -> Iterator[Load]:
    """Yield the unconditional loads of expressions, without those in indices."""
    for expr in exprs:
        yield from (e for e in unconditional(expr) if isinstance(e, Load))


def check_once(
    out: Writer, expressions: Expressions, accesses: Sequence[Element], scope: Scope, later_exists: str
) -> None:
    """Print checks of accesses before their loop, if it has iterations, and record them."""
    results: dict[Element, tuple[str, Mapping[int, str]]] = {}
    for number, row in enumerate(accesses):
        names = {axis: f"row{number}_{axis}" for axis in sorted(expressions.axes(row))}
        for name in names.values():
            out.line(f"int64_t {name} = 0;")
        out.line(f"int found{number} = 0;")
        with out.block(f"if ({later_exists})"):
            index = [expressions.scalar(i, scope) if a in names else "" for a, i in enumerate(row.index)]
            declared, tests, _ = expressions.checks(row, index)
            out.line(declared.strip())
            out.line(f"found{number} = {tests};")
            for axis, name in names.items():
                out.line(f"{name} = q{axis};")
        results[row] = (f"found{number}", names)
    expressions.prechecked.update(results)


class Picked(Expressions):
    """Prints the index that selects an iteration's row before the iteration runs.

    The author's code may not read that index at all, so an element outside its tensor is 0 and no error.
    """

    def checks(self, node: Load | Store, index: list[str]) -> tuple[str, str, tuple[str, ...]]:
        """Return declarations, the condition that all indices are inside, and the indices."""
        names = tuple(f"q{axis}" for axis in range(len(index)))
        declared = "".join(f"int64_t {name} = {text}; " for name, text in zip(names, index, strict=True))
        sizes = [self.size(node.buffer, axis) for axis in range(len(index))]
        rows = zip(names, sizes, strict=True)
        tests = " && ".join(f"polyop_is_inside(&q_2, &{name}, {size}, 1)" for name, size in rows)
        return declared, tests, names


def picked(expressions: Expressions, index: Expr) -> str:
    """Return the index of an iteration's row, in C; ``q_2`` is a failure that is never reported."""
    printer = Picked(expressions.kernel, expressions.bounds, precise=expressions.precise, checked=True)
    text = printer.scalar(index, Scope())
    expressions.used.functions |= printer.used.functions
    return text


@dataclass(frozen=True)
class Later:
    """The row of an access in a later iteration: C variables by axis."""

    row: Element
    names: Mapping[int, str]

    def line(self, expressions: Expressions, scope: Scope) -> str:
        """Return the statement that prefetches the vector at the scope's variables."""
        row = self.row
        index = [self.names.get(a) or expressions.scalar(i, scope) for a, i in enumerate(row.index)]
        at = expressions.address(row.buffer, tuple(index))
        size = f"(int64_t)sizeof({memory(expressions.kernel.buffers[row.buffer].dtype)})"
        return f"polyop_fetch_later({identifier(row.buffer)}, ({at}) * {size});"


def later(
    out: Writer,
    expressions: Expressions,
    accesses: Sequence[Element],
    node: For,
    around: Around,
    scope: Scope,
) -> list[Later]:
    """Declare the rows that a later iteration of the loop around selects by an index tensor."""
    var = around.loop.var
    outer = frozenset({var})
    if not any(s is node for s in around.loop.body) or depends(node.lo, outer) or depends(node.hi, outer):
        return []  # a later iteration may skip the loop, and then its index may not exist
    ahead = scope.with_names({var: around.later})
    rows: list[Later] = []
    for number, row in enumerate(accesses):
        axes = sorted(expressions.axes(row))
        index_loads = [e for axis in axes for e in walk(row.index[axis]) if isinstance(e, Load)]
        unconditional_loads = set(always([row.index[axis] for axis in axes]))
        direct = all(
            e in unconditional_loads and not expressions.axes(e) and stride(e, var) == UNIT
            for e in index_loads
        )
        other_axes_fixed = not any(depends(i, outer) for a, i in enumerate(row.index) if a not in axes)
        if not index_loads or not direct or not other_axes_fixed:
            continue
        names = {axis: f"next{number}_{axis}" for axis in axes}
        for axis, name in names.items():
            next_index = expressions.scalar(row.index[axis], ahead)
            condition = " && ".join(filter(None, (f"found{number}", around.later_exists)))
            out.line(f"const int64_t {name} = {condition} ? {next_index} : 0;")
        rows.append(Later(row, names))
    return rows
