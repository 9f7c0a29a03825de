"""Print register tiles: a block of rows x vectors is accumulated in registers.

An operand that all rows share is packed into a contiguous panel first, in the order in which it is needed.
The panel is padded with zeros, so that the sums need no special case at the edges.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ...analysis.lanes import LANE, ROW, dependence, differing, lane_width
from ...analysis.strides import depends
from ...ir.grammar import Assign, Expr, For, Load, Stmt, Store, statements
from ...ir.plan import Tile
from ...ir.uses import loads_of, stored_by, variables_of
from ...vectors.tile_body import dependences_of, from_panels, parts_of, variable_of, without_dots
from ..common.c_text import computed, identifier
from ..common.copies import Copies, Copy, lanes_for
from ..common.expressions import Scope
from . import prefetch
from .blocks import SumBlocks, of_block
from .dots import Dots
from .loops import Loops
from .panels import NARROW, PanelPacker, Shape
from .row_panels import RowPacker
from .scratch import Scratch


class TilePrinter:
    """Prints a loop ``row``, and ``lane``, its only statement, as tiles."""

    def __init__(self, loops: Loops, shape: Shape, row: For, lane: For, tile: Tile) -> None:
        self.loops, self.shape, self.row, self.tile, self.original = loops, shape, row, tile, lane
        self.out, self.expressions = loops.out, loops.expressions
        self.dots = Dots(tile, row, lane, shape.units, loops)
        self.lane = lane = replace(lane, body=without_dots(lane.body, tile))
        self.panels = tile.panels if shape is not NARROW else [replace(p, slides=0) for p in tile.panels]
        self.row_packer = RowPacker(row, lane, tile, shape.rows, self.expressions, self.out)
        self.body = from_panels(lane.body, tile)
        self.dependences = dependences_of(self.body, tile, lane.var)
        summed = dict.fromkeys(map(variable_of, self.dots.names), frozenset({ROW, LANE}))
        plain = differing(lane.body, row.var, lane.var, summed)
        self.width = lane_width(lane.body, lane.var, plain, loops.kernel.buffers)
        self.edges = depends(lane.lo, frozenset({row.var})) or depends(lane.hi, frozenset({row.var}))
        self.lanes = self.expressions.lane_count(self.width)
        self.strip = f"{shape.units} * {self.lanes}"
        self.parts = parts_of(self.body, tile, lane.var) if tile.whole else None
        self.blocks = self._in_blocks() if tile.blocked else None
        self.column_packer = PanelPacker(lane, self.panels, shape, self.width, self.expressions, self.out)

    def _in_blocks(self) -> SumBlocks:
        """Split the sum into blocks. Afterwards the loop and the panels cover one block."""
        assert self.parts is not None
        (loop,) = self.parts.sums
        assert isinstance(loop, For)
        self.parts = self.parts._replace(sums=(of_block(loop),))
        self.panels = [replace(p, loops=(of_block(p.loops[0]), *p.loops[1:])) for p in self.panels]
        return SumBlocks(loop, self.row.var, self.parts, self.strip, self.expressions, self.out)

    @property
    def chooses(self) -> bool:
        """Whether there is a second version for few lanes."""
        return not self.edges and self._deep()

    def _deep(self) -> bool:
        """Whether a sum has several loops, as a convolution's: its channels may be few."""
        sums = [s for s in statements(self.lane.body) if isinstance(s, For)]
        return any(isinstance(s, For) for f in sums for s in f.body)

    def few(self, lo: str, hi: str) -> str:
        """Return the condition, in C, that lanes from ``lo`` to ``hi`` are few."""
        return f"{hi} - {lo} <= {self.lanes}"

    def print(self, scope: Scope, lo: str, hi: str, few: bool | None = None) -> None:
        """Print both loops for rows ``lo`` to ``hi - 1``; ``few``: only for few lanes, or (False) many."""
        out, i = self.out, identifier(self.row.var)
        with out.block(""):
            scope = self.loops.with_quotients(self.row, scope)
            if not self.row_packer.panels and not self.dots.names:
                out.line(f"const int64_t {i}_lo = {lo}, {i}_end = {hi};")
                with out.block(f"if ({i}_lo < {i}_end)"):
                    self._rows(scope, few)
                return
            out.line(f"const int64_t {i}_last = {hi};")
            self.row_packer.declare(scope, self.dots.declare(scope))
            with out.block(f"for (int64_t {i}_lo = {lo}; {i}_lo < {i}_last; {i}_lo += {i}_rows)"):
                out.line(f"const int64_t {i}_end = min_i64({i}_lo + {i}_rows, {i}_last);")
                self._rows(scope, few)

    def _rows(self, scope: Scope, few: bool | None) -> None:
        out, i, j = self.out, identifier(self.row.var), identifier(self.lane.var)
        low, high = self._range(scope, f"{i}_lo", f"({i}_end - 1)")
        if self.loops.blocks is None:
            out.line(f"const int64_t {j}_lo = {low}, {j}_end = {high};")
        else:
            block, blocks = self.loops.blocks
            strip = f"{self.shape.units} * {self.lanes}"
            for end, number in (("lo", block), ("end", f"{block} + 1")):
                share = f"polyop_lane_block({low}, {high}, {number}, {blocks}, {strip})"
                out.line(f"const int64_t {j}_{end} = {share};")
        with out.block(f"if ({j}_lo < {j}_end)") if self.loops.blocks else contextlib.nullcontext():
            self._versions(scope, few)

    def _versions(self, scope: Scope, few: bool | None) -> None:
        """Print the tiles for few lanes, for many, or both."""
        j = identifier(self.lane.var)
        narrow = TilePrinter(self.loops, NARROW, self.row, self.original, self.tile)
        if few:
            narrow._strips(scope)
            return
        if few is False or not self.chooses:
            self._strips(scope)
            return
        with self.out.block(f"if ({self.few(f'{j}_lo', f'{j}_end')})"):
            narrow._strips(scope)
        with self.out.block("else"):
            self._strips(scope)

    def _strips(self, scope: Scope) -> None:
        """Print the tiles, one strip of lanes after another."""
        out, i, j = self.out, identifier(self.row.var), identifier(self.lane.var)
        blocks = self.blocks
        scratch = Scratch(out, self.loops.leave)
        self.column_packer.allocate(blocks.declare(scope, self.panels) if blocks else scope, scratch)
        self.dots.allocate(self.strip, scratch)
        scratch.check()
        self.row_packer.pack(scope, f"({j}_end - {j}_lo) / ({self.strip})")
        self.dots.pack_rows(scope)
        with out.block(f"for (int64_t {j} = {j}_lo; {j} < {j}_end; {j} += {self.strip})"):
            self.loops.stops.check(self.original.body, f"({i}_end - {i}_lo)", quick=True)
            with blocks.each(scope) if blocks else contextlib.nullcontext(scope) as part:
                self.column_packer.pack(part)
                self.dots.pack_columns(part, self.width)
                out.line(f"int64_t {i} = {i}_lo;")
                pairs = (2,) if self._deep() and self.shape is not NARROW else ()
                for rows in (self.shape.rows, *pairs, 1):
                    with (
                        out.block(f"for (; {i} + {rows} <= {i}_end; {i} += {rows})"),
                        self.loops.stops.inside(),
                    ):
                        self._tile(part, rows)
        if blocks:
            blocks.release()
        scratch.release()
        self.row_packer.release()

    def _scalar(self, expr: Expr, scope: Scope) -> str:
        return self.expressions.scalar(expr, scope)

    def _range(self, scope: Scope, first: str, last: str) -> tuple[str, str]:
        """Return the range of lanes over all rows: its bounds are monotone in the row."""
        if not self.edges:
            return self._scalar(self.lane.lo, scope), self._scalar(self.lane.hi, scope)
        ends = [scope.with_names({self.row.var: at}) for at in (first, last)]
        lows = [self._scalar(self.lane.lo, s) for s in ends]
        highs = [self._scalar(self.lane.hi, s) for s in ends]
        return f"min_i64({lows[0]}, {lows[1]})", f"max_i64({highs[0]}, {highs[1]})"

    # the tile

    def _tile(self, scope: Scope, rows: int) -> None:
        j = identifier(self.lane.var)
        units = self.shape.units
        if units == 1:
            self._copies(scope, rows, range(1), "0")
            return
        whole = f"{j} + {units} * {self.lanes}"
        if self.edges:
            self._edge(scope, rows)
            return
        most = f"{j} + {units // 2} * {self.lanes} < {j}_end" if self.tile.whole else f"{whole} <= {j}_end"
        with self.out.block(f"if ({most})"):
            self._copies(scope, rows, range(units), "")
        with self.out.block("else"):
            limit = f"u < {units} && {j} + u * {self.lanes} < {j}_end"
            with self.out.block(f"for (int64_t u = 0; {limit}; ++u)"):
                self._copies(scope, rows, range(1), f"u * {self.lanes}")

    def _sums(self, copies: Copies, *, counted: bool, offset: str = "") -> None:
        """Print a body that is divided into what comes before, the sums, and what comes after.

        ``counted``: the last vectors may be partly inactive. What comes before and after masks them; the sums
        read zeros behind the panels.
        """
        parts, blocks = self.parts, self.blocks
        assert parts is not None
        with contextlib.ExitStack() as around:
            if parts.condition is not None:
                test = self._scalar(parts.condition, copies.items[0].scope)
                around.enter_context(self.out.block(f"if ({test})"))
            self.loops.statements.declare(parts.all, copies)
            with blocks.first(copies, offset) if blocks else contextlib.nullcontext():
                self._beside_sums(parts.before, copies, counted=counted)
            self.loops.statements.body(parts.sums, copies)
            with blocks.last(copies, offset) if blocks else contextlib.nullcontext():
                self._beside_sums(parts.after, copies, counted=counted)

    def _beside_sums(self, part: tuple[Stmt, ...], copies: Copies, *, counted: bool) -> None:
        j, printer = identifier(self.lane.var), self.loops.statements
        if not counted or not (loads_of(*part) or any(isinstance(s, Store) for s in part)):
            printer.body(part, copies)
            return
        with self.out.block(f"if ({j} + {self.strip} <= {j}_end)"):
            printer.body(part, copies)
        with self.out.block("else"):
            printer.body(part, replace(copies, items=tuple(self._counted(copy) for copy in copies.items)))

    def _counted(self, copy: Copy) -> Copy:
        """Return a copy of which only the lanes before the end are active."""
        lanes, var = copy.scope.lanes, self.lane.var
        assert lanes is not None
        count = f"({identifier(var)}_end - {copy.scope.names[var]})"
        return replace(copy, scope=replace(copy.scope, lanes=replace(lanes, count=count)))

    def _edge(self, scope: Scope, rows: int) -> None:
        """Print rows with different ranges of lanes, as along the edge of a triangle.

        If every row has lanes, the sums of all rows come first. The rest runs for all rows if each fills its
        vectors, else row by row. A row without lanes is skipped: its operands may be out of range.
        """
        i, j, units = identifier(self.row.var), identifier(self.lane.var), range(self.shape.units)
        low, high = self._extremes(scope, rows)
        last = f"{j} + {self.shape.units} * {self.lanes}"
        self.out.line(f"if ({low[0]} >= {last} || {high[1]} <= {j}) continue;")
        if rows == 1:
            self._each_row(scope, rows, (), {})
            return
        sums, kinds = sums_first(self.body, self.dependences, self.row.var, self.lane.var)
        self.out.line(f"const int {i}_r0 = {low[1]} <= {j} && {high[0]} >= {last};")
        if not sums:
            with self.out.block(f"if ({i}_r0)"):
                self._copies(scope, rows, units, "")
        else:
            self.out.line(f"const int {i}_part = {low[1]} < {high[0]};")
            for name, kind in kinds.items():
                size = f"{rows * len(units)} * {self.lanes}"
                self.out.line(f"{kind} {identifier(name)}_panel[{size}] __attribute__((aligned(64)));")
            with self.out.block(f"if ({i}_part)"), self._printing(scope, rows, units) as copies:
                self.loops.statements.declare(sums, copies)
                self.loops.statements.body(sums, copies)
                with self.out.block(f"if ({i}_r0)"):
                    self.loops.statements.body(self.body[len(sums) :], copies)
                with self.out.block("else"):
                    for copy, name, place in self._parked(copies, kinds, ""):
                        vector = self.expressions.vector_type(kinds[name], self.width)
                        self.out.line(f"store_{vector}({place}, {copies.text(name, copy)});")
        with self.out.block(f"if (!{i}_r0)"):
            self._each_row(scope, rows, sums, kinds)

    def _each_row(self, scope: Scope, rows: int, sums: tuple[Stmt, ...], kinds: Mapping[str, str]) -> None:
        """Print rows one after another, each with its own lanes; ``sums`` may be computed already."""
        i, units = identifier(self.row.var), range(self.shape.units)
        with self.out.block(f"for (int64_t r = {i}; r < {i} + {rows}; ++r)"):
            names = scope.with_names({self.row.var: "r"})
            lo, hi = self._scalar(self.lane.lo, names), self._scalar(self.lane.hi, names)
            self.out.line(f"if ({lo} >= {hi}) continue;")
            with self._printing(scope, 1, units, "", "r") as copies:
                if sums:
                    self.loops.statements.declare(sums, copies)
                    with self.out.block(f"if ({i}_part)"):
                        for copy, name, place in self._parked(copies, kinds, f"(r - {i}) * {len(units)} + "):
                            vector = self.expressions.vector_type(kinds[name], self.width)
                            self.out.line(f"{copies.text(name, copy)} = load_{vector}({place});")
                    with self.out.block("else"):
                        self.loops.statements.body(sums, copies)
                self.loops.statements.body(self.body[len(sums) :], copies)

    def _parked(
        self, copies: Copies, kinds: Mapping[str, str], before: str
    ) -> Iterator[tuple[Copy, str, str]]:
        """Yield each copy of each sum, and its place in memory."""
        for name in kinds:
            for copy in copies.items:
                place = f"({before}{copy.row * self.shape.units + copy.unit}) * {self.lanes}"
                yield copy, name, f"&{identifier(name)}_panel[{place}]"

    def _extremes(self, scope: Scope, rows: int) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return (least, greatest) of the lower and of the upper bound among a tile's rows."""
        i = identifier(self.row.var)
        ends = [scope.with_names({self.row.var: at}) for at in (i, f"({i} + {rows - 1})")]
        low = [self._scalar(self.lane.lo, s) for s in ends]
        high = [self._scalar(self.lane.hi, s) for s in ends]

        def both(function: str, pair: list[str]) -> str:
            return f"{function}_i64({pair[0]}, {pair[1]})"

        return (both("min", low), both("max", low)), (both("min", high), both("max", high))

    def _copies(self, scope: Scope, rows: int, units: range, offset: str) -> None:
        """Print the copies of a tile; with ``offset``, only the vector at that lane."""
        with self._printing(scope, rows, units, offset) as copies:
            if self.blocks or (self.tile.whole and not offset):
                self._sums(copies, counted=not offset, offset=offset)
            else:
                self.loops.statements.body(self.body, copies)

    @contextlib.contextmanager
    def _printing(
        self, scope: Scope, rows: int, units: range, offset: str = "", first: str = ""
    ) -> Iterator[Copies]:
        """Context with the copies of a tile; ``offset`` selects one vector, ``first`` one row.

        Within it the tile's loops advance their panels; scalars declared within it end with it.
        """
        i, j = first or identifier(self.row.var), identifier(self.lane.var)
        around = replace(scope, accessed_once=frozenset(stored_by(self.lane.body)))
        tile_copies = []
        for row in range(rows):
            for unit in units:
                plus = offset or (f"{unit} * {self.lanes}" if unit else "")
                at = f"({j} + {plus})" if plus else j
                names = {self.row.var: f"({i} + {row})" if row else i, self.lane.var: at}
                inner = around.with_names(names)
                start, count = self._limits(inner, at) if offset or first else (None, None)
                lanes = lanes_for(self.lane.var, self.width, count, self.dependences)
                inner = replace(inner, lanes=lanes)
                inner = self._with_panels(inner, row, plus)
                inner = inner.with_names(self.dots.sums(row, unit, len(units), self.width))
                tile_copies.append(Copy(row, unit, inner, start))
        self.column_packer.point(scope)
        self.row_packer.point(scope, i)
        self.dots.add(i, rows, len(units), self.width, offset or "0")
        before, live = self.loops.after, self.loops.statements.live
        self.loops.after = self._after(rows - 1)
        self.loops.packed_rows = self.column_packer.packed_rows
        yield Copies(tuple(tile_copies), self.dependences, self.row.var, self.lane.var).named()
        self.loops.after = before
        self.loops.packed_rows = set()
        self.loops.statements.live = live

    def _after(self, last: int) -> dict[str, list[Callable[[Copies], None]]]:
        """Return, by loop, what prints the end of its body: panels advance, rows are prefetched.

        ``last`` is the last row. The text is printed in the scope of the copies where it stands.
        """
        printers: dict[str, list[Callable[[Copies], None]]] = {}
        for var, line in (*self.column_packer.steps(), *self.row_packer.after(last)):
            printers.setdefault(var, []).append(functools.partial(self._line, line))
        own = {p.load for p in self.row_packer.panels}
        for loop, load in self.tile.prefetched:
            if load not in own:
                printers.setdefault(loop, []).append(functools.partial(self._prefetch, load, loop))
        return printers

    def _line(self, line: str, _: Copies) -> None:
        self.out.line(line)

    def _prefetch(self, load: Load, loop: str, copies: Copies) -> None:
        """Print the prefetches of the first and the last row of the copies."""
        first, last = copies.items[0], copies.items[-1]
        for copy in (first, last) if first.row != last.row else (first,):
            scope = replace(copy.scope, lanes=None)
            self.out.line(prefetch.line_of_row(load, loop, self.expressions, scope))

    def _limits(self, scope: Scope, at: str) -> tuple[str | None, str]:
        j = identifier(self.lane.var)
        if not self.edges:
            return None, f"({j}_end - {at})"
        low, high = self._scalar(self.lane.lo, scope), self._scalar(self.lane.hi, scope)
        start = f"max_i64(0, {low} - {at})" if depends(self.lane.lo, frozenset({self.row.var})) else None
        return start, f"({high} - {at})"

    def _with_panels(self, scope: Scope, row: int, plus: str) -> Scope:
        names = self.column_packer.vectors(scope, plus)
        names |= {p.variable: f"{p.name}[{row}]" for p in self.row_packer.panels}
        return scope.with_names(names)


def sums_first(
    body: tuple[Stmt, ...], dependences: Mapping[str, frozenset[str]], row: str, lane: str
) -> tuple[tuple[Stmt, ...], dict[str, str]]:
    """Return the statements up to the last loop of a tile's body, and the element types of their results.

    Both are empty unless the statements only sum panels and lane-invariant values into one scalar per row and
    lane.
    """
    last = max((k for k, s in enumerate(body) if isinstance(s, For)), default=-1)
    sums, rest = body[: last + 1], body[last + 1 :]
    inside = list(statements(sums))
    loads = loads_of(*inside)
    if any(isinstance(s, Store) for s in inside) or any(
        LANE in dependence(e, dependences, row, lane) for e in loads
    ):
        return (), {}
    read = variables_of(*statements(rest))
    read |= {s.name for s in statements(rest) if isinstance(s, Assign) and s.op}
    kinds = {s.name: computed(s.value.type) for s in inside if isinstance(s, Assign) and s.name in read}
    whole = all(
        dependences.get(name, frozenset()) == frozenset({ROW, LANE}) and kind != "bool"
        for name, kind in kinds.items()
    )
    return (sums, kinds) if whole else ((), {})
