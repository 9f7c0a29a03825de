"""Find where an index or a size along a dimension is used as a value.

    y[i] = x[i] / x.shape[0]      a slice would divide by its own size
    y[i] = i                      a slice would count from 0

That ends the proof for the kernel as it is. A condition on an index, as ``i > 0``, is no value: whether a
slice decides it in the same way is proved by isl, where isl can read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..analysis import affine
from ..ir.grammar import Expr, For, If, Load, Op, Size, Stmt, Store, Var, children, walk
from ..ir.printing import expression
from .dimension import Dimension, NotSliced


@dataclass(frozen=True)
class Condition:
    """A condition inside an expression, as isl's text. ``guards`` are the conditions around it."""

    text: str
    guards: tuple[str, ...]


class ValueCheck:
    """Looks at every expression of a kernel for uses of one dimension's indices and size."""

    def __init__(self, dimension: Dimension, known: frozenset[str]) -> None:
        """Take the names of the kernel's parameters that isl knows."""
        self.dimension = dimension
        self.size = None if dimension.size is None else affine.name_of(dimension.size)
        self.known = known

    def check(
        self, body: Sequence[Stmt], loops: tuple[str, ...] = (), outer: tuple[Condition, ...] = ()
    ) -> Iterator[tuple[Condition, ...]]:
        """Yield for each Store or Assign, in order, the conditions that it depends on.

        ``outer`` are those inside of the bounds and conditions around the body that isl cannot read. Raises
        :class:`NotSliced` for an index or a size that is a value.
        """
        for node in body:
            if isinstance(node, For):
                inner = (*outer, *self._bounds(node, loops))
                yield from self.check(node.body, (*loops, node.var), inner)
            elif isinstance(node, If):
                _, exact = affine.condition(node.condition, self._names(loops))
                more = () if exact else tuple(self._expression(node.condition, (), node.line, loops))
                yield from self.check((*node.body, *node.orelse), loops, (*outer, *more))
            else:
                own = [*self._expression(node.value, (), node.line, loops)]
                if isinstance(node, Store):
                    own += self._indices(node, (), node.line, loops)
                yield (*outer, *own)

    def _bounds(self, loop: For, loops: tuple[str, ...]) -> Iterator[Condition]:
        """Yield the conditions in a loop's bounds; raise if isl cannot read where a loop along it ends."""
        for bound in (loop.lo, loop.hi):
            if not affine.is_exact(bound, self._names(loops)):
                if loop.var in self.dimension.loops:
                    raise NotSliced(loop.line, f"where the loop {loop.var} begins or ends is not affine")
                yield from self._expression(bound, (), loop.line, loops)

    def _names(self, loops: tuple[str, ...]) -> frozenset[str]:
        return self.known | frozenset(loops)

    def _expression(
        self, expr: Expr, guards: tuple[str, ...], line: int, loops: tuple[str, ...]
    ) -> Iterator[Condition]:
        if isinstance(expr, Var) and expr.name in self.dimension.loops:
            raise NotSliced(line, f"the index {expr.name} is used as a value")
        if isinstance(expr, Size) and affine.name_of(expr) == self.size:
            raise NotSliced(line, f"the size {expression(expr)} is used as a value")
        if isinstance(expr, Load):
            yield from self._indices(expr, guards, line, loops)
            return
        if isinstance(expr, Op) and expr.name in ("select", "and", "or"):
            yield from self._lazy(expr, guards, line, loops)
            return
        for child in children(expr):
            yield from self._expression(child, guards, line, loops)

    def _lazy(
        self, expr: Op, guards: tuple[str, ...], line: int, loops: tuple[str, ...]
    ) -> Iterator[Condition]:
        """Look at an operator that evaluates only what it needs."""
        first, *rest = expr.args
        text, exact = affine.condition(first, self._names(loops))
        if exact and text is not None:
            yield Condition(text, guards)
        else:
            yield from self._expression(first, guards, line, loops)
        for place, argument in enumerate(rest):
            holds = expr.name == "and" or (expr.name == "select" and place == 0)
            guard, _ = affine.condition(first, self._names(loops), holds)
            yield from self._expression(argument, guards if guard is None else (*guards, guard), line, loops)

    def _indices(
        self, node: Load | Store, guards: tuple[str, ...], line: int, loops: tuple[str, ...]
    ) -> Iterator[Condition]:
        """Look at the indices of other axes, and at what the index along the dimension loads."""
        along = self.dimension.axis_of(node.buffer)
        for axis, index in enumerate(node.index):
            if axis != along:
                yield from self._expression(index, guards, line, loops)
            else:
                for expr in walk(index):
                    if isinstance(expr, Load):
                        yield from self._indices(expr, guards, line, loops)
