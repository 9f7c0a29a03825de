"""Loops in C: plain loops and vector loops. Tiles and loops of threads have printers of their own."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...analysis.lanes import differing_in_lanes, lane_width, reduced_in
from ...ir.grammar import Assign, For, Kernel, Load, Store, statements
from ...ir.plan import Plan, Prefetched
from ...ir.stops import stop_flags
from ...ir.uses import variables_of
from ..common.c_text import computed, identifier, identity, identity_of_masks
from ..common.copies import Copies, Copy, lanes_for
from ..common.expressions import Expressions, Scope
from ..common.statements import Statements, combined, end_of
from . import coalesce, prefetch, register_transpose
from .indexed_rows import Around, Later, check_once, later
from .interruption import Stops, is_innermost
from .register_reuse import Sliding
from .streaming_stores import declare

NO_PREFETCH = Prefetched()


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
        self.strips = 0
        self.leave = ""
        """What the function does before it returns early, in C."""
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
        coalesced = self.plan.coalesced.get(node.var) if few else None
        if coalesced is None:
            self._plain(node, copies, lo, hi)
            return
        rows = coalesce.step_of(node, coalesced, self.expressions, first)
        items = tuple(replace(copy, scope=rows.scope(copy.scope)) for copy in copies.items)
        before, self.around = self.around, Around.counting(node, f"{identifier(node.var)}_end")
        with self.stops.loop(node, lo, hi, quick=True, rows=rows):
            self.statements.body(rows.body, replace(copies, items=items))
        self.around = before

    def _plain(self, node: For, copies: Copies, lo: str, hi: str) -> None:
        var = identifier(node.var)
        first, scope = self.strips, copies.items[0].scope
        in_lanes = scope.lanes is not None and not copies.row_var
        transposed = self.plan.transposed.get(node.var, ()) if in_lanes else ()
        if not transposed:
            self._iterations(node, copies, lo, hi)
            return
        strips = [
            register_transpose.StripMemory(strip, scope, n) for n, strip in enumerate(transposed, first)
        ]
        self.strips += len(strips)
        with self.out.block(""):
            self.out.line(f"const int64_t {var}_lo = {lo};")
            register_transpose.declare(strips, self.expressions, self.out)
            names = {access: p.name for p in strips for access in p.strip.accesses}
            here = replace(copies.items[0], scope=replace(scope, strips={**scope.strips, **names}))
            self.out.line(f"int64_t {var}_n0 = 0;")
            arguments = (strips, var, f"{var}_lo", self.expressions, self.out)
            around = (
                lambda: register_transpose.fill(*arguments),
                lambda: register_transpose.store_back(*arguments),
            )
            self._iterations(node, replace(copies, items=(here,)), f"{var}_lo", hi, *around)

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
        sums = reduced_in(node, self.statements.live)
        dependences = differing_in_lanes(node, self.statements.live, self.owners)
        width = lane_width(node.body, node.var, dependences, self.kernel.buffers)
        var = identifier(node.var)
        units = self.plan.interleaved.get(node.var, 1)
        with self.out.block(""):
            scope = self.with_quotients(node, scope)
            self.out.line(f"int64_t {var} = {lo};")
            self.out.line(f"const int64_t {var}_end = {self.stops.end(node, hi)};")
            outer_sums = self.statements.reducing
            self.statements.reducing = outer_sums | {s.name for s in sums}
            self._start_sums(sums, units, width)
            picked = self.plan.checked_once.get(node.var, ())
            inside = check_once(self.out, self.expressions, picked, scope, f"{var} < {var}_end")
            vector = _Vector(node, inside, dependences, width, units, self._later(picked, node, scope))
            streaming = self.plan.streaming.get(node.var, ())
            inner = (s.var for s in statements(node.body) if isinstance(s, For))
            if any(loop in self.plan.transposed for loop in inner):  # they compile slowly: one copy
                self._whole_and_partial(vector)
            elif streaming:
                self._streaming_loop(vector, streaming, sums=bool(sums))
            else:
                self._whole(vector)
                with self.out.block(f"if ({var} < {var}_end)"):
                    self._copies(vector, 1, f"({var}_end - {var})")
            self._end_sums(sums, units, width, scope)
            self.statements.reducing = outer_sums

    def with_quotients(self, node: For, scope: Scope) -> Scope:
        """Declare the quotients that do not change in a loop; return the scope that has them."""
        names = dict(scope.quotients)
        for one in self.plan.quotients.get(node.var, ()):
            if one not in names and not variables_of(one) & scope.names.keys():
                here, name = replace(scope, quotients=names), f"q0_{len(names)}"
                self.out.line(f"const int64_t {name} = {self.expressions.scalar(one, here)};")
                names = {**names, one: name}
        return replace(scope, quotients=names)

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
        rows_in_registers = self.plan.slides.get(node.var)
        if rows_in_registers:
            sliding = Sliding(rows_in_registers, node, vector.width, self.expressions, vector.scope)
            self.out.line("#if POLYOP_CONCAT_LANES")
            with self.out.block(f"if ({sliding.guard})"):
                for line in sliding.begin():
                    self.out.line(line)
                held = replace(vector, scope=replace(vector.scope, registers=sliding.texts()))
                guard = sliding.guard
                with contextlib.ExitStack() as blocks:
                    if self.stops.checks(node, quick=True) and is_innermost(node):
                        blocks.enter_context(self.out.block(f"for (; {guard};)"))
                        self.stops.stretch(var)
                        guard = f"{guard} && {var} < {var}_check"
                    self._vector_loop(held, 1, f"for (; {guard}; {var} += {lanes})", sliding)
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
        ahead = self.plan.prefetched.get(node.var, NO_PREFETCH) if number == vector.units else NO_PREFETCH
        at = [
            scope.with_names({node.var: f"({var} + {unit} * {lanes})" if unit else var})
            for unit in range(number)
        ]
        with self.out.block(head):
            if self.stops.checks(node, quick=True) and not is_innermost(node):
                self.stops.check(node.body, quick=True)
            for here, row in itertools.product(at, vector.later):
                self.out.line(row.line(self.expressions, here))
            for here, load in itertools.product(at, ahead.streams):
                self.out.line(prefetch.line(load, self.around, self.expressions, here, later=not ahead.near))
            for here, load in itertools.product(at, ahead.next_rows):
                assert self.around is not None
                self.out.line(prefetch.next_line(load, self.around, self.expressions, here))
            for line in sliding.step() if sliding else ():
                self.out.line(line)
            self._copies(vector, number, None)
            for line in sliding.end() if sliding else ():
                self.out.line(line)

    def _later(self, picked: Sequence[Load | Store], node: For, scope: Scope) -> list[Later]:
        selected = self.plan.prefetched.get(node.var, NO_PREFETCH).selected
        if self.around is None or not selected:
            return []
        return later(self.out, self.expressions, picked, selected, self.around, scope)

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
        return Copy(0, unit, scope)

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
