"""Checks for interruption in loops: see ``polyop/loops/stop.h``.

A loop around loops checks in each of its iterations. The check also accounts for the loops inside that do
not check: vector loops, the loops of a tile, and innermost loops whose trip count is bounded by the sizes of
tensors. An innermost loop without a bound is divided into long stretches. So the iterations of innermost
loops cost nothing extra.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from ...analysis import affine
from ...ir.grammar import INT, Const, Expr, For, If, Op, Size, Stmt, Store, children, statements, walk
from ...ir.uses import unconditional_loads
from ..common.c_text import identifier
from ..common.expressions import Expressions, Scope
from ..common.writer import Writer
from .coalesce import Step

SHORT = 1024
"""A loop of fewer iterations, those of inner loops included, is not counted."""
FUEL = "int64_t polyop_fuel = polyop_fuel_of(&k->failure.place);"


class Stops:
    """Prints the checks of one function."""

    def __init__(self, out: Writer, expressions: Expressions, vector: AbstractSet[str]) -> None:
        self.out, self.expressions, self.vector = out, expressions, vector
        self.depth = 0
        """The number of loops around the text being printed."""
        self.paid: set[str] = set()
        """Variables of loops that a check of an outer loop accounts for."""

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Context in which text is printed inside a loop."""
        self.depth += 1
        yield
        self.depth -= 1

    def checks(self, node: For, *, quick: bool) -> bool:
        """Whether a loop checks in its own iterations. ``quick``: it is a vector loop or inside one."""
        if node.var in self.paid or is_short(node):
            return False
        return self.depth == 0 or _is_slow(node, quick=quick)

    def check(self, body: Sequence[Stmt], times: str = "", *, quick: bool = False) -> None:
        """Print the check of a loop that runs a body once, or several ``times``, in each iteration."""
        prices = ["1"]
        for node in _direct(body):
            if not _is_slow(node, quick=quick or node.var in self.vector) and (price := self._price(node)):
                prices.append(price)
                self.paid |= {node.var, *(s.var for s in statements(node.body) if isinstance(s, For))}
        total = " + ".join(prices)
        self.out.line(f"if (polyop_stops(k, {f'{times} * ({total})' if times else total})) break;")

    def _price(self, node: For) -> str:
        """Return the iterations of a loop's innermost loops, in C; "" where sizes do not determine them."""
        if not (_is_sized(node.lo) and _is_sized(node.hi)):
            return ""
        lo, hi = (self.expressions.scalar(e, Scope()) for e in (node.lo, node.hi))
        whole = isinstance(node.hi, Size) and node.lo == Const(0, INT)
        trips = hi if whole else f"max_i64(0, {hi} - ({lo}))"
        inside = [self._price(s) for s in _direct(node.body)]
        if not all(inside):
            return ""
        return f"{trips} * ({' + '.join(inside)})" if inside else trips

    def end(self, node: For, hi: str) -> str:
        """Return the end of a loop, in C; it counts the iterations unless another check does."""
        counts = not self.checks(node, quick=True) and is_innermost(node) and not is_short(node)
        if node.var in self.paid or not counts:
            return hi
        return f"polyop_counted({identifier(node.var)}, {hi}, &polyop_fuel)"

    @contextlib.contextmanager
    def loop(
        self, node: For, lo: str, hi: str, *, quick: bool = False, rows: Step | None = None
    ) -> Iterator[None]:
        """Context that prints a loop around its text; without ``lo`` the variable is declared already.

        With ``rows`` an iteration has several rows, as many as :meth:`Step.start` sets.
        """
        var, end = identifier(node.var), f"{identifier(node.var)}_end"
        first = f"int64_t {var} = {lo}, {end}" if lo else f"const int64_t {end}"
        head = f"for ({first} = {self.end(node, hi)}; {var} < {end};"
        if rows is not None:
            with self.step(node, rows, head, f"{end} - {var}", quick=quick):
                yield
            return
        with contextlib.ExitStack() as blocks:
            if self.checks(node, quick=quick) and is_innermost(node):
                blocks.enter_context(self.out.block(f"{head})"))
                self.stretch(var)
                blocks.enter_context(self.out.block(f"for (; {var} < {var}_check; ++{var})"))
            else:
                blocks.enter_context(self.out.block(f"{head} ++{var})"))
                if self.checks(node, quick=quick):
                    self.check(node.body, quick=quick)
            blocks.enter_context(self.inside())
            yield

    @contextlib.contextmanager
    def step(self, node: For, rows: Step, head: str, left: str, *, quick: bool = False) -> Iterator[None]:
        """Context that prints a loop of several rows at a time, in braces of its own for their number."""
        with contextlib.ExitStack() as blocks:
            blocks.enter_context(self.out.block(""))
            self.out.line(f"int64_t {rows.name} = 1;")
            blocks.enter_context(self.out.block(f"{head} {identifier(node.var)} += {rows.name})"))
            self.out.line(rows.start(left))
            if self.checks(node, quick=quick):
                self.check(node.body, rows.name, quick=quick)
            blocks.enter_context(self.inside())
            yield

    def stretch(self, var: str) -> None:
        """Print the check at the start of a stretch, and where the stretch ends."""
        self.out.line(f"const int64_t {var}_check = polyop_next_check({var}, {var}_end);")
        self.out.line(f"if (polyop_stops(k, {var}_check - {var})) break;")


def _direct(body: Sequence[Stmt]) -> list[For]:
    """Return the outermost loops of a body, without short ones."""
    loops: list[For] = []
    for node in body:
        if isinstance(node, If):
            loops += _direct((*node.body, *node.orelse))
        elif isinstance(node, For) and not is_short(node):
            loops.append(node)
    return loops


def _is_slow(node: For, *, quick: bool) -> bool:
    """Whether an inner loop checks itself: its trip count has no bound, or it contains slow loops."""
    nest = [node, *(s for s in statements(node.body) if isinstance(s, For))]
    bounded = all(is_short(s) or is_bounded(s) for s in nest)
    return not bounded or not (quick or is_innermost(node))


def is_short(node: For) -> bool:
    """Whether a loop has few iterations, whatever the sizes are."""
    return _trips(node) <= SHORT


def _trips(node: For) -> float:
    if not (isinstance(node.lo, Const) and isinstance(node.hi, Const)):
        return float("inf")
    inner = sum(_trips(s) for s in statements(node.body) if isinstance(s, For))
    return max(0, node.hi.value - node.lo.value) * max(1, inner)


def is_innermost(node: For) -> bool:
    """Whether a loop contains no loops, except short ones."""
    return all(is_short(s) for s in statements(node.body) if isinstance(s, For))


def is_bounded(node: For) -> bool:
    """Whether tensors bound the trip count: by their sizes, or because each iteration has its own element."""
    if _is_sized(node.lo) and _is_sized(node.hi):
        return True
    direct = [s for s in node.body if not isinstance(s, For)]
    loads = [load.index for s in direct for load in unconditional_loads(children(s))]
    stores = [s.index for s in direct if isinstance(s, Store)]
    return any((affine.linear(i) or {}).get(node.var) for index in (*loads, *stores) for i in index)


def _is_sized(bound: Expr) -> bool:
    return all(isinstance(e, (Size, Op)) or (isinstance(e, Const) and e.value < SHORT) for e in walk(bound))
