"""Print the sum of a tile block by block: what is added so far waits in memory between two blocks.

for each block of steps:              (each)
pack the panels of the block
for each tile of rows:
start the sums                (first), or load what waits
add the steps of the block
store the results             (last), or let the sums wait
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...ir.grammar import INT, Assign, For, Var
from ...ir.plan import Panel
from ...vectors.tile_body import Parts, accumulators
from ..common.c_text import computed, identifier
from ..common.copies import Copies
from ..common.expressions import Expressions, Scope
from ..common.writer import Writer

FIRST, END = "first of a block", "end of a block"  # no author's variables


def of_block(loop: For) -> For:
    """Return the loop of a sum for the steps of a block."""
    return replace(loop, lo=Var(FIRST, INT), hi=Var(END, INT))


class SumBlocks:
    """Prints the blocks of the sum ``loop``, for tiles of ``strip`` lanes."""

    def __init__(
        self, loop: For, row: str, parts: Parts, strip: str, expressions: Expressions, out: Writer
    ) -> None:
        self.loop, self.parts, self.strip, self.expressions, self.out = loop, parts, strip, expressions, out
        self.k, self.i = identifier(loop.var), identifier(row)
        self.sums: list[Assign] = accumulators(parts)

    def declare(self, scope: Scope, panels: Sequence[Panel]) -> Scope:
        """Print how many steps a block has, and where sums wait; return the scope of the longest block."""
        out, k = self.out, self.k
        lo, hi = (self.expressions.scalar(end, scope) for end in (self.loop.lo, self.loop.hi))
        out.line(f"const int64_t {k}_lo = {lo}, {k}_stop = max_i64({k}_lo, {hi});")
        size = " + ".join(self._bytes(panel, scope) for panel in panels)
        waiting = " + ".join(f"(int64_t)sizeof({computed(node.value.type)})" for node in self.sums)
        rows = f"({self.i}_end - {self.i}_lo) * {self.strip} * ({waiting})"
        out.line(f"int64_t {k}_steps = polyop_steps_of_block({k}_stop - {k}_lo, {size}, {rows});")
        several = f"{k}_steps < {k}_stop - {k}_lo"
        for node in self.sums:
            elem = computed(node.value.type)
            place = f"({self.i}_end - {self.i}_lo) * {self.strip} * sizeof({elem})"
            out.line(f"{elem}* const {self._panel(node)} = {several} ? polyop_scratch({place}) : 0;")
        missing = " || ".join(f"!{self._panel(node)}" for node in self.sums)
        out.line(f"if ({missing}) {k}_steps = {k}_stop - {k}_lo;  /* or there is no memory: one block */")
        return scope.with_names({FIRST: "0", END: f"{k}_steps"})

    def _bytes(self, panel: Panel, scope: Scope) -> str:
        """Return the bytes of a panel for a step of the sum."""
        trips = [
            f"max_i64(0, {self.expressions.scalar(f.hi, scope)} - ({self.expressions.scalar(f.lo, scope)}))"
            for f in panel.loops[1:]
        ]
        return " * ".join([*trips, self.strip, f"(int64_t)sizeof({computed(panel.load.type)})"])

    def release(self) -> None:
        """Print the end of the memory."""
        for node in self.sums:
            self.out.line(f"polyop_release({self._panel(node)});")

    @contextlib.contextmanager
    def each(self, scope: Scope) -> Iterator[Scope]:
        """Print the loop over blocks; yield the scope of one."""
        k = self.k
        with self.out.block(f"for (int64_t {k}_from = {k}_lo;; {k}_from += {k}_steps)"):
            self.out.line(f"const int64_t {k}_to = min_i64({k}_from + {k}_steps, {k}_stop);")
            yield scope.with_names({FIRST: f"{k}_from", END: f"{k}_to"})
            self.out.line(f"if ({k}_to >= {k}_stop) break;")

    @contextlib.contextmanager
    def first(self, copies: Copies, offset: str) -> Iterator[None]:
        """Context that prints what only the first block does; the others load what was added so far."""
        with self.out.block(f"if ({self.k}_from == {self.k}_lo)"):
            yield
        with self.out.block("else"):
            for name, vector, place in self._waiting(copies, offset):
                self.out.line(f"{name} = load_{vector}({place});")

    @contextlib.contextmanager
    def last(self, copies: Copies, offset: str) -> Iterator[None]:
        """Context that prints what only the last block does; the others store what was added so far."""
        with self.out.block(f"if ({self.k}_to >= {self.k}_stop)"):
            yield
        with self.out.block("else"):
            for name, vector, place in self._waiting(copies, offset):
                self.out.line(f"store_{vector}({place}, {name});")

    def _waiting(self, copies: Copies, offset: str) -> Iterator[tuple[str, str, str]]:
        """Yield each copy of each sum, its vector type, and where it waits; ``offset``: of one vector."""
        for node in self.sums:
            for copy in copies.items:
                vector = self.expressions.vector(computed(node.value.type), copy.scope)
                assert copy.scope.lanes is not None
                lanes = offset or f"{copy.unit} * {copy.scope.lanes.number}"
                place = f"({self.i} - {self.i}_lo + {copy.row}) * {self.strip} + {lanes}"
                yield copies.text(node.name, copy), vector, f"&{self._panel(node)}[{place}]"

    def _panel(self, node: Assign) -> str:
        return f"{identifier(node.name)}_panel"
