"""Loops in C: plain ones and vector ones; tiles and threads are handed on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..cost import HEAVY
from ..ir import Assign, For, Kernel, Op, Stmt, statements, walk
from ..plan import Plan
from .copies import LANE, Copies, Copy, differing, lanes_for, width_of
from .ctypes import SIZES, computed, identifier, identity, memory
from .expressions import Expressions, Scope
from .statements import Statements, combined

UNITS = 4
"""Vectors at once, where one after another would wait for its result."""
LIGHT = 12
"""Operators in a body that is repeated for several vectors at once."""


class Loops:
    """Prints the loops of one function; ``enter`` is asked first whether it takes a loop."""

    def __init__(self, kernel: Kernel, plan: Plan, statements: Statements, expressions: Expressions) -> None:
        self.kernel, self.plan = kernel, plan
        self.statements, self.expressions, self.out = statements, expressions, statements.out
        self.enter: Callable[[For, Copies], bool] = lambda node, copies: False
        self.after: Mapping[str, Sequence[str]] = {}
        """Lines at the end of a loop's body, by its variable."""
        statements.loop = self.loop

    def loop(self, node: For, copies: Copies) -> None:
        """Print a loop."""
        if self.enter(node, copies):
            return
        first = copies.all[0].scope
        lo, hi = self.expressions.scalar(node.lo, first), self.expressions.scalar(node.hi, first)
        inside = first.lanes is not None or len(copies.all) > 1
        if node.var in self.plan.vector and not inside:
            self.vector(node, first, lo, hi)
            return
        var = identifier(node.var)
        with self.out.block(f"for (int64_t {var} = {lo}, {var}_end = {hi}; {var} < {var}_end; ++{var})"):
            self.statements.body(node.body, copies)
            for line in self.after.get(node.var, ()):
                self.out.line(line)

    def vector(self, node: For, scope: Scope, lo: str, hi: str) -> None:
        """Print a loop whose iterations are lanes: whole vectors, then what is left."""
        sums = self.sums(node)
        given = {s.name: frozenset({LANE}) for s in sums}
        differs = differing(node.body, "", node.var, given)
        width = self.width(node.body, node.var, differs)
        var = identifier(node.var)
        units = self.units(node, bool(sums))
        lanes = f"POLYOP_LANES({width})"
        with self.out.block(""):
            self.out.line(f"int64_t {var} = {lo};")
            self.out.line(f"const int64_t {var}_end = {hi};")
            kept = self.statements.reducing
            self.statements.reducing = kept | given.keys()
            self._start_sums(sums, units, width)
            for number in dict.fromkeys((units, 1)):
                step = f"{number} * {lanes}" if number > 1 else lanes
                with self.out.block(f"for (; {var} + {step} <= {var}_end; {var} += {step})"):
                    self._copies(node, scope, differs, width, number, None)
            with self.out.block(f"if ({var} < {var}_end)"):
                self._copies(node, scope, differs, width, 1, f"({var}_end - {var})")
            self._end_sums(sums, units, width, scope)
            self.statements.reducing = kept

    def width(self, body: Sequence[Stmt], var: str, differs: Mapping[str, frozenset[str]]) -> int:
        """Return the bytes of a lane."""
        sizes = {n: SIZES[memory(b.dtype)] for n, b in self.kernel.buffers.items()}
        return width_of(body, var, differs, sizes)

    def sums(self, node: For) -> list[Assign]:
        """Return the scalars from outside that the loop reduces to."""
        found = {
            s.name: s
            for s in statements(node.body)
            if isinstance(s, Assign) and s.name in self.statements.live
        }
        return list(found.values())

    def units(self, node: For, reduces: bool) -> int:
        """Return how many vectors are worked on at once."""
        inner = any(isinstance(s, For) for s in statements(node.body))
        size = sum(isinstance(e, Op) for s in statements(node.body) for e in walk(s))
        heavy = any(
            isinstance(e, Op) and e.name in HEAVY and e.name != "/"
            for s in statements(node.body)
            for e in walk(s)
        )
        if not (reduces or inner) or heavy:
            return 1
        return UNITS if size <= LIGHT else 1

    def _copies(
        self,
        node: For,
        scope: Scope,
        differs: Mapping[str, frozenset[str]],
        width: int,
        number: int,
        count: str | None,
    ) -> None:
        var = identifier(node.var)
        made = []
        for unit in range(number):
            at = f"({var} + {unit} * POLYOP_LANES({width}))" if unit else var
            names = {
                node.var: at,
                **{n: f"{identifier(n)}_v{unit}" for n in self.statements.reducing if n in differs},
            }
            lanes = lanes_for(node.var, width, count, differs)
            made.append(Copy(0, unit, replace(scope.with_names(names), lanes=lanes), None, count))
        self.statements.body(node.body, Copies(tuple(made), differs, "", node.var).named())

    def _start_sums(self, sums: Sequence[Assign], units: int, width: int) -> None:
        for node in sums:
            elem = computed(node.value.type)
            kind = f"{elem if elem != 'bool' else f'i{width * 8}'}v{width}"
            start = identity(node.op, elem) if elem != "bool" else ("0" if node.op in ("+", "max") else "-1")
            for unit in range(units):
                self.out.line(f"{kind} {identifier(node.name)}_v{unit} = bcast_{kind}({start});")

    def _end_sums(self, sums: Sequence[Assign], units: int, width: int, scope: Scope) -> None:
        names = {"+": "add", "*": "mul", "max": "max", "min": "min"}
        for node in sums:
            elem = computed(node.value.type)
            truth = elem == "bool"
            kind = f"{f'i{width * 8}' if truth else elem}v{width}"
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
