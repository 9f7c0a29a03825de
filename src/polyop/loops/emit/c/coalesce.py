"""Print two loops that run as one where sizes allow it: the outer loop takes a step of several rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...ir.grammar import INT, Expr, For, Op, Stmt, Var
from ...ir.plan import Coalesced
from ..common.c_text import identifier
from ..common.expressions import Expressions, Scope

_ROWS = "rows of a step"  # no author's name


@dataclass(frozen=True)
class Step:
    """The step of an outer loop: the C variable, when it may be more than one, and the length of a row.

    ``body`` is the outer loop's, in which the inner loop runs through all rows of a step.
    """

    name: str
    condition: str
    length: str
    body: tuple[Stmt, ...]

    def scope(self, scope: Scope) -> Scope:
        """Return a scope for ``body``."""
        return scope.with_names({_ROWS: self.name})

    def start(self, left: str) -> str:
        """Return the line that sets the step, where so many rows are left."""
        return f"{self.name} = {self.condition} ? polyop_rows({left}, {self.length}) : 1;"


def step_of(outer: For, coalesced: Coalesced, expressions: Expressions, scope: Scope) -> Step:
    """Return the step of an outer loop in a scope."""
    pairs = ((expressions.scalar(a, scope), expressions.scalar(b, scope)) for a, b in coalesced.equal)
    condition = " && ".join(dict.fromkeys(f"{a} == {b}" for a, b in pairs)) or "1"
    length = Op("*", (Var(_ROWS, INT), coalesced.length), INT)
    body = _with_length(outer.body, coalesced.inner, length)
    return Step(f"{identifier(outer.var)}_rows", condition, expressions.scalar(coalesced.length, scope), body)


def step_of_lanes(outer: For, coalesced: Coalesced, expressions: Expressions) -> Step:
    """Return the step of a loop of threads."""
    step = step_of(outer, coalesced, expressions, Scope())
    several = f"{expressions.scalar(outer.hi, Scope())} > 1"
    return replace(step, condition=f"{several} && {step.condition}")


def _with_length(body: tuple[Stmt, ...], inner: str, length: Expr) -> tuple[Stmt, ...]:
    """Return the body of a perfect nest in which the inner loop has another end."""
    (node,) = body
    assert isinstance(node, For)
    if node.var == inner:
        return (replace(node, hi=length),)
    return (replace(node, body=_with_length(node.body, inner, length)),)
