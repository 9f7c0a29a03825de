"""Print the pieces of a program for a device: its kernels, and the host function that launches them."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.grammar import Assign, For, If, Stmt, call
from ...ir.uses import assigned_by
from ..common.c_text import identifier
from ..common.copies import plain
from ..common.expressions import Scope
from ..common.writer import Writer
from .bodies import Body, deal, spans, split
from .groups import Shared
from .launches import BLOCK, Launches, trips
from .pieces import Alone, Branch, Each, Guard, Piece, Rows, Sums, Threads, Tiles
from .sums import SumsPart
from .tile import TilePart

SLOTS = 1024
"""Most groups of threads with private temporaries at once: each has its own copy in memory."""


class Parts(Launches):
    """Prints the pieces of one kernel: ``text`` has the device's functions, ``host`` the function run."""

    def print(self, pieces: Sequence[Piece]) -> str:
        """Print the functions of the device; return the function that launches them, of the host."""
        self._find_outer(pieces)
        inner = Writer(1)
        with self.expressions.names_of_function() as names:
            self._pieces(inner, pieces)
        out = Writer()
        with out.block("static const char* run(kernel& self, polyop_stream stream)"):
            self.unpack(out, names, device=False)
            out.lines += inner.lines
            out.line("return nullptr;")
        return out.text()

    def _find_outer(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            match piece:
                case Alone(body=body):
                    self._note_outer(body)
                case Each(pieces=inner):
                    self._find_outer(inner)
                case Branch(pieces=inner, orelse=other) | Guard(pieces=inner, orelse=other):
                    self._find_outer((*inner, *other))
                case Sums(over=over):
                    self.outer |= {name: self.types[name] for name, _ in over if name in self.types}

    def _note_outer(self, body: Sequence[Stmt]) -> None:
        for node in body:
            if isinstance(node, Assign):
                self.outer[node.name] = node.type
            elif isinstance(node, If):
                self._note_outer((*node.body, *node.orelse))

    # pieces

    def _pieces(self, out: Writer, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            match piece:
                case Each(loop=loop, pieces=inner):
                    self._each(out, loop, inner)
                case Branch(node=node, pieces=inner, orelse=other):
                    with out.block(f"if ({self.expressions.scalar(node.condition, Scope())})"):
                        self._pieces(out, inner)
                    if other:
                        with out.block("else"):
                            self._pieces(out, other)
                case Guard(node=node, pieces=inner, orelse=other):
                    with self.guarded(node.condition):
                        self._pieces(out, inner)
                    with self.guarded(call("not", node.condition)):
                        self._pieces(out, other)
                case Alone(body=body):
                    self._alone(out, body)
                case Threads():
                    self._threads(out, piece)
                case Rows():
                    self._rows(out, piece)
                case Tiles():
                    self._tiles(out, piece)
                case Sums():
                    SumsPart(self, piece).print(out)

    def _each(self, out: Writer, loop: For, pieces: Sequence[Piece]) -> None:
        var = identifier(loop.var)
        self.variables[loop.var] = None
        lo, hi = (self.expressions.scalar(e, Scope()) for e in (loop.lo, loop.hi))
        with out.block(f"for (int64_t {var} = {lo}, {var}_end = {hi}; {var} < {var}_end; ++{var})"):
            out.line(f"self.at_{loop.var} = {var};")
            self._pieces(out, pieces)

    def _alone(self, out: Writer, body: Sequence[Stmt]) -> None:
        shared = self.mapper.shares(body)
        assigned = assigned_by(body) & self.outer.keys()

        def print_body(inner: Writer, live: frozenset[str]) -> None:
            if shared:
                inner.line(f"const int lane_ = {self.dialect.thread[0]}, width_ = {BLOCK};")
                printer = Shared(self.kernel, self.expressions, inner, self.mapper)
                printer.live = live
                printer.group(body, Scope())
            else:
                thread = Body(self.kernel, self.expressions, inner)
                thread.live = live
                thread.body(body, plain(Scope()))
            if shared and assigned:
                inner.line("polyop_sync(width_);")  # a slower thread may not have read them yet
            for name in sorted(assigned):
                c = identifier(name)
                state = self.expressions.pointer("state")
                inner.line(f"{'if (lane_ == 0) ' if shared else ''}{state}->{c} = {c};")

        name = self.function(body, print_body)
        self.launch(out, name, "1", str(BLOCK if shared else 1))

    def _threads(self, out: Writer, piece: Threads) -> None:
        *outer, fast = piece.loops

        def print_body(inner: Writer, live: frozenset[str]) -> None:
            total = spans(inner, self.expressions, outer, Scope())
            first, step = self.place(1), self.everywhere(1)
            with inner.block(f"for (int64_t row_ = {first}; row_ < {total}; row_ += {step})"):
                split(inner, outer, "row_")
                with deal(inner, self.expressions, (fast,), Scope(), self.place(0), self.everywhere(0)):
                    printer = Body(self.kernel, self.expressions, inner)
                    printer.live, printer.atomic = live, piece.atomic
                    printer.body(piece.body, plain(Scope()))

        name = self.function((piece.loops[0],), print_body)
        with out.block(""):
            out.line(f"const int64_t rows_ = {spans(out, self.expressions, outer, Scope())};")
            lanes = trips(fast, {f.var: (f.lo, f.hi) for f in outer})
            out.line(f"const int64_t lanes_ = {self.expressions.scalar(lanes, Scope())};")
            with out.block("if (rows_ > 0 && lanes_ > 0)"):
                out.line(f"const int x_ = polyop_cover(lanes_), y_ = {BLOCK} / x_;")
                grid = "dim3(polyop_blocks(lanes_, x_, 1 << 30), polyop_blocks(rows_, y_, 65535))"
                self.launch(out, name, grid, "dim3(x_, y_)")

    def _rows(self, out: Writer, piece: Rows) -> None:
        names = frozenset(f.var for f in piece.loops)
        private = [n for n, loops in self.owners.items() if names & set(loops)]
        self.slotted |= set(private)

        def print_body(inner: Writer, live: frozenset[str]) -> None:
            words = self.dialect
            inner.line(f"const int lane_ = {words.thread[0]}, width_ = {words.threads[0]};")
            inner.line(
                f"const int64_t slot_ = (int64_t){words.block[0]} * {words.threads[1]} + {words.thread[1]};"
            )
            self.slots(inner, private)
            total = spans(inner, self.expressions, piece.loops, Scope())
            step = f"(int64_t){words.blocks[0]} * {words.threads[1]}"
            with inner.block(f"for (int64_t row_ = slot_; row_ < {total}; row_ += {step})"):
                split(inner, piece.loops, "row_")
                printer = Shared(self.kernel, self.expressions, inner, self.mapper)
                printer.live = live
                printer.group(piece.body, Scope())

        name = self.function((piece.loops[0],), print_body, declared=private)
        with out.block(""):
            out.line(f"const int64_t rows_ = {spans(out, self.expressions, piece.loops, Scope())};")
            with out.block("if (rows_ > 0)"):
                out.line(f"const int width_ = polyop_width({self.longest(piece.body, piece.loops)});")
                out.line(f"const int each_ = {self.dialect.rows_of_block};")
                limit = SLOTS if private else "1 << 30"
                out.line(f"const unsigned blocks_ = polyop_blocks(rows_, each_, {limit});")
                self.allocate(out, private, "(int64_t)blocks_ * each_")
                self.launch(out, name, "blocks_", "dim3(width_, each_)")

    def _tiles(self, out: Writer, piece: Tiles) -> None:
        def print_body(inner: Writer, live: frozenset[str]) -> None:
            printer = Body(self.kernel, self.expressions, inner)
            printer.live = live
            TilePart(self.expressions, inner, printer, piece).print()

        nodes = (*piece.loops, piece.row)
        name = self.function((nodes[0],), print_body, "__launch_bounds__(256) ")
        with out.block(""):
            total, _ = TilePart(
                self.expressions, out, Body(self.kernel, self.expressions, out), piece
            ).tiles()
            out.line(f"const int64_t tiles_ = {total};")
            with out.block("if (tiles_ > 0)"):
                self.launch(out, name, "polyop_blocks(tiles_, 1, 1 << 30)", str(BLOCK))
