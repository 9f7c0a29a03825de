"""Reductions on a GPU: groups of threads compute partial results, which are combined in a fixed order."""

from __future__ import annotations

from ...ir.grammar import For, Type, statements
from ..common.c_text import computed, identifier, identity, memory
from ..common.copies import plain
from ..common.expressions import Scope
from ..common.writer import Writer
from .bodies import Body, c_type, merged, spans, split
from .groups import Shared
from .launches import BLOCK, Launches
from .pieces import Sums

PARTIALS = 256
"""Most groups with partial results at once."""


class SumsPart:
    """Prints the two kernels of one piece, and their launches."""

    def __init__(self, parts: Launches, piece: Sums) -> None:
        self.parts, self.piece = parts, piece
        self.kernel, self.expressions, self.dialect = parts.kernel, parts.expressions, parts.dialect
        self.buffers = [n for n, _ in piece.over if n in self.kernel.buffers]
        inside = {f.var for s in piece.loops for f in statements((s,)) if isinstance(f, For)}
        self.own = [n for n, loops in parts.owners.items() if inside & set(loops)] if piece.shared else []

    def print(self, out: Writer) -> None:
        """Print the kernels, and the launches to ``out``."""
        parts, piece = self.parts, self.piece
        parts.private |= dict.fromkeys(n for n, _ in piece.over)
        parts.slotted |= set(self.own)
        declared = [*self.own, *(n for n, _ in piece.over)]
        partial_kernel = parts.function((piece.loops[0],), self._partial, declared=declared)
        total_kernel = parts.function((), lambda inner, live: self._total(inner))
        with out.block(""):
            out.line(f"const int64_t rows_ = {spans(out, self.expressions, piece.loops, Scope())};")
            with out.block("if (rows_ > 0)"):
                if piece.shared:
                    out.line(f"const int width_ = polyop_width({parts.longest(piece.body, piece.loops)});")
                    out.line(f"const unsigned blocks_ = polyop_blocks(rows_, 1, {PARTIALS});")
                else:
                    out.line(f"const int width_ = {BLOCK};")
                    out.line(f"const unsigned blocks_ = polyop_blocks(rows_, {4 * BLOCK}, {4 * PARTIALS});")
                out.line("self.partials = blocks_;")
                parts.allocate(out, self.own, "(int64_t)blocks_")
                for n, _ in piece.over:
                    self._allocate(out, n)
                parts.launch(out, partial_kernel, "blocks_", "width_")
                elements = " + ".join(["1", *(parts.length(n) for n in self.buffers)])
                parts.launch(out, total_kernel, f"polyop_blocks({elements}, {BLOCK}, 65535)", str(BLOCK))

    def _allocate(self, out: Writer, name: str) -> None:
        length = f"{self.parts.length(name)} * " if name in self.buffers else ""
        c = f"{identifier(name)}_v2"
        bytes_ = f"(int64_t)blocks_ * {length}(int64_t)sizeof({self._elem(name)})"
        out.line(f"polyop_taken {c}({bytes_}, stream);")
        out.line(f"if ({c}.wrong) return {c}.wrong;")
        out.line(f"self.own_{name} = {self.parts.given('void', f'{c}.data')};")

    def _elem(self, name: str) -> str:
        buffer = self.kernel.buffers.get(name)
        return memory(buffer.dtype) if buffer is not None else c_type(self.parts.types[name])

    def _kind(self, name: str) -> Type:
        buffer = self.kernel.buffers.get(name)
        return Type(buffer.dtype) if buffer is not None else self.parts.types[name]

    def _partial(self, inner: Writer, live: frozenset[str]) -> None:
        """Print the first kernel: each group, or each thread, has partial results."""
        piece = self.piece
        words = self.dialect
        inner.line(f"const int lane_ = {words.thread[0]}, width_ = {words.threads[0]};")
        inner.line(f"const int64_t slot_ = {words.block[0]};")
        self.parts.slots(inner, self.own)
        scope = self._start(inner)
        total = spans(inner, self.expressions, piece.loops, Scope())
        first, step = "slot_", words.blocks[0]
        if not piece.shared:
            first, step = "slot_ * width_ + lane_", f"(int64_t){words.blocks[0]} * width_"
        with inner.block(f"for (int64_t row_ = {first}; row_ < {total}; row_ += {step})"):
            split(inner, piece.loops, "row_")
            if piece.shared:
                groups = Shared(self.kernel, self.expressions, inner, self.parts.mapper)
                groups.live = live
                groups.group(piece.body, scope)
            else:
                threads = Body(self.kernel, self.expressions, inner)
                threads.live = live
                threads.body(piece.body, plain(scope))
        self._end(inner)

    def _start(self, inner: Writer) -> Scope:
        scope = Scope()
        for n, op in self.piece.over:
            start, c, elem = identity(op, computed(self._kind(n))), identifier(n), self._elem(n)
            if n in self.buffers:
                length = self.parts.length(n)
                kind = self.dialect.declared(elem)
                inner.line(f"{kind} const {c} = {self._partials(n)} + slot_ * {length};")
                inner.line(f"for (int64_t el_ = lane_; el_ < {length}; el_ += width_) {c}[el_] = {start};")
            else:
                inner.line(f"{elem} {c}_v2 = {start};")
                scope = scope.with_names({n: f"{c}_v2"})
        return scope

    def _end(self, inner: Writer) -> None:
        for n, op in self.piece.over:
            if n in self.buffers:
                continue
            value = f"{identifier(n)}_v2"
            if not self.piece.shared:
                inner.line(f"{value} = {self.expressions.combined(op, self._kind(n), value, 'width_')};")
            inner.line(f"if (lane_ == 0) {self._partials(n)}[slot_] = {value};")

    def _partials(self, name: str) -> str:
        """Return the partial results of a target, in C."""
        own = self.expressions.pointer(f"own_{name}")
        return f"(({self.dialect.declared(self._elem(name))}){own})"

    def _total(self, inner: Writer) -> None:
        """Print the second kernel: it combines the partial results in the order of the groups."""
        inner.line(f"const int64_t lane_ = {self.parts.place(0)};")
        for n, op in self.piece.over:
            kind, elem, partial = self._kind(n), self._elem(n), self._partials(n)
            if n in self.buffers:
                c, length = self.expressions.tensor(n), self.parts.length(n)
                step = self.parts.everywhere(0)
                with inner.block(f"for (int64_t el_ = lane_; el_ < {length}; el_ += {step})"):
                    inner.line(f"{elem} sum_ = {c}[el_];")
                    both = merged(op, kind, "sum_", f"{partial}[piece_ * {length} + el_]")
                    each = "for (int64_t piece_ = 0; piece_ < self.partials; ++piece_)"
                    inner.line(f"{each} sum_ = {both};")
                    inner.line(f"{c}[el_] = sum_;")
                continue
            with inner.block(f"if ({self.dialect.block[0]} == 0)"):
                inner.line(f"{elem} sum_ = {identity(op, computed(kind))};")
                each = f"for (int64_t piece_ = lane_; piece_ < self.partials; piece_ += {BLOCK})"
                inner.line(f"{each} sum_ = {merged(op, kind, 'sum_', f'{partial}[piece_]')};")
                inner.line(f"sum_ = {self.expressions.combined(op, kind, 'sum_', str(BLOCK))};")
                total = f"{self.expressions.pointer('state')}->{identifier(n)}"
                inner.line(f"if (lane_ == 0) {total} = {merged(op, kind, total, 'sum_')};")
