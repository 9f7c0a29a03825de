"""The kernels of a program in CUDA, and the host function that launches them in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ..ir import INT, Assign, Const, Expr, For, If, Kernel, Op, Stmt, Type, Var, statements, substitute, walk
from .copies import plain
from .ctypes import computed, identifier, identity, memory
from .cuda_bodies import Body, Shared, c_type, deal, operator_of, spans, split
from .cuda_shapes import Alone, Branch, Each, Mapper, Piece, Rows, Sums, Threads, Tiles
from .cuda_tile import SIDE, TilePart
from .expressions import Expressions, Scope
from .writer import Writer

BLOCK = 256
SLOTS = 1024
"""Groups of threads at once, where each has temporaries of its own."""
PARTIALS = 256
"""Groups of threads at once, where each has its own copy of what a loop reduces to."""
_WORDS = re.compile(r"/\*.*?\*/|(?<!\.)\b([A-Za-z_]\w*)")


class Parts:
    """Prints the pieces of one kernel: ``text`` has the device's functions, ``host`` the function run."""

    def __init__(
        self, kernel: Kernel, expressions: Expressions, mapper: Mapper, owners: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.kernel, self.expressions, self.mapper, self.owners = kernel, expressions, mapper, owners
        self.parts: list[str] = []
        self.slotted: set[str] = set()
        """Temporaries that a launch allocates for itself, one for each group of threads."""
        self.private: dict[str, None] = {}
        """What has partial results."""
        self.variables: dict[str, None] = {}
        """Loops on the host."""
        self.types = {s.name: s.type for s in statements(kernel.body) if isinstance(s, Assign)}
        self.outer: dict[str, Type] = {}
        """Scalars that live outside the launches, in device memory."""

    def print(self, pieces: Sequence[Piece]) -> str:
        """Return the text of all functions, the host's last."""
        self._find_outer(pieces)
        inner = Writer(1)
        self._pieces(inner, pieces)
        out = Writer()
        with out.block("static const char* run(kernel& self, cudaStream_t stream)"):
            self._unpack(out, inner.text(), "self.", device=False)
            out.lines += inner.lines
            out.line("return nullptr;")
        return "\n".join([*self.parts, out.text()])

    def _find_outer(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            match piece:
                case Alone(body=body):
                    self._note_outer(body)
                case Each(pieces=inner):
                    self._find_outer(inner)
                case Branch(pieces=inner, orelse=other):
                    self._find_outer((*inner, *other))
                case Sums(over=over):
                    self.outer |= {name: self.types[name] for name, _ in over if name in self.types}

    def _note_outer(self, body: Sequence[Stmt]) -> None:
        for node in body:
            if isinstance(node, Assign):
                self.outer[node.name] = node.type
            elif isinstance(node, If):
                self._note_outer((*node.body, *node.orelse))

    # one function

    def _unpack(
        self, out: Writer, text: str, source: str, *, device: bool, hidden: Sequence[str] = ()
    ) -> None:
        """Declare what a text uses: tensors, sizes, attributes, loops on the host."""
        used = set(_WORDS.findall(text))
        for name, buffer in self.kernel.buffers.items():
            c, elem = identifier(name), memory(buffer.dtype)
            if device and c in used and name not in hidden:
                kind = f"const {elem}* const __restrict__" if buffer.role == "input" else f"{elem}* const"
                out.line(f"{kind} {c} = {source}{c};")
            for axis in range(len(buffer.shape)):
                size = self.expressions.size(name, axis)
                if size in used:
                    out.line(f"const int64_t {size} = {source}{size};")
        for name, kind_ in self.kernel.attributes.items():
            if identifier(name) in used:
                out.line(f"const {c_type(kind_)} {identifier(name)} = {source}{identifier(name)};")
        for name in self.variables if device else ():
            if identifier(name) in used:
                out.line(f"const int64_t {identifier(name)} = {source}at_{name};")

    def _function(
        self,
        nodes: Sequence[Stmt],
        printed: Callable[[Writer, frozenset[str]], None],
        bounds: str = "",
        hidden: Sequence[str] = (),
    ) -> str:
        """Write a kernel and return its name.

        ``printed`` gets the scalars that are declared, and declares the tensors that are ``hidden``.
        """
        number = len(self.parts)
        name = f"part{number}"
        self.parts.append("")
        reads = {e.name for s in statements(tuple(nodes)) for e in walk(s) if isinstance(e, Var)}
        reads |= {s.name for s in statements(tuple(nodes)) if isinstance(s, Assign)}
        live = {n: t for n, t in self.outer.items() if n in reads}
        inner = Writer(1)
        printed(inner, frozenset(live))
        out = Writer()
        with out.block(f"__global__ void {bounds}{name}(const kernel self)"):
            out.line("const kernel* const k = &self;")
            out.line("(void)k;")
            text = inner.text()
            self._unpack(out, text, "self.", device=True, hidden=hidden)
            for scalar, kind in live.items():
                if identifier(scalar) not in set(_WORDS.findall(text)):
                    continue
                out.line(f"{c_type(kind)} {identifier(scalar)} = self.state->{identifier(scalar)};")
            out.lines += inner.lines
        self.parts[number] = out.text()
        return name

    def _launch(self, out: Writer, name: str, grid: str, block: str) -> None:
        out.line(f"POLYOP_LAUNCH({name}, {grid}, {block}, stream, self);")
        out.line("if (const cudaError_t wrong = cudaGetLastError()) return cudaGetErrorString(wrong);")

    def _length(self, name: str) -> str:
        axes = range(len(self.kernel.buffers[name].shape))
        return "(" + (" * ".join(self.expressions.size(name, a) for a in axes) or "1") + ")"

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
                case Alone(body=body):
                    self._alone(out, body)
                case Threads():
                    self._threads(out, piece)
                case Rows():
                    self._rows(out, piece)
                case Tiles():
                    self._tiles(out, piece)
                case Sums():
                    self._sums(out, piece)

    def _each(self, out: Writer, loop: For, pieces: Sequence[Piece]) -> None:
        var = identifier(loop.var)
        self.variables[loop.var] = None
        lo, hi = (self.expressions.scalar(e, Scope()) for e in (loop.lo, loop.hi))
        with out.block(f"for (int64_t {var} = {lo}, {var}_end = {hi}; {var} < {var}_end; ++{var})"):
            out.line(f"self.at_{loop.var} = {var};")
            self._pieces(out, pieces)

    def _alone(self, out: Writer, body: Sequence[Stmt]) -> None:
        shared = self.mapper.shares(body)
        assigned = {s.name for s in statements(tuple(body)) if isinstance(s, Assign)} & self.outer.keys()

        def printed(inner: Writer, live: frozenset[str]) -> None:
            if shared:
                inner.line(f"const int lane_ = threadIdx.x, width_ = {BLOCK};")
                printer = Shared(self.kernel, self.expressions, inner, self.mapper)
                printer.live = live
                printer.group(body, Scope())
            else:
                one = Body(self.kernel, self.expressions, inner)
                one.live = live
                one.body(body, plain(Scope()))
            for name in sorted(assigned):
                c = identifier(name)
                inner.line(f"{'if (lane_ == 0) ' if shared else ''}self.state->{c} = {c};")

        name = self._function(body, printed)
        self._launch(out, name, "1", str(BLOCK if shared else 1))

    def _threads(self, out: Writer, piece: Threads) -> None:
        *outer, fast = piece.loops

        def printed(inner: Writer, live: frozenset[str]) -> None:
            total = spans(inner, self.expressions, outer, Scope())
            first = "(int64_t)blockIdx.y * blockDim.y + threadIdx.y"
            with inner.block(
                f"for (int64_t row_ = {first}; row_ < {total}; row_ += (int64_t)gridDim.y * blockDim.y)"
            ):
                split(inner, outer, "row_")
                lane = "(int64_t)blockIdx.x * blockDim.x + threadIdx.x"
                with deal(inner, self.expressions, (fast,), Scope(), lane, "(int64_t)gridDim.x * blockDim.x"):
                    printer = Body(self.kernel, self.expressions, inner)
                    printer.live, printer.atomic = live, piece.atomic
                    printer.body(piece.body, plain(Scope()))

        name = self._function((piece.loops[0],), printed)
        with out.block(""):
            out.line(f"const int64_t rows_ = {spans(out, self.expressions, outer, Scope())};")
            out.line(f"const int64_t lanes_ = {self._trips(fast, outer)};")
            with out.block("if (rows_ > 0 && lanes_ > 0)"):
                out.line(f"const int x_ = polyop_cover(lanes_), y_ = {BLOCK} / x_;")
                grid = "dim3(polyop_blocks(lanes_, x_, 1 << 30), polyop_blocks(rows_, y_, 65535))"
                self._launch(out, name, grid, "dim3(x_, y_)")

    def _rows(self, out: Writer, piece: Rows) -> None:
        names = frozenset(f.var for f in piece.loops)
        own = [n for n, loops in self.owners.items() if names & set(loops)]
        self.slotted |= set(own)

        def printed(inner: Writer, live: frozenset[str]) -> None:
            inner.line("const int lane_ = threadIdx.x, width_ = blockDim.x;")
            inner.line("const int64_t slot_ = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;")
            self._own(inner, own)
            total = spans(inner, self.expressions, piece.loops, Scope())
            step = "(int64_t)gridDim.x * blockDim.y"
            with inner.block(f"for (int64_t row_ = slot_; row_ < {total}; row_ += {step})"):
                split(inner, piece.loops, "row_")
                printer = Shared(self.kernel, self.expressions, inner, self.mapper)
                printer.live = live
                printer.group(piece.body, Scope())

        name = self._function((piece.loops[0],), printed, hidden=own)
        with out.block(""):
            out.line(f"const int64_t rows_ = {spans(out, self.expressions, piece.loops, Scope())};")
            with out.block("if (rows_ > 0)"):
                out.line(f"const int width_ = polyop_width({self._inner_trips(piece.body, piece.loops)});")
                out.line("const int each_ = width_ == 32 ? 4 : 1;")
                out.line(
                    f"const unsigned blocks_ = polyop_blocks(rows_, each_, {SLOTS if own else '1 << 30'});"
                )
                self._take_slots(out, own, "(int64_t)blocks_ * each_")
                self._launch(out, name, "blocks_", "dim3(width_, each_)")

    def _own(self, out: Writer, own: Sequence[str]) -> None:
        """Declare the slot of this group in temporaries that each group has for itself."""
        for name in own:
            c, elem = identifier(name), memory(self.kernel.buffers[name].dtype)
            out.line(f"{elem}* const {c} = self.{c} + slot_ * {self._length(name)};")

    def _take_slots(self, out: Writer, own: Sequence[str], count: str) -> None:
        for name in own:
            c, elem = identifier(name), memory(self.kernel.buffers[name].dtype)
            out.line(
                f"polyop_taken {c}_v1({count} * {self._length(name)} * (int64_t)sizeof({elem}), stream);"
            )
            out.line(f"if ({c}_v1.wrong) return {c}_v1.wrong;")
            out.line(f"self.{c} = ({elem}*){c}_v1.data;")

    def _tiles(self, out: Writer, piece: Tiles) -> None:
        def printed(inner: Writer, live: frozenset[str]) -> None:
            printer = Body(self.kernel, self.expressions, inner)
            printer.live = live
            TilePart(self.expressions, inner, printer, piece).print()

        nodes = (*piece.loops, piece.row)
        name = self._function((nodes[0],), printed, "__launch_bounds__(256) ")
        with out.block(""):
            total, _ = TilePart(
                self.expressions, out, Body(self.kernel, self.expressions, out), piece
            ).tiles()
            out.line(f"const int64_t tiles_ = {total};")
            with out.block("if (tiles_ > 0)"):
                self._launch(out, name, "polyop_blocks(tiles_, 1, 1 << 30)", str(BLOCK))

    # sums

    def _sums(self, out: Writer, piece: Sums) -> None:
        buffers = [n for n, _ in piece.over if n in self.kernel.buffers]
        names = {f.var for s in piece.loops for f in statements((s,)) if isinstance(f, For)}
        own = [n for n, loops in self.owners.items() if names & set(loops)] if piece.shared else []
        self.private |= dict.fromkeys(n for n, _ in piece.over)
        self.slotted |= set(own)
        name = self._function(
            (piece.loops[0],),
            lambda inner, live: self._partial(inner, live, piece, own),
            "",
            [*own, *buffers],
        )
        last = self._function((), lambda inner, live: self._total(inner, piece))
        with out.block(""):
            out.line(f"const int64_t rows_ = {spans(out, self.expressions, piece.loops, Scope())};")
            with out.block("if (rows_ > 0)"):
                if piece.shared:
                    out.line(
                        f"const int width_ = polyop_width({self._inner_trips(piece.body, piece.loops)});"
                    )
                    out.line(f"const unsigned blocks_ = polyop_blocks(rows_, 1, {PARTIALS});")
                else:
                    out.line(f"const int width_ = {BLOCK};")
                    out.line(f"const unsigned blocks_ = polyop_blocks(rows_, {4 * BLOCK}, {4 * PARTIALS});")
                out.line("self.partials = blocks_;")
                self._take_slots(out, own, "(int64_t)blocks_")
                for n, _ in piece.over:
                    size = (
                        f"{self._length(n)} * (int64_t)sizeof({self._elem(n)})"
                        if n in buffers
                        else f"(int64_t)sizeof({self._elem(n)})"
                    )
                    out.line(f"polyop_taken {identifier(n)}_v2((int64_t)blocks_ * {size}, stream);")
                    out.line(f"if ({identifier(n)}_v2.wrong) return {identifier(n)}_v2.wrong;")
                    out.line(f"self.own_{n} = {identifier(n)}_v2.data;")
                self._launch(out, name, "blocks_", "width_")
                longest = " + ".join(["1", *(self._length(n) for n in buffers)])
                self._launch(out, last, f"polyop_blocks({longest}, {BLOCK}, 65535)", str(BLOCK))

    def _elem(self, name: str) -> str:
        buffer = self.kernel.buffers.get(name)
        return memory(buffer.dtype) if buffer is not None else c_type(self.types[name])

    def _kind(self, name: str) -> Type:
        buffer = self.kernel.buffers.get(name)
        return Type(buffer.dtype) if buffer is not None else self.types[name]

    def _partial(self, inner: Writer, live: frozenset[str], piece: Sums, own: Sequence[str]) -> None:
        buffers = [n for n, _ in piece.over if n in self.kernel.buffers]
        scope = Scope()
        inner.line("const int lane_ = threadIdx.x, width_ = blockDim.x;")
        inner.line("const int64_t slot_ = blockIdx.x;")
        self._own(inner, own)
        for n, op in piece.over:
            start, c = identity(op, computed(self._kind(n))), identifier(n)
            if n in buffers:
                inner.line(
                    f"{self._elem(n)}* const {c} = ({self._elem(n)}*)self.own_{n} + slot_ * {self._length(n)};"
                )
                inner.line(
                    f"for (int64_t el_ = lane_; el_ < {self._length(n)}; el_ += width_) {c}[el_] = {start};"
                )
            else:
                inner.line(f"{self._elem(n)} {c}_v2 = {start};")
                scope = scope.with_names({n: f"{c}_v2"})
        total = spans(inner, self.expressions, piece.loops, Scope())
        first, step = (
            ("slot_", "gridDim.x")
            if piece.shared
            else ("slot_ * width_ + lane_", "(int64_t)gridDim.x * width_")
        )
        with inner.block(f"for (int64_t row_ = {first}; row_ < {total}; row_ += {step})"):
            split(inner, piece.loops, "row_")
            if piece.shared:
                printer = Shared(self.kernel, self.expressions, inner, self.mapper)
                printer.live = live
                printer.group(piece.body, scope)
            else:
                one = Body(self.kernel, self.expressions, inner)
                one.live = live
                one.body(piece.body, plain(scope))
        for n, op in piece.over:
            if n in buffers:
                continue
            value = f"{identifier(n)}_v2"
            if not piece.shared:
                inner.line(f"{value} = polyop_combine<{operator_of(op, self._kind(n))}>({value}, width_);")
            inner.line(f"if (lane_ == 0) (({self._elem(n)}*)self.own_{n})[slot_] = {value};")

    def _total(self, inner: Writer, piece: Sums) -> None:
        """Print the second launch: what each group has found, in the order of the groups."""
        inner.line("const int64_t lane_ = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;")
        for n, op in piece.over:
            which, elem, c = operator_of(op, self._kind(n)), self._elem(n), identifier(n)
            if n in self.kernel.buffers:
                length = self._length(n)
                with inner.block(
                    f"for (int64_t el_ = lane_; el_ < {length}; el_ += (int64_t)gridDim.x * blockDim.x)"
                ):
                    inner.line(f"{elem} sum_ = {c}[el_];")
                    own = f"(({elem}*)self.own_{n})[piece_ * {length} + el_]"
                    inner.line(
                        f"for (int64_t piece_ = 0; piece_ < self.partials; ++piece_) sum_ = {which}::of(sum_, {own});"
                    )
                    inner.line(f"{c}[el_] = sum_;")
                continue
            with inner.block("if (blockIdx.x == 0)"):
                inner.line(f"{elem} sum_ = {identity(op, computed(self._kind(n)))};")
                each = f"sum_ = {which}::of(sum_, (({elem}*)self.own_{n})[piece_]);"
                inner.line(f"for (int64_t piece_ = lane_; piece_ < self.partials; piece_ += {BLOCK}) {each}")
                inner.line(f"sum_ = polyop_combine<{which}>(sum_, {BLOCK});")
                inner.line(f"if (lane_ == 0) self.state->{c} = {which}::of(self.state->{c}, sum_);")

    # sizes of launches

    def _trips(self, loop: For, outer: Sequence[For]) -> str:
        """Return how many iterations a loop has at most or, where that varies, in the middle, in C."""
        return self.expressions.scalar(self._trip_count(loop, {f.var: (f.lo, f.hi) for f in outer}), Scope())

    def _trip_count(self, loop: For, ranges: Mapping[str, tuple[Expr, Expr]]) -> Expr:
        lo, hi = (_middle(e, ranges) for e in (loop.lo, loop.hi))
        return Op("max", (Const(0, INT), Op("-", (hi, lo), INT)), INT)

    def _inner_trips(self, body: Sequence[Stmt], loops: Sequence[For]) -> str:
        """Return the length of the longest loop that a group shares, in C; 512 where only the GPU knows."""
        ranges = {f.var: (f.lo, f.hi) for f in loops}
        found: list[Expr] = []
        known = frozenset(self.variables)

        def visit(nodes: Sequence[Stmt], around: Mapping[str, tuple[Expr, Expr]]) -> None:
            for node in nodes:
                if isinstance(node, If):
                    visit((*node.body, *node.orelse), around)
                if not isinstance(node, For):
                    continue
                count = self._trip_count(node, around)
                if self.mapper.divisible(node) and self.mapper.evaluable(count, known):
                    found.append(count)
                lo, hi = (_middle(e, around) for e in (node.lo, node.hi))
                visit(node.body, {**around, node.var: (lo, hi)})

        visit(body, ranges)
        if not found:
            return "512"
        total = found[0]
        for other in found[1:]:
            total = Op("max", (total, other), INT)
        return self.expressions.scalar(total, Scope())


def _middle(expr: Expr, ranges: Mapping[str, tuple[Expr, Expr]]) -> Expr:
    """Return an expression with loop variables in the middle of their ranges."""
    for _ in range(len(ranges)):
        names = {e.name for e in walk(expr) if isinstance(e, Var)} & ranges.keys()
        if not names:
            break
        half = {n: Op("//", (Op("+", ranges[n], INT), Const(2, INT)), INT) for n in names}
        expr = substitute(expr, half)
    return expr


__all__ = ["SIDE", "Parts"]
