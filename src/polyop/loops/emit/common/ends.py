"""The end of a loop's range, in C."""

from __future__ import annotations

from ...ir.grammar import For, OpenEnd
from .expressions import Expressions, Scope

PAST_ALL = str(2**62)
"""The end of the variable of a ``while``: a flag ends the loop long before."""


def end_of(loop: For, expressions: Expressions, scope: Scope) -> str:
    """Return the end of a loop whose flags the text asks before each iteration."""
    return PAST_ALL if isinstance(loop.hi, OpenEnd) else expressions.scalar(loop.hi, scope)
