"""Print panels: what all rows of a tile share is packed in the order in which the tile reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...ir.grammar import Expr, For
from ...ir.plan import Panel
from ..common.c_text import identifier, memory
from ..common.copies import lanes_for
from ..common.expressions import Expressions, Scope
from ..common.writer import Writer
from .register_transpose import COLUMNS
from .scratch import Scratch


@dataclass(frozen=True)
class Shape:
    """Rows and vectors of a tile."""

    rows: int
    units: int


NARROW = Shape(8, 1)
"""The shape where one vector covers all lanes: enough independent sums to hide the latency of one."""


class PanelPacker:
    """Prints the packing of a tile's panels, and how the tile reads them."""

    def __init__(
        self,
        lane: For,
        panels: Sequence[Panel],
        shape: Shape,
        width: int,
        expressions: Expressions,
        out: Writer,
    ) -> None:
        self.lane, self.panels, self.shape, self.width = lane, panels, shape, width
        self.expressions, self.out = expressions, out
        self.lanes = expressions.lane_count(width)

    def _scalar(self, expr: Expr, scope: Scope) -> str:
        return self.expressions.scalar(expr, scope)

    def allocate(self, scope: Scope, scratch: Scratch) -> None:
        """Print the memory of the panels."""
        for panel in self.panels:
            elem = self.expressions.value(panel.load, scope).elem
            trips = [
                f"max_i64(0, {self._scalar(f.hi, scope)} - ({self._scalar(f.lo, scope)}))"
                for f in panel.loops
            ]
            strip = f"{self.shape.units} * {self.lanes}"
            if panel.slides:
                name, of_window = panel.name, trips.pop()
                self.out.line(f"const int64_t {name}_n = {of_window};")
                longer = f"({name}_n + {self.lanes} - 2) / {self.lanes} * {self.lanes}"
                self.out.line(f"const int64_t {name}_step = {strip} + {longer};")
                strip = f"{name}_step"
            size = " * ".join([*trips, f"{strip} * sizeof({elem})"])
            scratch.allocate(elem, f"{panel.name}_panel", size)

    def pack(self, scope: Scope) -> None:
        """Print the packing of the panels: a strip that is whole loads its vectors without masks."""
        if not self.panels:
            return
        j = identifier(self.lane.var)
        with self.out.block(f"if ({j} + {self.shape.units} * {self.lanes} <= {j}_end)"):
            self._pack_panels(scope, whole=True)
        with self.out.block("else"):
            self._pack_panels(scope, whole=False)

    def _pack_panels(self, scope: Scope, *, whole: bool) -> None:
        groups: dict[tuple[str, ...], list[Panel]] = {}
        for panel in self.panels:
            groups.setdefault(tuple(f.var for f in panel.packed_in), []).append(panel)
        for panels in groups.values():
            with self.out.block(""):
                for panel in panels:
                    elem = self.expressions.value(panel.load, scope).elem
                    self.out.line(f"{elem}* {panel.name} = {panel.name}_panel;")
                self._pack_loops(panels, panels[0].packed_in, scope, whole=whole)

    def _pack_loops(
        self, panels: Sequence[Panel], loops: Sequence[For], scope: Scope, *, whole: bool
    ) -> None:
        if loops:
            node, *rest = loops
            if not rest and all(p.transposed for p in panels):
                self._pack_transposed(panels, node, scope)
                return
            var = identifier(node.var)
            lo, hi = self._scalar(node.lo, scope), self._scalar(node.hi, scope)
            with self.out.block(f"for (int64_t {var} = {lo}, {var}_end = {hi}; {var} < {var}_end; ++{var})"):
                self._pack_loops(panels, rest, scope, whole=whole)
            return
        for panel in panels:
            if panel.slides:
                self._pack_row(panel, scope, whole=whole)
                continue
            for unit in range(self.shape.units):
                self._pack_vector(panel, scope, f"{unit} * {self.lanes}", "", whole=whole)
            self.out.line(f"{panel.name} += {self.shape.units} * {self.lanes};")

    def _pack_row(self, panel: Panel, scope: Scope, *, whole: bool) -> None:
        """Print the packing of a row over which a window slides; a window of no elements reads none."""
        window, name = panel.loops[-1], panel.name
        end = window.lo if panel.slides > 0 else window.hi - 1
        here = scope.with_names({window.var: f"({self._scalar(end, scope)})"})
        more, start = f" + {name}_n - 1", f"{self.shape.units} * {self.lanes}"
        with self.out.block(f"if ({name}_n > 0)"):
            for unit in range(self.shape.units):
                self._pack_vector(panel, here, f"{unit} * {self.lanes}", more, whole=whole)
            with self.out.block(f"for (int64_t u = {start}; u < {name}_step; u += {self.lanes})"):
                self._pack_vector(panel, here, "u", more, whole=False)
        self.out.line(f"{name} += {name}_step;")

    def _pack_vector(self, panel: Panel, scope: Scope, offset: str, more: str, *, whole: bool) -> None:
        """Print the packing of one vector: of all lanes, or of those before the last one and ``more``."""
        j = identifier(self.lane.var)
        at = f"({j} + {offset})"
        lanes = lanes_for(self.lane.var, self.width, None if whole else f"({j}_end{more} - {at})", {})
        inner = replace(scope.with_names({self.lane.var: at}), lanes=lanes)
        value = self.expressions.value(panel.load, inner)
        kind = self.expressions.vector(value.elem, inner)
        self.out.line(f"store_{kind}({panel.name} + {offset}, {value.text});")

    def _pack_transposed(self, panels: Sequence[Panel], node: For, scope: Scope) -> None:
        """Pack loads whose lanes are rows along which the loop walks: several columns at once, transposed."""
        var, j, units = identifier(node.var), identifier(self.lane.var), self.shape.units
        lo, hi = self._scalar(node.lo, scope), self._scalar(node.hi, scope)
        self.expressions.used.headers.add("transpose.h")
        kinds = [self.expressions.vector_type(memory(p.load.type.dtype), self.width) for p in panels]
        for panel in panels:
            size = f"({COLUMNS} + {self.lanes}) * {self.lanes}"
            self.out.line(
                f"{memory(panel.load.type.dtype)} {panel.name}_strip_[{size}] __attribute__((aligned(64)));"
            )
        with self.out.block(
            f"for (int64_t {var} = {lo}, {var}_end = {hi}; {var} < {var}_end; {var} += {COLUMNS})"
        ):
            self.out.line(f"const int64_t {var}_n0 = min({COLUMNS}, {var}_end - {var});")
            for panel, kind in zip(panels, kinds, strict=True):
                for unit in range(units):
                    at = f"({j} + {unit} * {self.lanes})"
                    lanes = lanes_for(self.lane.var, self.width, None, {})
                    inner = scope.with_names({self.lane.var: at})
                    index = tuple(self.expressions.scalar(i, inner) for i in panel.load.index)
                    place = self.expressions.address(panel.load.buffer, index)
                    step = self.expressions.strides(panel.load, lanes)
                    source = f"&{identifier(panel.load.buffer)}[{place}], {step}, {var}_n0, {j}_end - {at}"
                    self.out.line(f"polyop_transpose_{kind}({panel.name}_strip_, {source});")
                    target = f"{panel.name} + ({var}_r0 * {units} + {unit}) * {self.lanes}"
                    transposed = f"load_{kind}({panel.name}_strip_ + {var}_r0 * {self.lanes})"
                    with self.out.block(f"for (int64_t {var}_r0 = 0; {var}_r0 < {var}_n0; ++{var}_r0)"):
                        self.out.line(f"store_{kind}({target}, {transposed});")
                self.out.line(f"{panel.name} += {var}_n0 * {units} * {self.lanes};")

    def point(self, scope: Scope) -> None:
        """Print the pointers with which a tile walks through its panels."""
        for panel in self.panels:
            elem = self.expressions.value(panel.load, scope).elem
            start = f" + max_i64(0, {panel.name}_n - 1)" if panel.slides < 0 else ""
            self.out.line(f"const {elem}* {panel.name} = {panel.name}_panel{start};")

    def steps(self) -> Iterator[tuple[str, str]]:
        """Yield the loops of the tile at the end of whose bodies a pointer moves, and the statement, in C."""
        for panel in self.panels:
            step = panel.slides or f"{self.shape.units} * {self.lanes}"
            yield panel.loops[-1].var, f"{panel.name} += {step};"
            if panel.slides:
                back = f"{panel.slides} * {panel.name}_n"
                yield panel.loops[-2].var, f"{panel.name} += {panel.name}_step - {back};"

    @property
    def packed_rows(self) -> set[str]:
        """The loops over rows that are packed whole."""
        return {panel.loops[-2].var for panel in self.panels if panel.slides}

    def vectors(self, scope: Scope, offset: str) -> dict[str, str]:
        """Return the C text of the vector of each panel, from an offset on, by its name."""
        names = {}
        for panel in self.panels:
            elem = self.expressions.value(panel.load, replace(scope, lanes=None)).elem
            kind = self.expressions.vector_type(elem, self.width)
            names[panel.variable] = f"load_{kind}({panel.name}{' + ' + offset if offset else ''})"
        return names
