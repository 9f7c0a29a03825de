"""Print rows that an index tensor selects: a check once per row, and prefetches of later rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...ir.grammar import Expr, For, Load, Store
from ..common.c_text import identifier, memory
from ..common.expressions import Expressions, Scope
from ..common.writer import Writer

AHEAD = 4
"""Rows between a prefetch and its use: enough to hide the latency behind rows of a few cache lines."""


@dataclass(frozen=True)
class Around:
    """The loop around a vector loop; in C, a later iteration of it, and the condition that this is one.

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


def check_once(
    out: Writer, expressions: Expressions, accesses: Sequence[Load | Store], scope: Scope, has_iterations: str
) -> Scope:
    """Print checks of accesses before their loop, if it has iterations; return the scope that has them."""
    results: dict[Load | Store, tuple[str, Mapping[int, str]]] = {}
    for number, row in enumerate(accesses):
        names = {axis: f"row{number}_{axis}" for axis in sorted(expressions.axes(row))}
        for name in names.values():
            out.line(f"int64_t {name} = 0;")
        out.line(f"int found{number} = 0;")
        with out.block(f"if ({has_iterations})"):
            index = [expressions.scalar(i, scope) if a in names else "" for a, i in enumerate(row.index)]
            declared, tests, _ = expressions.checks(row, index, scope)
            out.line(declared.strip())
            out.line(f"found{number} = {tests};")
            for axis, name in names.items():
                out.line(f"{name} = q{axis};")
        results[row] = (f"found{number}", names)
    return replace(scope, checked={**scope.checked, **results})


class Picked(Expressions):
    """Prints the index that selects an iteration's row before the iteration runs.

    The author's code may not read that index at all, so an element outside its tensor is 0 and no error.
    """

    def checks(self, node: Load | Store, index: list[str], scope: Scope) -> tuple[str, str, tuple[str, ...]]:
        """Return declarations, the condition that all indices are inside, and the indices."""
        del scope
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

    row: Load | Store
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
    accesses: Sequence[Load | Store],
    selected: Sequence[Load | Store],
    around: Around,
    scope: Scope,
) -> list[Later]:
    """Declare the rows that a later iteration of the loop around selects; ``accesses`` are checked before."""
    ahead = scope.with_names({around.loop.var: around.later})
    rows: list[Later] = []
    for row in selected:
        number = accesses.index(row)
        names = {axis: f"next{number}_{axis}" for axis in sorted(expressions.axes(row))}
        for axis, name in names.items():
            next_index = expressions.scalar(row.index[axis], ahead)
            condition = " && ".join(filter(None, (f"found{number}", around.later_exists)))
            out.line(f"const int64_t {name} = {condition} ? {next_index} : 0;")
        rows.append(Later(row, names))
    return rows
