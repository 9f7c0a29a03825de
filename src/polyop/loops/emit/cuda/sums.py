"""Reductions on a GPU: groups of threads compute partial results, which are combined in a fixed order."""

from __future__ import annotations

from ...ir.grammar import For, Type, statements
from ..common.copies import plain
from ..common.ctypes import computed, identifier, identity, memory
from ..common.expressions import Scope
from ..common.writer import Writer
from .bodies import Body, c_type, operator_of, spans, split
from .groups import Shared
from .launches import BLOCK, Launches
from .pieces import Sums

PARTIALS = 256
"""Most groups with partial results at once."""


class SumsPart:
    """Prints the two kernels of one piece, and their launches."""

    def __init__(self, parts: Launches, piece: Sums) -> None:
        self.parts, self.piece = parts, piece
        self.kernel, self.expressions = parts.kernel, parts.expressions
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
        out.line(f"self.own_{name} = {c}.data;")

    def _elem(self, name: str) -> str:
        buffer = self.kernel.buffers.get(name)
        return memory(buffer.dtype) if buffer is not None else c_type(self.parts.types[name])

    def _kind(self, name: str) -> Type:
        buffer = self.kernel.buffers.get(name)
        return Type(buffer.dtype) if buffer is not None else self.parts.types[name]

    def _partial(self, inner: Writer, live: frozenset[str]) -> None:
        """Print the first kernel: each group, or each thread, has partial results."""
        piece = self.piece
        inner.line("const int lane_ = threadIdx.x, width_ = blockDim.x;")
        inner.line("const int64_t slot_ = blockIdx.x;")
        self.parts.slots(inner, self.own)
        scope = self._start(inner)
        total = spans(inner, self.expressions, piece.loops, Scope())
        first, step = "slot_", "gridDim.x"
        if not piece.shared:
            first, step = "slot_ * width_ + lane_", "(int64_t)gridDim.x * width_"
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
                inner.line(f"{elem}* const {c} = ({elem}*)self.own_{n} + slot_ * {length};")
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
                combiner = operator_of(op, self._kind(n))
                inner.line(f"{value} = polyop_combine<{combiner}>({value}, width_);")
            inner.line(f"if (lane_ == 0) (({self._elem(n)}*)self.own_{n})[slot_] = {value};")

    def _total(self, inner: Writer) -> None:
        """Print the second kernel: it combines the partial results in the order of the groups."""
        inner.line("const int64_t lane_ = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;")
        for n, op in self.piece.over:
            combiner, elem = operator_of(op, self._kind(n)), self._elem(n)
            if n in self.buffers:
                c, length = self.expressions.tensor(n), self.parts.length(n)
                head = f"for (int64_t el_ = lane_; el_ < {length}; el_ += (int64_t)gridDim.x * blockDim.x)"
                with inner.block(head):
                    inner.line(f"{elem} sum_ = {c}[el_];")
                    partial = f"(({elem}*)self.own_{n})[piece_ * {length} + el_]"
                    each = "for (int64_t piece_ = 0; piece_ < self.partials; ++piece_)"
                    inner.line(f"{each} sum_ = {combiner}::of(sum_, {partial});")
                    inner.line(f"{c}[el_] = sum_;")
                continue
            c = identifier(n)
            with inner.block("if (blockIdx.x == 0)"):
                inner.line(f"{elem} sum_ = {identity(op, computed(self._kind(n)))};")
                each = f"for (int64_t piece_ = lane_; piece_ < self.partials; piece_ += {BLOCK})"
                inner.line(f"{each} sum_ = {combiner}::of(sum_, (({elem}*)self.own_{n})[piece_]);")
                inner.line(f"sum_ = polyop_combine<{combiner}>(sum_, {BLOCK});")
                inner.line(f"if (lane_ == 0) self.state->{c} = {combiner}::of(self.state->{c}, sum_);")
