"""Rows that a loop's index tensor picks: their index is checked once, and the next rows are fetched ahead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..bounds import Bounds, key
from ..ir import Assign, Expr, For, Kernel, Load, Op, Store, children, statements, walk
from ..plan import Plan
from ..strides import UNIT, depends, stride
from .ctypes import identifier, memory
from .expressions import Expressions, Scope
from .writer import Writer

AHEAD = 4
"""How many rows ahead memory is asked for: enough to hide its latency behind rows of a few lines."""


@dataclass(frozen=True)
class Around:
    """The loop around a vector loop: its own node, and its end in C."""

    loop: For
    end: str


def rows(node: For, bounds: Bounds) -> list[Load]:
    """Return the loads of a vector loop that are made in each of its iterations, of rows it does not choose.

    They have an index that is checked at each access and that is the same for the whole loop.
    """
    inside = list(statements(node.body))
    names = frozenset({node.var, *(s.name for s in inside if isinstance(s, Assign))})
    written = {s.buffer for s in inside if isinstance(s, Store)}
    found: dict[Load, None] = {}
    for statement in node.body:
        if not isinstance(statement, (Assign, Store)):
            continue
        for load in always(children(statement)):
            checked = [load.index[axis] for axis in bounds.axes(load)]
            reads = {e.buffer for i in checked for e in walk(i) if isinstance(e, Load)}
            fixed = not any(depends(i, names) for i in checked) and not reads & written
            if checked and fixed and load.buffer not in written and stride(load, node.var) == UNIT:
                found[load] = None
    return list(found)


def once_a_row(
    notes: Sequence[tuple[int, str]], kernel: Kernel, plan: Plan, bounds: Bounds
) -> list[tuple[int, str]]:
    """Return notes in which rows that vector loops check once are said to be."""
    loops = [s for s in statements(kernel.body) if isinstance(s, For) and s.var in plan.vector]
    picked = {key(load) for loop in loops for load in rows(loop, bounds)}
    said = {(line, f"{buffer}:") for buffer, (_, line) in picked}
    each, once = "checked at each access", "checked once for each row"
    return [
        (line, text.replace(each, once) if (line, text.split(" ")[0]) in said else text)
        for line, text in notes
    ]


def always(exprs: Sequence[Expr]) -> Iterator[Load]:
    """Yield the loads that are made whenever expressions are computed, those in indices not included."""
    for expr in exprs:
        if isinstance(expr, Load):
            yield expr
        elif isinstance(expr, Op) and expr.name in ("select", "and", "or"):
            yield from always(expr.args[:1])
        else:
            yield from always(children(expr))


def check_once(out: Writer, expressions: Expressions, found: Sequence[Load], scope: Scope, runs: str) -> None:
    """Check loads before their loop, where it has iterations, and let ``expressions`` know of it."""
    known: dict[Load, tuple[str, Mapping[int, str]]] = {}
    for number, load in enumerate(found):
        names = {axis: f"row{number}_{axis}" for axis in sorted(expressions.axes(load))}
        for name in names.values():
            out.line(f"int64_t {name} = 0;")
        out.line(f"int found{number} = 0;")
        with out.block(f"if ({runs})"):
            index = [expressions.scalar(i, scope) if a in names else "" for a, i in enumerate(load.index)]
            declared, tests, _ = expressions.checks(load, index)
            out.line(declared.strip())
            out.line(f"found{number} = {tests};")
            for axis, name in names.items():
                out.line(f"{name} = q{axis};")
        known[load] = (f"found{number}", names)
    expressions.found.update(known)


@dataclass(frozen=True)
class Later:
    """A load's row of a later iteration, in C by axis."""

    load: Load
    names: Mapping[int, str]

    def line(self, expressions: Expressions, scope: Scope) -> str:
        """Return the statement that asks for the vector where the scope's variables are."""
        load = self.load
        index = [self.names.get(a) or expressions.scalar(i, scope) for a, i in enumerate(load.index)]
        at = expressions.address(load.buffer, tuple(index))
        size = f"(int64_t)sizeof({memory(load.type.dtype)})"
        return f"polyop_fetch({identifier(load.buffer)}, ({at}) * {size});"


def later(
    out: Writer, expressions: Expressions, found: Sequence[Load], node: For, around: Around, scope: Scope
) -> list[Later]:
    """Declare which rows a later iteration of the loop around takes, where an index tensor says so."""
    var = around.loop.var
    outer = frozenset({var})
    if not any(s is node for s in around.loop.body) or depends(node.lo, outer) or depends(node.hi, outer):
        return []  # a later iteration may not run the loop: what says which row it takes may not exist
    text = identifier(var)
    ahead = scope.with_names({var: f"({text} + {AHEAD})"})
    rows: list[Later] = []
    for number, load in enumerate(found):
        axes = sorted(expressions.axes(load))
        picked = [e for axis in axes for e in walk(load.index[axis]) if isinstance(e, Load)]
        sure = set(always([load.index[axis] for axis in axes]))
        direct = all(e in sure and not expressions.axes(e) and stride(e, var) == UNIT for e in picked)
        alike = not any(depends(i, outer) for a, i in enumerate(load.index) if a not in axes)
        if not picked or not direct or not alike:
            continue
        names = {axis: f"next{number}_{axis}" for axis in axes}
        for axis, name in names.items():
            there = expressions.scalar(load.index[axis], ahead)
            runs = f"found{number} && {text} + {AHEAD} < {around.end}"
            out.line(f"const int64_t {name} = {runs} ? {there} : 0;")
        rows.append(Later(load, names))
    return rows
