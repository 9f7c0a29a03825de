"""Regions: each loop of threads becomes a function over a part of its range, which ``run`` calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...analysis import affine
from ...analysis.cost import total
from ...analysis.strides import depends
from ...ir.grammar import INT, Assign, For, Kernel, Stmt, Store, Type, perfect, statements
from ...ir.plan import Member, Plan
from ...ir.uses import assigned_by, stored_by, variables_of
from ..common.c_text import computed, identifier, identity, memory
from ..common.copies import Copies, plain
from ..common.expressions import Expressions, Scope
from ..common.statements import Statements, combined
from ..common.writer import Writer
from .coalesce import Step, step_of_lanes
from .indexed_rows import Around
from .interruption import FUEL
from .loops import Loops
from .panels import Shape
from .shares import BLOCKS, COLUMNS, print_collapsed, print_columns, print_rows
from .tile import TilePrinter

PARAMETERS = "void* context, int64_t begin, int64_t end, int thread"
"""Parameters of the function of a region."""


class Functions:
    """Prints a kernel's functions: ``run``, and one for each loop of threads before it."""

    def __init__(
        self,
        kernel: Kernel,
        plan: Plan,
        expressions: Expressions,
        owners: Mapping[str, tuple[str, ...]],
        shape: Shape,
    ) -> None:
        self.kernel, self.plan, self.expressions, self.owners = kernel, plan, expressions, owners
        self.shape = shape
        self.parts: list[str] = []
        self.fields: dict[str, str] = {}
        """Scalars that are passed to regions: field name -> C type."""
        self.owned: set[str] = set()
        """Private tensors: regions allocate their memory."""
        self.types = _scalar_types(kernel)

    def print(self) -> str:
        """Return the C text of ``run``; ``parts`` are what it calls, without ``static``."""
        out = Writer()
        with out.block("static void run(struct kernel* k)"):
            self.unpack(out, ())
            out.line(FUEL)
            self._body(out, self.kernel.body, frozenset(), frozenset(), in_run=True)
            out.line("(void)polyop_fuel;")
        return out.text()

    def unpack(self, out: Writer, scalars: Sequence[str], private: Sequence[str] = ()) -> None:
        """Declare tensors, sizes and scalars of the struct under their own names."""
        for name, buffer in self.kernel.buffers.items():
            if name not in private:
                constant = "const " if buffer.role == "input" else ""
                c = identifier(name)
                out.line(f"{constant}{memory(buffer.dtype)}* const restrict {c} = k->{c};")
            for axis in range(len(buffer.shape)):
                size = self.expressions.size(name, axis)
                out.line(f"const int64_t {size} = k->{size};")
        for name, kind in self.kernel.attributes.items():
            out.line(f"const {_c(kind)} {identifier(name)} = k->{identifier(name)};")
        for name in scalars:
            out.line(f"{self.fields[name]} {identifier(name)} = k->at_{name};")

    def _body(
        self, out: Writer, body: Sequence[Stmt], live: frozenset[str], loops: frozenset[str], *, in_run: bool
    ) -> None:
        printer = _Body(self, out, live, loops, in_run=in_run)
        printer.statements.body(body, plain(Scope()))
        printer.finish()

    def region(self, printer: _Body, node: For) -> None:
        """Print the function of a loop, and the call of it."""
        private = dict(self.plan.private.get(node.var, ()))
        shared = self._passed_scalars(printer, node)
        part = self._part(printer, node, shared)
        self._call(printer, part, node, shared, private)

    def bands(self, printer: _Body, nodes: Sequence[For], members: Sequence[Member]) -> None:
        """Print the functions of loops that run together, and the call of them."""
        scalars = [self._passed_scalars(printer, node) for node in nodes]
        parts = [self._part(printer, node, names) for node, names in zip(nodes, scalars, strict=True)]
        out = printer.out
        with out.block(""):
            for name in dict.fromkeys(name for names in scalars for name in names):
                out.line(f"k->at_{name} = {identifier(name)};")
            rows = []
            for part, node, member in zip(parts, nodes, members, strict=True):
                lo, hi, cost = self._range(node, part)
                out.line(f"const int64_t {part}_lo = {lo}, {part}_hi = {hi};")
                rows.append(f"{{{part}, {part}_lo, {part}_hi, {member.behind}, {member.inset}, {cost}}}")
            table = f"{{{', '.join(rows)}}}"
            out.line(f"struct polyop_bands polyop_all = {{k, {len(rows)}, {table}, 0, 0, 0, 0}};")
            self.expressions.used.headers.add("bands.h")
            out.line("polyop_run_bands(&polyop_all);")
            out.line("polyop_fuel -= POLYOP_CALL;")

    def _passed_scalars(self, printer: _Body, node: For) -> list[str]:
        """Return the scalars that are passed to a loop's function."""
        reads = variables_of(*statements((node,)))
        reads |= assigned_by((node,))
        private = dict(self.plan.private.get(node.var, ()))
        shared = sorted((reads & (printer.statements.live | printer.outer)) - private.keys())
        for name in shared:
            self.fields[name] = _c(self.types.get(name, INT))
        return shared

    def _part(self, printer: _Body, node: For, shared: list[str]) -> str:
        """Print a loop's function, or two for the call to choose from; return the choice, in C."""
        private = dict(self.plan.private.get(node.var, ()))
        few = self._few_lanes(node)
        first = len(self.parts)
        self.parts += [""] * (1 if few is None else 2)
        for number, form in enumerate((None,) if few is None else (True, False), first):
            self.parts[number] = self._function(number, node, shared, private, printer, form)
        return f"part{first}" if few is None else f"({few} ? part{first} : part{first + 1})"

    def _few_lanes(self, node: For) -> str | None:
        """Return the condition, in C, that the tile of the only loop of threads has few lanes.

        The loop then becomes two functions, which compile side by side. None where there are several loops of
        threads, which compile side by side anyway, or where the lanes are not known outside the loop.
        """
        shared = self.plan.threads | self.plan.columns.keys() | self.plan.rows.keys()
        if sum(isinstance(s, For) and s.var in shared for s in statements(self.kernel.body)) > 1:
            return None
        inside = [s for s in statements((node,)) if isinstance(s, For)]
        tiles = [(s, lane) for s in inside if (lane := self.plan.tile_of(s)) is not None]
        if len(tiles) != 1:
            return None
        row, lane = tiles[0]
        own = {s.var for s in inside} | assigned_by((node,))
        if depends(lane.lo, frozenset(own)) or depends(lane.hi, frozenset(own)):
            return None
        loops = _Body(self, Writer(), frozenset(), frozenset(), in_run=False).loops
        printer = TilePrinter(loops, self.shape, row, lane, self.plan.tiles[lane.var])
        lo, hi = (self.expressions.scalar(e, Scope()) for e in (lane.lo, lane.hi))
        rows = self.rows(self.plan.threads_loops(node)[-1])
        one = f"!({rows.condition} && hi - lo > parts) && " if rows else ""  # as they are named in _call
        return f"{one}{printer.few(f'({lo})', f'({hi})')}" if printer.chooses else None

    def rows(self, node: For) -> Step | None:
        """Return the rows that an iteration of a loop of threads has, if that may be more than one."""
        coalesced = self.plan.coalesced.get(node.var)
        return None if coalesced is None else step_of_lanes(node, coalesced, self.expressions)

    def _has_blocks(self, node: For) -> bool:
        """Whether threads may share the lanes of a tile in a loop, too. Those of a band keep to its rows."""
        return node.var in self.plan.blocks and not self.plan.band(node.var)

    def _divided_loop(self, node: For) -> For:
        """Return the loop that is divided between threads: the loop itself, or one inside it."""
        var = self.plan.columns.get(node.var, node.var)
        return next(s for s in statements((node,)) if isinstance(s, For) and s.var == var)

    def _function(
        self,
        number: int,
        node: For,
        shared: list[str],
        private: dict[str, str],
        printer: _Body,
        few: bool | None,
    ) -> str:
        out = Writer()
        with out.block(f"void part{number}({PARAMETERS})"):
            out.line("struct kernel* const k = context;")
            buffers = [n for n in private if n in self.kernel.buffers]
            own = [n for n, loops in self.owners.items() if node.var in loops]
            self.owned |= {*own}
            self.unpack(out, shared, [*buffers, *own])
            for name in buffers:
                c, elem = identifier(name), memory(self.kernel.buffers[name].dtype)
                length = self._length(name)  # the first thread adds to the tensor itself, and needs no copy
                copy = f"({elem}*)k->own_{name} + (thread - 1) * {length}"
                start = identity(private[name], computed(Type(self.kernel.buffers[name].dtype)))
                out.line(f"{elem}* const restrict {c} = thread ? {copy} : k->{c};")
                out.line(f"if (thread) for (int64_t e = 0; e < {length}; ++e) {c}[e] = {start};")
            for name in own:
                c, elem = identifier(name), memory(self.kernel.buffers[name].dtype)
                size = f"{self._length(name)} * {self._owned(name)}"
                out.line(f"struct polyop_stack own_{c};")
                out.line(f"{elem}* const restrict {c} = polyop_own(&own_{c}, {size});")
            if own:
                missing = " || ".join(f"!{identifier(n)}" for n in own)
                freed = " ".join(f"polyop_disown(&own_{n}, {n});" for n in map(identifier, own))
                out.line(f"if ({missing}) {{ {freed} polyop_out_of_memory(k); return; }}")
            scalars = [n for n in private if n not in self.kernel.buffers]
            for name in scalars:
                kind = self.types[name]
                out.line(f"{_c(kind)} {identifier(name)} = {identity(private[name], computed(kind))};")
            live = printer.statements.live | frozenset(shared)
            inner = _Body(self, out, live, printer.outer | {node.var}, in_run=False, few=few)
            inner.loops.leave = " ".join(f"polyop_disown(&own_{n}, {n});" for n in map(identifier, own))
            nest = self.plan.threads_loops(node)
            written = stored_by((node,)) if nest[1:] else _shared(self._divided_loop(node))
            inner.statements.shared = frozenset(written - {*private, *own})
            out.line(FUEL)
            if node.var in self.plan.columns:
                print_columns(inner.loops, node, self._divided_loop(node))
            elif node.var in self.plan.rows:
                print_rows(inner.loops, node, self.plan.rows[node.var])
            elif nest[1:] or self._has_blocks(node):
                print_collapsed(inner.loops, nest, self.rows(nest[-1]), blocks=self._has_blocks(node))
            else:
                inner.range(node, "begin", "end")
            inner.finish()
            for name in scalars:
                out.line(f"(({_c(self.types[name])}*)k->own_{name})[thread] = {identifier(name)};")
            for name in map(identifier, own):
                out.line(f"polyop_disown(&own_{name}, {name});")
            out.line("(void)thread, (void)polyop_fuel;")
        return out.text()

    def _call(self, printer: _Body, part: str, node: For, shared: list[str], private: dict[str, str]) -> None:
        out = printer.out
        with out.block(""):
            for name in shared:
                out.line(f"k->at_{name} = {identifier(name)};")
            lo, hi, cost = self._range(node)
            if self._has_blocks(node):
                out.line(f"const int64_t trips = {hi};")
                _, _, of_all = self._range(node, count="trips")
                out.line(f"k->{BLOCKS} = polyop_lane_blocks({of_all}, trips, {self._strip_count(node)});")
                hi, cost = f"trips * k->{BLOCKS}", f"{cost} / k->{BLOCKS}"
            out.line(f"const int64_t lo = {lo}, hi = {hi};")
            out.line(f"const int parts = polyop_parts({cost}, hi - lo);")
            released = ""
            for name in private:
                buffer = self.kernel.buffers.get(name)
                elem = memory(buffer.dtype) if buffer else _c(self.types[name])
                length = f"(parts - 1) * {self._length(name)}" if buffer else "parts"
                out.line(f"k->own_{name} = polyop_scratch({length} * sizeof({elem}));")
                out.line(f"if (!k->own_{name}) {{ {released}polyop_out_of_memory(k); return; }}")
                released += f"polyop_release(k->own_{name}); "
            out.line(f"const int used = {self._run(part, node, private)};")
            for name, op in private.items():
                self._combine(out, name, op)
            out.line("(void)used;")
            out.line("polyop_fuel -= POLYOP_CALL;")

    def _run(self, part: str, node: For, private: Mapping[str, str]) -> str:
        """Return the call that runs a loop's function on threads, in C.

        Each thread gets several pieces; uneven iterations are dealt out dynamically, in more pieces. A tile's
        rows are divided into pieces only if they are uneven, because each piece packs its panels again. Where
        rows run as one loop, a piece has as many as that loop.
        """
        plan, uneven = self.plan, _uneven(node)
        whole = node.var in plan.columns or plan.tile_of(node) is not None
        if private or node.var in plan.rows or (whole and not uneven):
            return f"polyop_run({part}, k, lo, hi, 0, parts)"
        if uneven:
            return f"polyop_deal({part}, k, lo, hi, {'' if whole else '2 * '}POLYOP_PIECES, parts)"
        if node.var in plan.vector:
            return f"polyop_run({part}, k, lo, hi, polyop_lanes(hi - lo, parts), parts)"
        piece, rows = "polyop_piece(hi - lo, parts)", self.rows(self.plan.threads_loops(node)[-1])
        if rows is not None:
            piece = f"{rows.condition} ? polyop_piece_of_rows(hi - lo, {rows.length}, parts) : {piece}"
        return f"polyop_run({part}, k, lo, hi, {piece}, parts)"

    def _strip_count(self, node: For) -> str:
        """Return how many strips the lanes of the tile in a loop have, in C; a huge number if unknown."""
        (lane,) = (loop for loop in perfect(node) if loop.var == self.plan.blocks[node.var])
        own = frozenset(loop.var for loop in perfect(node))
        if depends(lane.lo, own) or depends(lane.hi, own):
            return "1 << 30"
        strip = f"({self.shape.units} * POLYOP_LANES(4))"
        return f"({self._trips(lane)} + {strip} - 1) / {strip}"

    def _range(self, node: For, part: str = "", count: str = "hi - lo") -> tuple[str, str, str]:
        """Return the range that is divided between threads and its cost, in C.

        The cost uses the variables ``lo`` and ``hi``, prefixed with the name of a ``part``; or ``count``.
        """
        nest = self.plan.threads_loops(node)
        if nest[1:] or self._has_blocks(node):
            trips = [self._trips(loop) for loop in nest]
            ranges = {loop.var: (loop.lo, loop.hi) for loop in nest}
            cost = self.expressions.scalar(total(nest[-1].body, ranges), Scope())
            return "0", " * ".join(trips), f"(double)({count}) * {cost}"
        by = self._divided_loop(node)
        lo, hi = self.expressions.scalar(by.lo, Scope()), self.expressions.scalar(by.hi, Scope())
        if node.var in self.plan.threads:
            cost = self.expressions.scalar(total(node.body, {node.var: (node.lo, node.hi)}), Scope())
            before = f"{part}_" if part else ""
            return lo, hi, f"(double)({before}hi - {before}lo) * {cost}"
        cost = self.expressions.scalar(total((node,), {}), Scope())
        if node.var in self.plan.rows:
            row = self.plan.rows[node.var]
            size = self.expressions.size(row.buffer, row.axis)
            return "0", f"({size} ? {size} : 1)", cost  # without rows, iterations still run
        return "0", f"(({hi}) - ({lo}) + {COLUMNS - 1}) / {COLUMNS}", cost

    def _trips(self, loop: For) -> str:
        lo, hi = (self.expressions.scalar(e, Scope()) for e in (loop.lo, loop.hi))
        return f"max_i64(0, {hi} - ({lo}))"

    def _combine(self, out: Writer, name: str, op: str) -> None:
        buffer = self.kernel.buffers.get(name)
        c = identifier(name)
        if buffer is None:
            elem = computed(self.types[name])
            kind = _c(self.types[name])
            each = combined(op, c, f"(({kind}*)k->own_{name})[p]", elem, truth=elem == "bool")
            out.line(f"for (int p = 0; p < used; ++p) {c} = {each};")
        else:
            elem = memory(buffer.dtype)
            copy = f"(({elem}*)k->own_{name})[(p - 1) * {self._length(name)} + e]"
            each = combined(op, f"{c}[e]", copy, elem)
            with out.block("for (int p = 1; p < used; ++p)"):
                out.line(f"for (int64_t e = 0; e < {self._length(name)}; ++e) {c}[e] = {each};")
        out.line(f"polyop_release(k->own_{name});")

    def _owned(self, name: str) -> str:
        """Return the bytes per element of a private tensor: inside lanes, a vector."""
        lanes = self.plan.vector & {*self.owners[name]}
        return "POLYOP_VB" if lanes else f"sizeof({memory(self.kernel.buffers[name].dtype)})"

    def _length(self, name: str) -> str:
        axes = range(len(self.kernel.buffers[name].shape))
        return "(" + (" * ".join(self.expressions.size(name, a) for a in axes) or "1") + ")"


class _Body:
    """The printers of one function."""

    def __init__(
        self,
        functions: Functions,
        out: Writer,
        live: frozenset[str],
        outer: frozenset[str],
        *,
        in_run: bool,
        few: bool | None = None,
    ) -> None:
        self.functions, self.out, self.outer, self.in_run, self.few = functions, out, outer, in_run, few
        self.statements = Statements(functions.kernel, functions.expressions, out)
        self.statements.live = live
        self.loops = Loops(
            functions.kernel, functions.plan, self.statements, functions.expressions, functions.owners
        )
        self.loops.enter = self.enter

    def finish(self) -> None:
        """Print the fence after streaming stores."""
        if self.loops.has_streaming:
            self.functions.expressions.used.headers.add("streaming_store.h")
            self.out.line("polyop_streaming_fence();")

    def enter(self, node: For, copies: Copies) -> bool:
        """Print a loop of threads or a tile; return False for any other loop."""
        plan = self.functions.plan
        inside = copies.items[0].scope.lanes is not None or len(copies.items) > 1
        if self.in_run and plan.band(node.var):
            self._bands(node)
            return True
        if self.in_run and any(node.var in roles for roles in (plan.threads, plan.columns, plan.rows)):
            self.functions.region(self, node)
            return True
        if not inside and self.functions.plan.tile_of(node) is not None:
            scope = copies.items[0].scope
            lo, hi = (self.functions.expressions.scalar(e, scope) for e in (node.lo, node.hi))
            self._print_tile(node, scope, lo, hi)
            return True
        if self.in_run and node.var not in plan.vector:
            outer = self.outer
            self.outer = outer | {node.var}
            enter, self.loops.enter = self.loops.enter, self._once(node)
            self.loops.loop(node, copies)
            self.loops.enter = enter
            self.outer = outer
            return True
        return False

    def _bands(self, node: For) -> None:
        """Print all loops of a band where the first one stands."""
        members = self.functions.plan.band(node.var)
        if members[0].var == node.var:
            loops = {s.var: s for s in statements(self.functions.kernel.body) if isinstance(s, For)}
            self.functions.bands(self, [loops[m.var] for m in members], members)

    def _once(self, node: For) -> Callable[[For, Copies], bool]:
        return lambda other, copies: False if other is node else self.enter(other, copies)

    def range(self, node: For, lo: str, hi: str) -> None:
        """Print the iterations ``lo`` .. ``hi - 1`` of a loop of threads."""
        scope = Scope()
        if self.functions.plan.tile_of(node) is not None:
            self._print_tile(node, scope, lo, hi)
        elif node.var in self.functions.plan.vector:
            self.loops.vector(node, scope, lo, hi)
        else:
            var = identifier(node.var)
            several = self.functions.plan.jammed.get(node.var)
            rows = self.functions.rows(node)
            self.loops.around = Around.counting(node, hi)
            self.out.line(f"int64_t {var} = {lo};")
            if several is not None:
                with self.out.block(f"for (; {var} + {several.rows} <= {hi}; {var} += {several.rows})"):
                    self.loops.stops.check(several.body, str(several.rows))
                    with self.loops.stops.inside():
                        self.statements.body(several.body, plain(scope))
            with self.loops.stops.loop(node, "", hi, rows=rows):
                body, scope = (rows.body, rows.scope(scope)) if rows else (node.body, scope)
                self.statements.body(body, plain(scope))

    def _print_tile(self, node: For, scope: Scope, lo: str, hi: str) -> None:
        lane = self.functions.plan.tile_of(node)
        assert lane is not None
        tile = self.functions.plan.tiles[lane.var]
        TilePrinter(self.loops, self.functions.shape, node, lane, tile).print(scope, lo, hi, self.few)


def _c(kind: Type) -> str:
    elem = computed(kind)
    return "int" if elem == "bool" else elem


def _scalar_types(kernel: Kernel) -> dict[str, Type]:
    return {s.name: s.value.type for s in statements(kernel.body) if isinstance(s, Assign)}


def _shared(loop: For) -> frozenset[str]:
    """Return the tensors that a loop of threads writes, except those whose rows belong to one iteration."""
    rows: dict[str, set[tuple[tuple[int, int], ...]]] = {}
    for node in statements(loop.body):
        if isinstance(node, Store):
            forms = [affine.linear(i) or {} for i in node.index]
            alone = [(a, f.get("", 0)) for a, f in enumerate(forms) if f.keys() - {""} == {loop.var}]
            steps = {f[loop.var] for a, f in enumerate(forms) if (a, f.get("", 0)) in alone}
            rows.setdefault(node.buffer, set()).add(tuple(alone) if steps == {1} else ())
    return frozenset(name for name, forms in rows.items() if len(forms) > 1 or () in forms)


def _uneven(node: For) -> bool:
    inner = [s for s in statements(node.body) if isinstance(s, For)]
    names = frozenset({node.var})
    return any(depends(s.lo, names) or depends(s.hi, names) for s in inner)
