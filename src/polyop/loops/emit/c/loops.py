"""Loops in C: plain loops and vector loops. Tiles and loops of threads have printers of their own."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...analysis.cost import HEAVY, operators, slow_chain
from ...ir.grammar import Assign, For, Kernel, Op, Stmt, Store, statements, walk
from ...ir.plan import Plan
from ...ir.stops import stop_flags
from ...ir.uses import variables_of
from ..common.c_text import SIZES, computed, identifier, identity, identity_of_masks, memory
from ..common.copies import LANE, Copies, Copy, differing, lanes_for, width_of
from ..common.expressions import Expressions, Scope
from ..common.quotients import unchanging
from ..common.statements import Statements, combined, end_of
from . import coalesce, prefetch, register_transpose
from .indexed_rows import Around, Element, Later, check_once, later, rows
from .interruption import Stops, is_innermost
from .optimisations import is_on
from .register_reuse import Sliding, slides
from .streaming_stores import declare, streaming_candidates

UNITS = 4
"""Vectors at once where a single one would wait for the previous result."""
CHAIN = 3
"""From this many dependent slow operators on, two vectors at once are faster."""
MAX_OPERATORS = 12
"""Most operators of a body that is unrolled for several vectors; vectors share addresses and bounds."""


@dataclass(frozen=True)
class _Vector:
    """A loop whose iterations are lanes of ``width`` bytes, ``units`` vectors at once."""

    node: For
    scope: Scope
    dependences: Mapping[str, frozenset[str]]
    width: int
    units: int
    later: Sequence[Later]


class Loops:
    """Prints the loops of one function. ``enter`` may print a loop instead and return True."""

    def __init__(
        self,
        kernel: Kernel,
        plan: Plan,
        statements: Statements,
        expressions: Expressions,
        owners: Mapping[str, tuple[str, ...]],
    ) -> None:
        self.kernel, self.plan, self.owners = kernel, plan, owners
        self.statements, self.expressions, self.out = statements, expressions, statements.out
        self.stops = Stops(self.out, expressions, plan.vector)
        self.enter: Callable[[For, Copies], bool] = lambda node, copies: False
        self.blocks: tuple[str, str] | None = None
        """The number of the block of lanes that is printed, and how many there are; None for all lanes."""
        self.around: Around | None = None
        self.after: Mapping[str, Sequence[Callable[[Copies], None]]] = {}
        """What prints the end of a loop's body, from the copies that the body is printed for, by variable."""
        self.packed_rows: set[str] = set()
        """Loops over rows that are packed whole, which are not coalesced with the loops inside."""
        self.cached: frozenset[str] = frozenset()
        """Tensors that are in the caches already: they are not prefetched."""
        self.strips = 0
        self.has_streaming = False
        """Whether a loop has streaming stores."""
        statements.loop = self.loop

    def loop(self, node: For, copies: Copies) -> None:
        """Print a loop."""
        if self.enter(node, copies):
            return
        first = copies.items[0].scope
        lo, hi = self.expressions.scalar(node.lo, first), end_of(node, self.expressions, first)
        inside = first.lanes is not None or len(copies.items) > 1
        if node.var in self.plan.vector and not inside:
            self.vector(node, first, lo, hi)
            return
        # many vectors hide the overhead
        few = len(copies.items) > 1 and len({c.unit for c in copies.items}) == 1
        few = few and not (node.var in self.packed_rows or self.after.get(node.var) or stop_flags(node))
        rows = coalesce.of_sum(node, self.expressions, first) if few else None
        if rows is None:
            self._plain(node, copies, lo, hi)
            return
        items = tuple(replace(copy, scope=rows.scope(copy.scope)) for copy in copies.items)
        before, self.around = self.around, Around.counting(node, f"{identifier(node.var)}_end")
        with self.stops.loop(node, lo, hi, quick=True, rows=rows):
            self.statements.body(rows.body, replace(copies, items=items))
        self.around = before

    def _plain(self, node: For, copies: Copies, lo: str, hi: str) -> None:
        var = identifier(node.var)
        strips = [] if copies.row_var else register_transpose.strips(node, copies.items, self.expressions)
        if not strips:
            self._iterations(node, copies, lo, hi)
            return
        first, self.strips = self.strips, self.strips + len(strips)
        with self.out.block(""):
            self.out.line(f"const int64_t {var}_lo = {lo};")
            register_transpose.declare(strips, first, self.expressions, self.out)
            self.out.line(f"int64_t {var}_n0 = 0;")
            arguments = (strips, first, var, f"{var}_lo", self.expressions, self.out)
            around = (
                lambda: register_transpose.fill(*arguments),
                lambda: register_transpose.store_back(*arguments),
            )
            self._iterations(node, copies, f"{var}_lo", hi, *around)
            register_transpose.forget(strips, self.expressions)

    def _iterations(
        self,
        node: For,
        copies: Copies,
        lo: str,
        hi: str,
        begin: Callable[[], None] = lambda: None,
        end: Callable[[], None] = lambda: None,
    ) -> None:
        var = identifier(node.var)
        quick = copies.items[0].scope.lanes is not None or len(copies.items) > 1
        with self.stops.loop(node, lo, hi, quick=quick):
            for flag in stop_flags(node):
                test = self.expressions.scalar(flag, copies.items[0].scope)
                with self.out.block(f"if ({test})"):
                    self.out.line(f"{var} = {var}_end;")  # it ends the loop around a stretch, too
                    self.out.line("break;")
            begin()
            before, self.around = self.around, Around.counting(node, f"{var}_end")
            self.statements.body(node.body, copies)
            self.around = before
            end()
            for print_end in self.after.get(node.var, ()):
                print_end(copies)

    def vector(self, node: For, scope: Scope, lo: str, hi: str) -> None:
        """Print a loop whose iterations are lanes: whole vectors, then the remainder."""
        sums = self.sums(node)
        own = {name for name, loops in self.owners.items() if node.var in loops}
        given = {name: frozenset({LANE}) for name in (*(s.name for s in sums), *own)}
        dependences = differing(node.body, "", node.var, given)
        width = self.width(node.body, node.var, dependences)
        var = identifier(node.var)
        units = self.units(node, bool(sums)) if not own and is_on("interleave") else 1
        with self.out.block(""), self.quotients(node, scope):
            self.out.line(f"int64_t {var} = {lo};")
            self.out.line(f"const int64_t {var}_end = {self.stops.end(node, hi)};")
            outer_sums = self.statements.reducing
            self.statements.reducing = outer_sums | {s.name for s in sums}
            self._start_sums(sums, units, width)
            picked = rows(node, self.expressions.bounds)
            check_once(self.out, self.expressions, picked, scope, f"{var} < {var}_end")
            vector = _Vector(node, scope, dependences, width, units, self._later(picked, node, scope))
            streaming = streaming_candidates(node, self.kernel, self.expressions)
            if self._transposes(vector):
                self._whole_and_partial(vector)
            elif streaming:
                self._streaming_loop(vector, streaming, sums=bool(sums))
            else:
                self._whole(vector)
                with self.out.block(f"if ({var} < {var}_end)"):
                    self._copies(vector, 1, f"({var}_end - {var})")
            self.expressions.prechecked.clear()
            self._end_sums(sums, units, width, scope)
            self.statements.reducing = outer_sums

    @contextlib.contextmanager
    def quotients(self, node: For, scope: Scope) -> Iterator[None]:
        """Context in which the quotients that do not change in a loop are C variables, declared before it."""
        known = self.expressions.quotients
        before, known.names = known.names, dict(known.names)
        for one in unchanging(node) if is_on("hoist_quotients") else ():
            if one not in known.names and not variables_of(one) & scope.names.keys():
                name = f"q0_{len(known.names)}"
                self.out.line(f"const int64_t {name} = {self.expressions.scalar(one, scope)};")
                known.names[one] = name
        yield
        known.names = before

    def _transposes(self, vector: _Vector) -> bool:
        """Whether a loop inside uses register transpose: it compiles slowly, so the body is printed once."""
        at = self._lanes(vector, 0, None)
        inner = [s for s in statements(vector.node.body) if isinstance(s, For)]
        return any(register_transpose.strips(s, [at], self.expressions) for s in inner)

    def _whole_and_partial(self, vector: _Vector) -> None:
        """Print one loop for whole vectors and the remainder."""
        var, lanes = identifier(vector.node.var), self.expressions.lane_count(vector.width)
        with self.out.block(f"for (; {var} < {var}_end; {var} += {lanes})"):
            if self.stops.checks(vector.node, quick=True):
                self.stops.check(vector.node.body, quick=True)
            for row in vector.later:
                self.out.line(row.line(self.expressions, vector.scope.with_names({vector.node.var: var})))
            self.out.line(f"const int64_t {var}_part = min_i64({lanes}, {var}_end - {var});")
            self._copies(vector, 1, f"{var}_part")

    def _streaming_loop(self, vector: _Vector, stores: Sequence[Store], *, sums: bool) -> None:
        """Print a loop with streaming stores: up to the first aligned vector, whole vectors, remainder."""
        var = identifier(vector.node.var)
        lines, names = declare(stores, vector.node, vector.width, self.expressions, vector.scope, sums=sums)
        for line in lines:
            self.out.line(line)
        with self.out.block("for (;;)"):
            with self.out.block(f"if ({var}_part > 0)"):
                self._copies(vector, 1, f"{var}_part")
                self.out.line(f"{var} += {var}_part;")
            self.statements.streaming = names
            self._whole(vector)
            self.statements.streaming = {}
            self.out.line(f"{var}_part = {var}_end - {var};")
            self.out.line(f"if ({var}_part <= 0) break;")
        self.has_streaming = True

    def _whole(self, vector: _Vector) -> None:
        """Print the loop over whole vectors, with its prefetches."""
        node, var = vector.node, identifier(vector.node.var)
        lanes = self.expressions.lane_count(vector.width)
        rows_in_registers = slides(node, vector.width, self.expressions) if vector.units == 1 else []
        if rows_in_registers:
            sliding = Sliding(rows_in_registers, node, vector.width, self.expressions, vector.scope)
            self.out.line("#if POLYOP_CONCAT_LANES")
            with self.out.block(f"if ({sliding.guard})"):
                for line in sliding.begin():
                    self.out.line(line)
                self.expressions.slides = sliding.texts()
                guard = sliding.guard
                with contextlib.ExitStack() as blocks:
                    if self.stops.checks(node, quick=True) and is_innermost(node):
                        blocks.enter_context(self.out.block(f"for (; {guard};)"))
                        self.stops.stretch(var)
                        guard = f"{guard} && {var} < {var}_check"
                    self._vector_loop(vector, 1, f"for (; {guard}; {var} += {lanes})", sliding)
                self.expressions.slides = {}
            self.out.line("#endif")
        for number in dict.fromkeys((vector.units, 1)):
            step = f"{number} * {lanes}" if number > 1 else lanes
            self._stretches(vector, number, step)

    def _stretches(self, vector: _Vector, number: int, step: str) -> None:
        """Print a loop of ``number`` vectors at a time, in stretches between checks for interruption."""
        var, node = identifier(vector.node.var), vector.node
        end = f"{var}_end"
        with contextlib.ExitStack() as blocks:
            if self.stops.checks(node, quick=True) and is_innermost(node):
                end = f"{var}_check"
                blocks.enter_context(self.out.block(f"for (; {var} + {step} <= {var}_end;)"))
                self.stops.stretch(var)
            self._vector_loop(vector, number, f"for (; {var} + {step} <= {end}; {var} += {step})")

    def _vector_loop(self, vector: _Vector, number: int, head: str, sliding: Sliding | None = None) -> None:
        """Print a loop of ``number`` whole vectors at a time."""
        node, scope, var = vector.node, vector.scope, identifier(vector.node.var)
        lanes = self.expressions.lane_count(vector.width)
        around = self.around.loop if self.around else None
        widest = number == vector.units and is_on("prefetch")
        known, heavy = self.owners.keys() | self.cached, is_heavy(node)
        reread = prefetch.reread_rows(node, around, known) if widest else []
        streamed = prefetch.streams(node, around, known) if widest else []
        at = [
            scope.with_names({node.var: f"({var} + {unit} * {lanes})" if unit else var})
            for unit in range(number)
        ]
        with self.out.block(head):
            if self.stops.checks(node, quick=True) and not is_innermost(node):
                self.stops.check(node.body, quick=True)
            for here, row in itertools.product(at, vector.later):
                self.out.line(row.line(self.expressions, here))
            for here, load in itertools.product(at, (e for e in streamed if e not in reread)):
                self.out.line(prefetch.line(load, self.around, self.expressions, here, later=not heavy))
            for here, load in itertools.product(at, reread):
                assert self.around is not None
                self.out.line(prefetch.next_line(load, self.around, self.expressions, here))
            for line in sliding.step() if sliding else ():
                self.out.line(line)
            self._copies(vector, number, None)
            for line in sliding.end() if sliding else ():
                self.out.line(line)

    def _later(self, picked: Sequence[Element], node: For, scope: Scope) -> list[Later]:
        if self.around is None or not is_on("prefetch"):
            return []
        return later(self.out, self.expressions, picked, node, self.around, scope)

    def width(self, body: Sequence[Stmt], var: str, dependences: Mapping[str, frozenset[str]]) -> int:
        """Return the bytes of a lane."""
        sizes = {n: SIZES[memory(b.dtype)] for n, b in self.kernel.buffers.items()}
        return width_of(body, var, dependences, sizes)

    def sums(self, node: For) -> list[Assign]:
        """Return the assignments of scalars outside the loop that it reduces to."""
        result = {
            s.name: s
            for s in statements(node.body)
            if isinstance(s, Assign) and s.name in self.statements.live
        }
        return list(result.values())

    def units(self, node: For, reduces: bool) -> int:
        """Return how many vectors the body is unrolled for."""
        inside = list(statements(node.body))
        inner = any(isinstance(s, For) for s in inside)
        size = sum(1 for s in inside if not isinstance(s, For) for _ in operators(s))
        heavy = is_heavy(node)
        if slow_chain(node.body) >= CHAIN:
            return 2
        if not (reduces or inner) or heavy:
            return 1
        return UNITS if size <= MAX_OPERATORS else 1

    def _copies(self, vector: _Vector, number: int, count: str | None) -> None:
        """Print the body for ``number`` vectors, or for the first ``count`` lanes of one."""
        copies = tuple(self._lanes(vector, unit, count) for unit in range(number))
        with self.stops.inside():
            self.statements.body(
                vector.node.body, Copies(copies, vector.dependences, "", vector.node.var).named()
            )

    def _lanes(self, vector: _Vector, unit: int, count: str | None) -> Copy:
        """Return the copy of a body for one vector."""
        node, var, width = vector.node, identifier(vector.node.var), vector.width
        at = f"({var} + {unit} * {self.expressions.lane_count(width)})" if unit else var
        reduced = {n: f"{identifier(n)}_v{unit}" for n in self.statements.reducing if n in vector.dependences}
        lanes = lanes_for(node.var, width, count, vector.dependences)
        scope = replace(vector.scope.with_names({node.var: at, **reduced}), lanes=lanes)
        return Copy(0, unit, scope, None, count)

    def _start_sums(self, sums: Sequence[Assign], units: int, width: int) -> None:
        for node in sums:
            elem = computed(node.value.type)
            kind = self.expressions.vector_type(elem if elem != "bool" else f"i{width * 8}", width)
            start = identity(node.op, elem) if elem != "bool" else identity_of_masks(node.op)
            for unit in range(units):
                self.out.line(f"{kind} {identifier(node.name)}_v{unit} = bcast_{kind}({start});")

    def _end_sums(self, sums: Sequence[Assign], units: int, width: int, scope: Scope) -> None:
        names = {"+": "add", "*": "mul", "max": "max", "min": "min"}
        for node in sums:
            elem = computed(node.value.type)
            truth = elem == "bool"
            kind = self.expressions.vector_type(f"i{width * 8}" if truth else elem, width)
            name = identifier(node.name)
            total = f"{name}_v0"
            for unit in range(1, units):
                total = combined(node.op, total, f"{name}_v{unit}", kind, truth=truth)
            target = scope.names.get(node.name, name)
            if truth:
                whole = f"any_{kind}({total})" if node.op in ("+", "max") else f"!any_{kind}(~({total}))"
                self.out.line(f"{target} = {combined(node.op, target, whole, 'int', truth=True)};")
                continue
            text = f"reduce_{names[node.op]}_{kind}({total})"
            self.out.line(f"{target} = {combined(node.op, target, text, elem)};")


def is_heavy(node: For) -> bool:
    """Whether a loop computes functions that take longer than its loads."""
    ops = (e for s in statements(node.body) for e in walk(s) if isinstance(e, Op))
    return any(e.name in HEAVY and e.name != "/" for e in ops)
