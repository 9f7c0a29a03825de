"""Delinearisation: an index ``g * s + r`` with ``0 <= r < s`` is the pair ``(g, r)``, which isl can express.

isl has no products of variables and sizes. But where all accesses of a tensor have indices of this form along
an axis, with one ``s``, two of them meet where both parts are equal:

    for g in range(4):                      y[g * (n // 4) + o]  ->  y[g, o]
        for o in range(n // 4):
            y[g * (n // 4) + o] = ...

Grosser et al., Optimistic delinearization of parametrically sized arrays (ICS 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..ir.grammar import INT, Const, Expr, Op
from ..ir.operate import operate
from ..ir.uses import variables_of
from . import affine


@dataclass(frozen=True)
class Pair:
    """An index as isl's texts of ``quotient * extent + remainder``, in the instances of its access.

    ``last`` is the greatest quotient there; None where it depends on sizes. ``shared``: along the axis, all
    accesses of the tensor have pairs with this extent. Then their pairs tell elements apart.
    """

    quotient: str
    extent: str
    remainder: str
    last: int | None = None
    shared: bool = False

    @property
    def at_most(self) -> str | None:
        """The index with the greatest quotient, which none of the instances is beyond; None if unknown."""
        return None if self.last is None else f"{self.last}*{self.extent} + {self.remainder}"

    @property
    def no_instance(self) -> str:
        """The condition on other iterations under which an index may be beyond that, or be no pair."""
        parts = (f"{self.quotient} < 0", f"{self.remainder} < 0", f"{self.remainder} >= {self.extent}")
        return " or ".join((*parts, f"{self.quotient} > {self.last}"))

    def elements(self, quotient: str, remainder: str, size: str, last: int) -> str:
        """Return the condition that a pair is one of an axis of a size, if no quotient exceeds ``last``.

        The elements with greater quotients, if there are any, are one pair together.
        """
        inside = f"0 <= {quotient} <= {last} and 0 <= {remainder} < {self.extent}"
        beyond = f"{quotient} = {last + 1} and {remainder} = 0 and {size} > {last + 1}*{self.extent}"
        return f"(({inside}) or ({beyond}))"


def with_pairs(leaves: Sequence[Any], pair_of: Callable[[Any, Any, int], Pair | None]) -> list[Any]:
    """Return the leaves of a model with the pairs of their accesses: of a leaf's access along an axis."""
    found: dict[int, dict[int, Pair]] = {}
    extents: dict[tuple[str, int], set[str]] = {}
    for leaf in leaves:
        for access in leaf.accesses:
            for axis in range(len(access.index)):
                pair = pair_of(leaf, access, axis)
                of_axis = extents.setdefault((access.target, axis), set())
                of_axis.add("" if pair is None else pair.extent)
                if pair is not None:
                    found.setdefault(id(access), {})[axis] = pair

    def changed(access: Any) -> Any:
        pairs = found.get(id(access), {}).items()
        known = {axis: replace(p, shared=len(extents[access.target, axis]) == 1) for axis, p in pairs}
        return replace(access, pairs=known) if known else access

    if not found:
        return [*leaves]
    return [replace(leaf, accesses=tuple(map(changed, leaf.accesses))) for leaf in leaves]


def product_and_rest(index: Expr, loops: Collection[str]) -> tuple[Expr, Expr, Expr] | None:
    """Return an index as (quotient, extent, remainder) if it has products of loops and a size.

    >>> from ..ir.grammar import Size, Var
    >>> g, r, n = Var("g", INT), Var("r", INT), Size("x", 0)
    >>> product_and_rest(g * n + r, ["g", "r"]) == (g, n, r)
    True
    """
    zero: Expr = Const(0, INT)
    quotient, rest, extents = zero, zero, set[Expr]()
    for sign, term in _terms(index):
        product = _product(term, loops)
        if product is None:
            rest = operate(sign, rest, term)
            continue
        quotient = operate(sign, quotient, product[0])
        extents.add(product[1])
    return (quotient, extents.pop(), rest) if len(extents) == 1 else None


def _terms(expr: Expr, sign: str = "+") -> list[tuple[str, Expr]]:
    """Return the terms of a sum, with their signs."""
    match expr:
        case Op(name="+" | "-" as name, args=(a, b)):
            return [*_terms(a, sign), *_terms(b, sign if name == "+" else _OTHER[sign])]
        case Op(name="neg", args=(a,)):
            return _terms(a, _OTHER[sign])
    return [(sign, expr)]


_OTHER = {"+": "-", "-": "+"}


def _product(term: Expr, loops: Collection[str]) -> tuple[Expr, Expr] | None:
    """Return the factors of a product of loops and sizes, loops first."""
    if not isinstance(term, Op) or term.name != "*" or affine.linear(term) is not None:
        return None
    for a, b in (term.args, term.args[::-1]):
        if affine.linear(a) is not None and not variables_of(b) & {*loops}:
            return a, b
    return None
