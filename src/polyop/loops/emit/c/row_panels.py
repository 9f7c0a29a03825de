"""Print the packing of what a tile reads down its columns: ``a[k, i]`` in a sum over k, for rows i.

A panel has the elements in the order in which tiles read them: for each group of rows the steps of the sum,
and for each step the rows. It is packed once for all strips, if there are enough of them to pay for it;
otherwise the same code reads the tensor itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...analysis.strides import depends
from ...ir.grammar import For, Load
from ...ir.plan import RowPanel, Tile
from ..common.c_text import identifier, memory
from ..common.copies import lanes_for
from ..common.expressions import Expressions, Scope
from ..common.writer import Writer
from .blocks import FIRST
from .prefetch import STEPS

MOST_BYTES = 4 << 20
"""So many rows are packed at a time as take this: part of a third cache. Other sizes were not tried."""


@dataclass
class RowPacker:
    """Prints how panels are allocated, packed and read, for tiles of at most ``rows`` rows."""

    row: For
    lane: For
    tile: Tile
    rows: int
    expressions: Expressions
    out: Writer

    @property
    def panels(self) -> Sequence[RowPanel]:
        """The panels."""
        return self.tile.row_panels

    @property
    def i(self) -> str:
        """The C name of the row."""
        return identifier(self.row.var)

    def _scalar(self, node: Load | For, scope: Scope) -> str:
        """Return the offset of a load, or the first index of a loop."""
        if isinstance(node, For):
            return self.expressions.scalar(node.lo, scope)
        index = tuple(self.expressions.scalar(e, scope) for e in node.index)
        return self.expressions.address(node.buffer, index)

    def declare(self, scope: Scope, more: Sequence[str] = ()) -> None:
        """Print the number of steps of each sum, and ``<row>_rows``: how many rows are packed at a time.

        ``more``: the bytes of what else is packed for a row, in C.
        """
        sizes = list(more)
        for panel in self.panels:
            lo, hi = (self.expressions.scalar(e, scope) for e in (panel.loop.lo, panel.loop.hi))
            self.out.line(f"const int64_t {panel.name}_steps = max_i64(0, {hi} - ({lo}));")
            sizes.append(f"{panel.name}_steps * (int64_t)sizeof({_element(panel)})")
        groups = f"{MOST_BYTES} / max_i64(1, {' + '.join(sizes)}) / {self.rows}"
        self.out.line(f"const int64_t {self.i}_rows = max_i64(1, {groups}) * {self.rows};")

    def pack(self, scope: Scope, strips: str) -> None:
        """Print the packing of rows ``<row>_lo`` to ``<row>_end``, which have ``strips`` strips of lanes."""
        i, rows = self.i, self.rows
        for panel in self.panels:
            size = f"({i}_end - {i}_lo + {rows}) * {panel.name}_steps * sizeof({_element(panel)})"
            between = self.expressions.strides(panel.load, lanes_for(panel.loop.var, 1, None, {}))
            pays = f"polyop_packs_rows({strips}, ({between}) * (int64_t)sizeof({_element(panel)}))"
            self.out.line(
                f"{_element(panel)}* const {panel.name}_panel = {pays} ? polyop_scratch({size}) : 0;"
            )
            self.out.line(f"const int64_t {panel.name}_step = {panel.name}_panel ? {rows} : {between};")
            with self.out.block(f"if ({panel.name}_panel)"):
                self._copy(panel, scope)

    def release(self) -> None:
        """Print the end of the memory."""
        for panel in self.panels:
            self.out.line(f"polyop_release({panel.name}_panel);")

    def _copy(self, panel: RowPanel, scope: Scope) -> None:
        i, k, rows, out = self.i, identifier(panel.loop.var), self.rows, self.out
        self._rows_with_lanes(scope)
        with out.block(f"for (int64_t {i}_n = 0; {i}_n < {panel.name}_steps; ++{i}_n)"):
            out.line(f"const int64_t {k} = {self._scalar(panel.loop, scope)} + {i}_n;")
            with out.block(f"for (int64_t {i} = {i}_lo; {i} < {i}_end; {i} += {rows})"):
                to = f"{panel.name}_panel + ({i} - {i}_lo) * {panel.name}_steps + {i}_n * {rows}"
                out.line(f"{_element(panel)}* const {panel.name} = {to};")
                row, end = f"{i}_q", f"{i}_q_end"
                ends = f"{row} = max_i64({i}, {i}_from), {end} = min_i64({i} + {rows}, {i}_to)"
                with out.block(f"for (int64_t {ends}; {row} < {end}; ++{row})"):
                    out.line(f"{panel.name}[{row} - {i}] = {self._element(panel, scope, row)};")

    def _rows_with_lanes(self, scope: Scope) -> None:
        """Print the range of rows that have lanes: what another would read may be outside of the tensor.

        They are neighbours, because the bounds of the lanes are affine.
        """
        i, out = self.i, self.out
        out.line(f"int64_t {i}_from = {i}_lo, {i}_to = {i}_end;")
        bounds = (self.lane.lo, self.lane.hi)
        if not any(depends(e, frozenset({self.row.var})) for e in bounds):
            return
        for row, change in ((f"{i}_from", f"++{i}_from"), (f"({i}_to - 1)", f"--{i}_to")):
            names = scope.with_names({self.row.var: row})
            lo, hi = (self.expressions.scalar(e, names) for e in bounds)
            out.line(f"while ({i}_from < {i}_to && {lo} >= {hi}) {change};")

    def _element(self, panel: RowPanel, scope: Scope, row: str) -> str:
        place = self._scalar(panel.load, scope.with_names({self.row.var: row}))
        return f"{self.expressions.tensor(panel.load.buffer)}[{place}]"

    def point(self, scope: Scope, row: str) -> None:
        """Print the pointers to the first step of the sums for the tile that starts with a row."""
        for panel in self.panels:
            start = scope.names.get(FIRST, self._scalar(panel.loop, scope))
            first = scope.with_names({panel.loop.var: f"({start})"})
            group = f"({row} - {self.i}_lo) / {self.rows} * {self.rows} * {panel.name}_steps"
            packed = f"{panel.name}_panel + {group} + ({row} - {self.i}_lo) % {self.rows}"
            if FIRST in scope.names:
                packed += f" + ({start} - ({self._scalar(panel.loop, scope)})) * {self.rows}"
            tensor = f"&{self._element(panel, first, row)}"
            pointer = f"const {_element(panel)}* {panel.name}"
            self.out.line(f"{pointer} = {panel.name}_panel ? {packed} : {tensor};")

    def after(self, last: int) -> Iterator[tuple[str, str]]:
        """Yield loops, each with a line for the end of its body: pointers advance, rows are prefetched."""
        for panel in self.panels:
            yield panel.loop.var, f"{panel.name} += {panel.name}_step;"
            if (panel.loop.var, panel.load) not in self.tile.prefetched:
                continue
            ahead = f"{STEPS} * {panel.name}_step * (int64_t)sizeof({_element(panel)})"
            for row in {0: panel.name, last: f"{panel.name} + {last}"}.values():
                yield panel.loop.var, f"polyop_fetch({row}, {ahead});"


def _element(panel: RowPanel) -> str:
    """Return the C type of an element."""
    return memory(panel.load.type.dtype)
