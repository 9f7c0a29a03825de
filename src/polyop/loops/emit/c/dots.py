"""Print the dot products of a tile: sums of products of narrow integers, by include/polyop/loops/dot.h.

    for k: total += a * b    ->    rows and columns are packed, in words of several terms each; a function
                                   adds the products of a tile; total += its sum

The rows of a part are packed once, for all strips of lanes; the columns of a strip once, for all rows.
"""

from __future__ import annotations

from dataclasses import replace

from ...analysis.lanes import lane_width
from ...analysis.strides import STRIDED, UNIFORM, UNIT, stride
from ...ir.grammar import Assign, Expr, For, Load, Op, Type
from ...ir.plan import Dot, Tile
from ...ir.uses import loads_of
from ...schedule.dots import sums_of
from ...vectors.tile_body import dot_names, variable_of
from ..common.c_text import NARROW, SIZES, Value, computed, identifier, memory
from ..common.copies import lanes_for
from ..common.expressions import Scope
from .loops import Loops
from .scratch import Scratch

OPPOSITE = {"i8": "u8", "u8": "i8", "i16": "i16", "bf16": "bf16"}
"""By kind, the element of the columns."""
WORD = 4
"""Bytes of a word, which has the terms of one group."""
AHEAD = 32
"""Steps of a sum: one row of 4096 terms took two thirds of the time; twice as many were no faster."""
MIN_ROWS = 4
"""With fewer rows, columns are not transposed: that takes as long as the sums of so many."""
SLACK = 64
"""Bytes behind a panel: a whole vector may be read from its last column."""


class Dots:
    """Prints how the dots of a tile are packed and added. Dot n has the names ``d<n>_...`` in C."""

    def __init__(self, tile: Tile, row: For, lane: For, units: int, loops: Loops) -> None:
        self.row, self.lane, self.units = row, lane, units
        self.out, self.expressions = loops.out, loops.expressions
        self.names = dot_names(tile)
        self.loop_of = {loop.var: loop for loop in sums_of(lane.body)}

    # the rows

    def declare(self, scope: Scope) -> list[str]:
        """Print the number of groups of each dot; return the bytes of a packed row, in C."""
        for name, dot in self.names.items():
            lo, hi = self._ends(dot, scope)
            terms = _terms(dot)
            self.out.line(f"const int64_t {name}_n = max_i64(0, {hi} - ({lo}));")
            self.out.line(f"const int64_t {name}_steps = ({name}_n + {terms - 1}) / {terms};")
            self.expressions.used.headers |= {"transpose.h", "dot.h"}
        return [f"({name}_steps + 1) * {WORD}" for name in self.names]

    def allocate(self, columns: str, scratch: Scratch) -> None:
        """Print the memory of the rows, and of a strip's columns: before and after they are transposed."""
        if not self.names:
            return
        i = identifier(self.row.var)
        self.expressions.used.widths.add(WORD)
        for name, dot in self.names.items():
            rows = f"({i}_end - {i}_lo) * ({name}_steps + 1) * {WORD}"
            scratch.allocate("i32", f"{name}_rows", rows)
            size = f"({name}_steps + POLYOP_LANES(4)) * ({columns}) * {WORD} + {SLACK}"
            scratch.allocate("i32", f"{name}_panel", size)
            if not self._along_lanes(dot):
                step = f"({name}_steps + POLYOP_LANES(4) - 1) / POLYOP_LANES(4) * POLYOP_LANES(4)"
                self.out.line(f"const int64_t {name}_step = {step} + POLYOP_LANES(4);")
                scratch.allocate("i32", f"{name}_part", f"{name}_step * ({columns}) * {WORD}")

    def pack_rows(self, scope: Scope) -> None:
        """Print the packing of the rows ``<row>_lo`` to ``<row>_end``."""
        i = identifier(self.row.var)
        for name, dot in self.names.items():
            if not self._along_lanes(dot):
                self.out.line(f"const int {name}_check = {i}_end - {i}_lo < {MIN_ROWS};")
            with self.out.block(f"for (int64_t {i} = {i}_lo; {i} < {i}_end; ++{i})"):
                to = f"{name}_rows + ({i} - {i}_lo) * ({name}_steps + 1)"
                self.out.line(f"i32* const {name} = {to};")
                self._pack_along(name, dot, dot.row, dot.kind, f"{name} + 1", scope)
                start = f"polyop_dot_start_{dot.kind}({name} + 1, {name}_steps)" if dot.flipped else "0"
                self.out.line(f"{name}[0] = {start};")

    def _pack_along(self, name: str, dot: Dot, factor: Expr, elem: str, to: str, scope: Scope) -> None:
        """Print the packing of a factor along the sum's loop, lanes of it at once, with zeros behind it."""
        loop, factor = self.loop_of[dot.loop], _narrow(factor, elem)
        var = identifier(loop.var)
        words = isinstance(factor, Load)
        width = SIZES[elem] if words else lane_width((Assign("", factor),), loop.var, {}, {})
        lo, hi = self._ends(dot, scope)
        self.out.line(f"if ({name}_steps > 0) ({to})[{name}_steps - 1] = 0;")
        lanes = self.expressions.lane_count(width)
        with self.out.block(
            f"for (int64_t {var} = {lo}, {var}_end = {hi}; {var} < {var}_end; {var} += {lanes})"
        ):
            inner = replace(scope, lanes=lanes_for(loop.var, width, f"({var}_end - {var})", {}))
            value = self.expressions.spread(self._value(factor, inner), inner)
            elem = "u16" if elem == "bf16" else elem
            value = self.expressions.convert(value, Type(_DTYPES[elem]), inner)
            kind = self.expressions.vector(elem, inner)
            place = f"({elem}*)({to}) + ({var} - ({lo}))"
            self.out.line(f"store_n_{kind}({place}, {value.text}, {var}_end - {var});")

    def _value(self, factor: Expr, scope: Scope) -> Value:
        """Return a factor in C: a bfloat16 as its word."""
        if isinstance(factor, Load) and factor.type.dtype in NARROW:
            return self.expressions.words(factor, scope)
        return self.expressions.value(factor, scope)

    def _ends(self, dot: Dot, scope: Scope) -> tuple[str, str]:
        loop = self.loop_of[dot.loop]
        return self.expressions.scalar(loop.lo, scope), self.expressions.scalar(loop.hi, scope)

    # the columns

    def _along_lanes(self, dot: Dot) -> bool:
        """Whether columns are packed along the lanes: along the sum's loop, loads would be gathered."""
        loads = loads_of(dot.column)
        near = all(stride(e, self.lane.var) in (UNIT, UNIFORM) for e in loads)
        return near or not all(stride(e, dot.loop) in (UNIT, UNIFORM) for e in loads)

    def pack_columns(self, scope: Scope, width: int) -> None:
        """Print the packing of the columns of a strip."""
        for name, dot in self.names.items():
            with self.out.block(""):
                if self._along_lanes(dot):
                    self._join(name, dot, scope, width)
                else:
                    self._transpose(name, dot, scope, width)

    def _join(self, name: str, dot: Dot, scope: Scope, width: int) -> None:
        """Print the packing where lanes are neighbours: the terms of a word come from several vectors."""
        var, j = identifier(dot.loop), identifier(self.lane.var)
        lo, hi = self._ends(dot, scope)
        lanes, terms = self.expressions.lane_count(width), _terms(dot)
        kind = self.expressions.vector_type("u32", width)
        join = "polyop_join_bytes" if terms == 4 else "polyop_join_halves"
        self.out.line(f"u32* {name} = (u32*){name}_panel;")
        with self.out.block(
            f"for (int64_t {var} = {lo}, {var}_end = {hi}; {var} < {var}_end; {var} += {terms})"
        ):
            places = [var, *(f"min_i64({var} + {n}, {var}_end - 1)" for n in range(1, terms))]
            for n in range(1, terms):
                self.out.line(f"const int64_t {var}_r{n} = {places[n]};")
            for n in range(terms):
                step = scope.with_names({dot.loop: f"{var}_r{n}"}) if n else scope
                self._prefetch(dot, step, f"{self.units} * {lanes}")
            if dot.kind == "bf16":  # 0 times infinity would be NaN
                self.out.line(f"const u32 {var}_rows = {var} + 1 < {var}_end ? ~0u : 0xffffu;")
            with self.out.block(f"for (int64_t u = 0; u < {self.units}; ++u)"):
                at = f"({j} + u * {lanes})"
                inner = scope.with_names({self.lane.var: at})
                inner = replace(inner, lanes=lanes_for(self.lane.var, width, f"({j}_end - {at})", {}))
                texts = []
                for n in range(terms):
                    step = inner.with_names({dot.loop: f"{var}_r{n}"}) if n else inner
                    value = self.expressions.spread(self._value(_narrow(dot.column, "bf16"), step), step)
                    texts.append(self.expressions.convert(value, Type("uint32"), step).text)
                after = " ^ 0x80808080u" if dot.flipped else ""
                after = f" & {var}_rows" if dot.kind == "bf16" else after
                text = f"{join}({kind}, {', '.join(texts)}){after}"
                self.out.line(f"store_{kind}({name} + u * {lanes}, {text});")
            self.out.line(f"{name} += {self.units} * {lanes};")

    def _prefetch(self, dot: Dot, scope: Scope, columns: str) -> None:
        """Print the prefetches of a strip of rows that are read later: hardware follows no such strides."""
        for load in loads_of(dot.column):
            if (stride(load, dot.loop), stride(load, self.lane.var)) != (STRIDED, UNIT):
                continue
            index = tuple(self.expressions.scalar(e, scope) for e in load.index)
            at = f"{self.expressions.tensor(load.buffer)}[{self.expressions.address(load.buffer, index)}]"
            size = f"(int64_t)sizeof({memory(load.type.dtype)})"
            step = self.expressions.strides(load, lanes_for(dot.loop, 1, None, {}))
            self.out.line(f"polyop_fetch_strip(&{at}, {AHEAD} * ({step}) * {size}, {columns} * {size});")

    def _transpose(self, name: str, dot: Dot, scope: Scope, width: int) -> None:
        """Print the packing where the terms of a column are neighbours: columns of words are transposed."""
        j = identifier(self.lane.var)
        columns = f"{self.units} * {self.expressions.lane_count(width)}"
        self.out.line(f"const int64_t {j}_q_end = min_i64({j} + {columns}, {j}_end);")
        with self.out.block(f"for (int64_t {j}_q = {j}; {j}_q < {j}_q_end; ++{j}_q)"):
            to = f"{name}_part + ({j}_q - {j}) * {name}_step"
            inner = scope.with_names({self.lane.var: f"{j}_q"})
            self._pack_along(
                name, dot, dot.column, dot.kind if dot.flipped else OPPOSITE[dot.kind], to, inner
            )
        arguments = f"{columns}, {name}_part, {name}_step, {name}_steps, {_flip(dot)}"
        self.out.line(f"if (!{name}_check) polyop_dot_panel({name}_panel, {arguments});")

    # the sums

    def add(self, row: str, rows: int, units: int, width: int, offset: str) -> None:
        """Print the sums of a tile from a row on, of ``units`` vectors of lanes from ``offset`` on."""
        i = identifier(self.row.var)
        columns = f"{self.units} * {self.expressions.lane_count(width)}"
        vectors = _vectors(units, width)
        for name, dot in self.names.items():
            size = f"{rows * vectors} * POLYOP_LANES(4)"
            self.out.line(f"i32 {name}_to[{size}] __attribute__((aligned(64)));")
            first = f"{name}_rows + ({row} - {i}_lo) * ({name}_steps + 1), {name}_steps + 1"
            panel = f"{name}_panel + {offset}, {columns}, {name}_steps"
            wide = f"polyop_dot_{dot.kind}_{rows}x{vectors}({name}_to, {first}, {panel});"
            if rows > 1 or self._along_lanes(dot):
                self.out.line(wide)
                continue
            part = f"{name}_part + ({offset}) * {name}_step, {name}_step, {size}, {name}_steps, {_flip(dot)}"
            row_words = first.partition(",")[0]
            self.out.line(f"if ({name}_check) polyop_dot_thin_{dot.kind}({name}_to, {row_words}, {part});")
            self.out.line(f"else {wide}")

    def sums(self, row: int, unit: int, units: int, width: int) -> dict[str, str]:
        """Return the C text of the sums of one copy, by the variable that stands for them."""
        lanes, texts = self.expressions.lane_count(width), {}
        for name, dot in self.names.items():
            elem = computed(dot.type)
            kind = self.expressions.vector_type(elem, width)
            at = f"{row * _vectors(units, width)} * POLYOP_LANES(4) + {unit} * {lanes}"
            texts[variable_of(name)] = f"load_{kind}(({elem}*){name}_to + {at})"
        return texts


_DTYPES = {"i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16"}


def _flip(dot: Dot) -> str:
    return "(i32)0x80808080u" if dot.flipped else "0"


def _terms(dot: Dot) -> int:
    return WORD // SIZES[dot.kind]


def _vectors(units: int, width: int) -> int:
    """Return how many vectors of words have the lanes of ``units`` vectors of lanes."""
    return -(-units * WORD // width)


def _narrow(factor: Expr, elem: str) -> Expr:
    """Return a factor without the cast of what has the type that it is packed in already."""
    inner = factor.args[0] if isinstance(factor, Op) and factor.name == "cast" else factor
    return inner if isinstance(inner, Load) and memory(inner.type.dtype) == elem else factor
