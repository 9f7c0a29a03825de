"""Print register transposes: squares of elements are loaded and stored through strips on the stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...ir.grammar import Load, Store
from ...ir.plan import Strip
from ..common.c_text import SIZES, identifier, memory, word
from ..common.expressions import Expressions, Scope
from ..common.writer import Writer

COLUMNS = 16
"""Columns that are transposed at once: few enough for out-of-order execution to begin the next ones."""
LINE = 64
"""Bytes of a cache line. Where it holds more than ``COLUMNS`` elements, so many are transposed at once."""


@dataclass(frozen=True)
class StripMemory:
    """The memory of a strip, in the scope of a vector, numbered within its function."""

    strip: Strip
    scope: Scope
    number: int

    @property
    def name(self) -> str:
        """The beginning of its C names."""
        return f"strip{self.number}"

    @property
    def lanes(self) -> str:
        """The number of lanes, in C."""
        assert self.scope.lanes is not None
        return self.scope.lanes.number


def declare(panels: Sequence[StripMemory], expressions: Expressions, out: Writer) -> None:
    """Declare the memory of strips."""
    columns = _columns(panels, expressions)
    for panel in panels:
        elem = memory(expressions.kernel.buffers[panel.strip.first.buffer].dtype)
        size = f"({columns + panel.strip.span} + {panel.lanes}) * {panel.lanes}"
        out.line(f"{elem} {panel.name}_panel[{size}] __attribute__((aligned(64)));")
        out.line(f"int64_t {panel.name}_lo = 0;")


def fill(panels: Sequence[StripMemory], var: str, start: str, expressions: Expressions, out: Writer) -> None:
    """Print the transpose of the next columns, for iterations that have used up the last ones."""
    columns = _columns(panels, expressions)
    with out.block(f"if (({var} - {start}) % {columns} == 0)"):
        out.line(f"{var}_n0 = min({columns}, {var}_end - {var});")
        for panel in panels:
            strip, name = panel.strip, panel.name
            column = expressions.scalar(strip.first.index[-1], replace(panel.scope, lanes=None))
            at = column if strip.step > 0 else f"{column} - ({var}_n0 - 1)"
            out.line(f"{name}_lo = {at};")
            if isinstance(strip.first, Load):
                kind, source, steps, count = _rows(panel, expressions)
                width = f"{var}_n0 + {strip.span}"
                out.line(f"polyop_transpose_{kind}({name}_panel, {source}, {steps}, {width}, {count});")


def store_back(
    panels: Sequence[StripMemory], var: str, start: str, expressions: Expressions, out: Writer
) -> None:
    """Print the transpose back of stored columns, for iterations that complete a strip."""
    stored = [panel for panel in panels if isinstance(panel.strip.first, Store)]
    if not stored:
        return
    with out.block(f"if (({var} - {start}) % {_columns(panels, expressions)} == {var}_n0 - 1)"):
        for panel in stored:
            kind, target, steps, count = _rows(panel, expressions)
            source = f"{panel.name}_panel, {var}_n0, {count}"
            out.line(f"polyop_untranspose_{kind}({target}, {steps}, {source});")


def _columns(panels: Sequence[StripMemory], expressions: Expressions) -> int:
    """Return how many columns a loop transposes at once."""
    dtypes = [expressions.kernel.buffers[panel.strip.first.buffer].dtype for panel in panels]
    return max(COLUMNS, *(LINE // SIZES[memory(dtype)] for dtype in dtypes))


def _rows(panel: StripMemory, expressions: Expressions) -> tuple[str, str, str, str]:
    """Return the vector type, where the first row is, how far apart rows are and how many, in C."""
    lanes, access = panel.scope.lanes, panel.strip.first
    assert lanes is not None
    scope = replace(panel.scope, lanes=None)
    rows = (expressions.scalar(i, scope) for i in access.index[:-1])
    place = expressions.address(access.buffer, (*rows, f"{panel.name}_lo"))
    expressions.used.headers.add("transpose.h")
    kind = expressions.vector(word(expressions.kernel.buffers[access.buffer].dtype), panel.scope)
    at = f"&{identifier(access.buffer)}[{place}]"
    return kind, at, expressions.strides(access, lanes), lanes.count or lanes.number
