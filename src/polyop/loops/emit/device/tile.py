"""Contractions on a GPU: tiles of 64 x 64 sums, 4 x 4 to a thread, operands through shared memory.

A block has 16 x 16 threads. Thread (x, y) computes the rows ``y + 16 m`` and the lanes ``x + 16 n`` of a
tile, for m and n from 0 to 3. Sums run in steps of 16 iterations. The operands of a step depend on the row
alone or on the lane alone; they are first copied (staged) to shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...analysis.strides import UNIT, depends, stride
from ...ir.grammar import Assign, Expr, For, If, Load, Size, Stmt, Var, call, statements
from ...ir.rewriter import rewrite
from ..common.c_text import identifier
from ..common.copies import plain
from ..common.expressions import Scope
from ..common.writer import Writer
from .bodies import Body, DeviceExpressions, c_type, split
from .contractions import EACH, SIDE, STEP, Staged, holds_loop, staged_loads
from .pieces import Tiles

EACH_CELL = f"for (int m_ = 0; m_ < {EACH}; ++m_)", f"for (int n_ = 0; n_ < {EACH}; ++n_)"


class TilePart:
    """Prints the body of one contraction's kernel."""

    def __init__(self, expressions: DeviceExpressions, out: Writer, printer: Body, piece: Tiles) -> None:
        self.expressions, self.out, self.printer, self.piece = expressions, out, printer, piece
        self.dialect = expressions.dialect
        self.row, self.lane = piece.row, piece.lane
        self.i, self.j = identifier(piece.row.var), identifier(piece.lane.var)
        scalars = {s.name: s.type for s in statements(piece.lane.body) if isinstance(s, Assign)}
        self.types = {n: t for n, t in scalars.items() if n not in printer.live}
        self.staged = staged_loads(piece.lane, piece.row.var)
        self.cell = Scope({n: f"{identifier(n)}[m_][n_]" for n in self.types})

    def print(self) -> None:
        """Print the loop over tiles and its body."""
        out, words, (total, names) = self.out, self.dialect, self.tiles()
        out.line(f"const int x_ = {words.thread[0]} % 16, y_ = {words.thread[0]} / 16;")
        for operand in (one for loads in self.staged.values() for one in loads):
            out.line(f"{words.shared} {self._elem(operand)} {operand.name}_all[{STEP}][{SIDE + 1}];")
        with out.block(
            f"for (int64_t tile_ = {words.block[0]}; tile_ < {total}; tile_ += {words.blocks[0]})"
        ):
            out.line("int64_t rest_ = tile_;")
            out.line(f"const int64_t {self.j}_lo = {names[1]} + {SIDE} * polyop_split(&rest_, lanes_);")
            out.line(f"const int64_t {self.i}_lo = {names[0]} + {SIDE} * polyop_split(&rest_, rows_);")
            split(out, self.piece.loops, "rest_")
            self._skip()
            for name, kind in self.types.items():
                out.line(f"{c_type(kind)} {identifier(name)}[{EACH}][{EACH}] = {{{{0}}}};")
            self.printer.live |= frozenset(self.types)
            self._body(self.lane.body)

    def tiles(self) -> tuple[str, tuple[str, str]]:
        """Declare the number of tiles; return it, and where rows and lanes start."""
        scope, out = Scope(), self.out
        lo, hi = (self.expressions.scalar(e, scope) for e in (self.row.lo, self.row.hi))
        out.line(f"const int64_t first_ = {lo}, last_ = {hi};")
        low, high = self._range("first_", "(last_ - 1)")
        out.line(f"const int64_t left_ = {low[0]}, right_ = {high[1]};")
        for name, first, last in (("rows_", "first_", "last_"), ("lanes_", "left_", "right_")):
            out.line(
                f"const int64_t {name} = {last} > {first} ? ({last} - {first} + {SIDE - 1}) / {SIDE} : 0;"
            )
        for node in self.piece.loops:
            var = identifier(node.var)
            start, end = (self.expressions.scalar(e, scope) for e in (node.lo, node.hi))
            out.line(f"const int64_t {var}_lo = {start}, {var}_n1 = max_i64(0, {end} - {var}_lo);")
        total = " * ".join(["rows_", "lanes_", *(f"{identifier(f.var)}_n1" for f in self.piece.loops)])
        return total, ("first_", "left_")

    def _range(self, first: str, last: str) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return (least, greatest) of the lanes' lower and upper bounds, which are linear in the row."""
        ranges = []
        for bound in (self.lane.lo, self.lane.hi):
            if not depends(bound, frozenset({self.row.var})):
                text = self.expressions.scalar(bound, Scope())
                ranges.append((text, text))
                continue
            ends = [self.expressions.scalar(bound, Scope({self.row.var: at})) for at in (first, last)]
            ranges.append((f"min_i64({ends[0]}, {ends[1]})", f"max_i64({ends[0]}, {ends[1]})"))
        return ranges[0], ranges[1]

    def _triangular(self) -> bool:
        return any(depends(e, frozenset({self.row.var})) for e in (self.lane.lo, self.lane.hi))

    def _skip(self) -> None:
        """Print the skip of a tile without elements, which all threads of the block take."""
        if self._triangular():
            last = f"min_i64({self.i}_lo + {SIDE}, last_) - 1"
            low, high = self._range(f"{self.i}_lo", f"({last})")
            self.out.line(f"if ({low[0]} >= {self.j}_lo + {SIDE} || {high[1]} <= {self.j}_lo) continue;")

    def _body(self, body: Sequence[Stmt]) -> None:
        cells: list[Stmt] = []
        for node in (*body, None):
            loops = isinstance(node, For) or (isinstance(node, If) and holds_loop(node))
            if node is not None and not loops:
                cells.append(node)
                continue
            if cells:
                self._cells(cells, guarded=True)
                cells = []
            if isinstance(node, For):
                self._loop(node)
            elif isinstance(node, If):
                self._branch(node)

    def _branch(self, node: If) -> None:
        """Print a condition that is the same for the whole tile."""
        with self.out.block(f"if ({self.expressions.scalar(node.condition, Scope())})"):
            self._body(node.body)
        if node.orelse:
            with self.out.block("else"):
                self._body(node.orelse)

    def _cells(self, body: Sequence[Stmt], *, guarded: bool) -> None:
        """Print statements for each of a thread's 4 x 4 elements."""
        out = self.out
        with out.block(f"POLYOP_UNROLL {EACH_CELL[0]}"), out.block(f"POLYOP_UNROLL {EACH_CELL[1]}"):
            if guarded:
                out.line(f"const int64_t {self.i} = {self.i}_lo + y_ + 16 * m_;")
                out.line(f"const int64_t {self.j} = {self.j}_lo + x_ + 16 * n_;")
                lo, hi = (self.expressions.scalar(e, Scope()) for e in (self.lane.lo, self.lane.hi))
                out.line(f"if ({self.i} >= last_ || {self.j} < {lo} || {self.j} >= {hi}) continue;")
            self.printer.body(body, plain(self.cell))

    def _loop(self, node: For) -> None:
        scope, var = Scope(), identifier(node.var)
        lo, hi = (self.expressions.scalar(e, scope) for e in (node.lo, node.hi))
        if any(isinstance(s, For) for s in node.body):
            with self.out.block(f"for (int64_t {var} = {lo}, {var}_end = {hi}; {var} < {var}_end; ++{var})"):
                self._body(node.body)
            return
        staged = self.staged[node]
        with self.out.block(
            f"for (int64_t {var}_lo = {lo}, {var}_end = {hi}; {var}_lo < {var}_end; {var}_lo += {STEP})"
        ):
            self.out.line(self.dialect.barrier)
            self.out.line(f"const int steps_ = (int)min_i64({STEP}, {var}_end - {var}_lo);")
            for operand in staged:
                self._stage(operand, node)
            self.out.line(self.dialect.barrier)
            with self.out.block("for (int step_ = 0; step_ < steps_; ++step_)"):
                self._step(node, staged)

    def _elem(self, operand: Staged) -> str:
        return c_type(operand.load.type)

    def _stage(self, operand: Staged, node: For) -> None:
        """Print the copy of a step's elements to shared memory, with coalesced loads."""
        out, var = self.out, identifier(node.var)
        contiguous = stride(operand.load, node.var) == UNIT
        with out.block(f"for (int el_ = {self.dialect.thread[0]}; el_ < {SIDE * STEP}; el_ += 256)"):
            step, at = (
                (f"el_ % {STEP}", f"el_ / {STEP}") if contiguous else (f"el_ / {SIDE}", f"el_ % {SIDE}")
            )
            index, end = (self.i, "last_") if operand.by_row else (self.j, "right_")
            out.line(f"const int64_t {var} = {var}_lo + {step}, {index} = {index}_lo + {at};")
            load, inside = operand.load, [f"{var} < {var}_end", f"{index} < {end}"]
            if load in self.piece.guarded or self._triangular():
                load = self._clamped(load)
                inside += [f"{self.expressions.size(load.buffer, k)} > 0" for k in range(len(load.index))]
            value = self.expressions.value(load, Scope()).text
            out.line(f"{operand.name}_all[{step}][{at}] = {' && '.join(inside)} ? {value} : 0;")

    def _clamped(self, load: Load) -> Load:
        """Return a load inside its tensor, as elements are staged too that no sum takes."""
        sizes = [Size(load.buffer, axis) for axis in range(len(load.index))]
        pairs = zip(load.index, sizes, strict=True)
        return replace(load, index=tuple(call("max", call("min", at, size - 1), 0) for at, size in pairs))

    def _step(self, node: For, staged: Sequence[Staged]) -> None:
        """Print one iteration of the sums: operands to registers, then 4 x 4 times the statements."""
        out, var = self.out, identifier(node.var)
        out.line(f"const int64_t {var} = {var}_lo + step_;")
        out.line(f"(void){var};")
        names = dict(self.cell.names)
        for operand in staged:
            out.line(f"{self._elem(operand)} {operand.name}_own[{EACH}];")
            thread = "y_" if operand.by_row else "x_"
            copied = f"{operand.name}_own[m_] = {operand.name}_all[step_][{thread} + 16 * m_];"
            out.line(f"POLYOP_UNROLL {EACH_CELL[0]} {copied}")
            names[operand.name] = f"{operand.name}_own[{'m_' if operand.by_row else 'n_'}]"
        staged_names = {operand.load: Var(operand.name, operand.load.type) for operand in staged}

        def change(expr: Expr) -> Expr:
            return staged_names.get(expr, expr) if isinstance(expr, Load) else expr

        cell, self.cell = self.cell, Scope(names)
        self._cells([rewrite(s, change) for s in node.body], guarded=False)
        self.cell = cell
