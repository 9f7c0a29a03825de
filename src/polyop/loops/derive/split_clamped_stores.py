"""Split additions at clamped indices: inside, where the index is not clamped, and at either end.

    for j in range(n):                            for j in range(n):
        d_x[min(max(j - r, 0), n - 1)] += g[j]        if 0 <= j - r and j - r <= n - 1:
                                                          d_x[j - r] += g[j]
                                          ->      for j in range(min(n, r)):
                                                      d_x[0] += g[j]
                                                  for j in range(n - 1 + r + 1, n):
                                                      d_x[n - 1] += g[j]

Inside they are shifted additions, which scatter_to_gather knows. At the ends few iterations are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..analysis import affine
from ..ir.grammar import BOOL, INT, Const, Expr, For, If, Op, Stmt, Store, Var, perfect
from ..ir.operate import operate
from ..ir.rewriter import Place, nested, substitute, with_statements
from .derivation import Derivation
from .names import Names


class Clamp(NamedTuple):
    """A clamped index: ``free`` from ``low`` to ``high``, either of them None where there is no such end."""

    free: Expr
    low: Expr | None
    high: Expr | None


def split_clamped_stores(derivation: Derivation) -> Derivation:
    """Return the derivation in which no addition to an adjoint has one clamped index, where it has one."""
    kernel = derivation.kernel
    shapes = {name: buffer.shape for name, buffer in kernel.buffers.items()}
    splitter = _Splitter(frozenset(derivation.adjoints_left()), Names(kernel), shapes)
    body = with_statements(kernel.body, splitter.change)
    return derivation.with_(kernel=replace(kernel, body=body)) if splitter.found else derivation


class _Splitter:
    """Splits the nests of a kernel that add to ``sums``."""

    def __init__(self, sums: frozenset[str], names: Names, shapes: Mapping[str, tuple[Expr, ...]]) -> None:
        self.sums, self.names, self.shapes, self.found = sums, names, shapes, False

    def change(self, node: Stmt, _place: Place) -> list[Stmt] | None:
        parts = self._parts(node) if isinstance(node, For) else []
        self.found |= bool(parts)
        return parts or None

    def _parts(self, nest: For) -> list[Stmt]:
        """Return the parts of a nest around one addition; none if it has no or several clamped indices."""
        loops = perfect(nest)
        store = loops[-1].body[0]
        if len(loops[-1].body) > 1 or not isinstance(store, Store) or store.op != "+":
            return []
        clamps = [(axis, clamp) for axis, i in enumerate(store.index) if (clamp := clamp_of(i)) is not None]
        if store.buffer not in self.sums or len(clamps) != 1:
            return []
        axis, (free, low, high) = clamps[0]
        if low is not None and high is not None and not self._is_range(store.buffer, axis, low, high):
            return []  # where low is above high, both ends would count
        tests = [Op(">=", (free, low), BOOL)] if low is not None else []
        tests += [Op("<=", (free, high), BOOL)] if high is not None else []
        test = tests[0] if len(tests) == 1 else Op("and", tuple(tests), BOOL)
        parts: list[Stmt] = [nested(loops, If(test, (_with_index(store, axis, free),), (), store.line))]
        for end, sign, place in ((low, 1, _least(low, high)), (high, -1, high)):
            if end is None or place is None:
                continue
            distance = operate("-", *((free, end) if sign > 0 else (end, free)))
            part = self._beyond(loops, distance, _with_index(store, axis, place))
            if part is None:
                return []
            parts.append(part)
        return parts

    def _is_range(self, buffer: str, axis: int, low: Expr, high: Expr) -> bool:
        """Whether an index is clamped to its axis: from a constant of at most 0 to the last element."""
        last = self.shapes[buffer][axis] - 1
        is_first = isinstance(low, Const) and isinstance(low.value, int) and low.value <= 0
        return is_first and affine.linear(high) is not None and affine.linear(high) == affine.linear(last)

    def _beyond(self, loops: Sequence[For], distance: Expr, store: Store) -> Stmt | None:
        """Return a copy of a nest for the iterations where ``distance`` is negative; None if not linear."""
        found = affine.linear_with_terms(distance)
        if found is None:
            return None
        form, leaves = found
        narrowed: list[tuple[Expr, Expr]] = []
        exact = False
        for loop in reversed(loops):
            lo, hi = loop.lo, loop.hi
            coefficient = form.pop(loop.var, 0)
            rest = affine.from_linear(form, leaves)
            if coefficient == 1:  # distance = var + rest < 0
                hi = operate("min", hi, -rest)
            elif coefficient == -1:
                lo = operate("max", lo, rest + 1)
            elif coefficient:
                return None
            exact = exact or bool(coefficient)
            narrowed.insert(0, (lo, hi))
            # the loops around need one iteration of this one: the distance is least at its first or last
            nearest = loop.lo if coefficient == 1 else loop.hi - 1
            least = rest + Const(coefficient, INT) * nearest
            found = affine.linear_with_terms(least)
            if found is None:
                return None
            form, leaves = found
        return self._copy(loops, narrowed, store) if exact else None

    def _copy(self, loops: Sequence[For], ranges: Sequence[tuple[Expr, Expr]], store: Store) -> Stmt:
        """Return a copy of a nest, with other ranges and around another store."""
        names = {loop.var: Var(self.names.new(loop.var), INT) for loop in loops}
        heads = [
            replace(loop, var=names[loop.var].name, lo=substitute(lo, names), hi=substitute(hi, names))
            for loop, (lo, hi) in zip(loops, ranges, strict=True)
        ]
        return nested(heads, substitute(store, names))


def clamp_of(index: Expr) -> Clamp | None:
    """Return the parts of a clamped index, or None for any other.

    >>> i, n = Var("i", INT), Var("n", INT)
    >>> clamp_of(Op("max", (Const(0, INT), Op("min", (i, n), INT)), INT)) is None  # n is a variable too
    True
    >>> clamp = clamp_of(Op("max", (Const(0, INT), i), INT))
    >>> clamp.free == i, clamp.low == Const(0, INT), clamp.high
    (True, True, None)
    """
    ends: dict[str, Expr] = {}
    while affine.is_clamp(index):
        assert isinstance(index, Op)
        free = [a for a in index.args if affine.varies(a)]
        if len(free) != 1 or index.name in ends:
            return None
        ends[index.name] = index.args[1] if index.args[0] is free[0] else index.args[0]
        index = free[0]
    return Clamp(index, ends.get("max"), ends.get("min")) if ends else None


def _least(low: Expr | None, high: Expr | None) -> Expr | None:
    """Return the index that iterations below ``low`` have: an axis may end before it."""
    return low if high is None or low is None else operate("min", low, high)


def _with_index(store: Store, axis: int, index: Expr) -> Store:
    """Return a store with another index along an axis."""
    return replace(store, index=(*store.index[:axis], index, *store.index[axis + 1 :]))
