"""Assume in later proofs the conditions on sizes that every call is checked for.

    y[i] = x[i + 1] for i in range(n)    x has at least n + 1 elements, or the call is an error

Every later proof may rely on it: the sizes are checked at each call before any loop runs. So a statement that
fails for some sizes, as where rows differ, is left out.
"""

from __future__ import annotations

from ..analysis.bounds import demanded_bounds
from ..ir.failing import without_checks
from ..program import AnyProgram


def assume_sizes(program: AnyProgram) -> AnyProgram:
    """Return the program with what is demanded of the sizes, and a session that assumes it."""
    bounds, session = demanded_bounds(program.kernel, program.session)
    kernel = without_checks(program.kernel, lambda access: not bounds.axes(access))
    return program.with_(kernel=kernel, assumed=bounds, session=session)
