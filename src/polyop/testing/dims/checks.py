"""The checks of ``dims=``: sizes that do not fit are refused, and slices give what is claimed of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from ...core.dims.claims import REDUCTIONS
from ...core.dims.dims import Dims
from ..case import BrokenRuleError, Case, Check, NotRunError
from ..report import FAILED, NOT_RUN
from . import gradient
from .outcome import Outcome, outcomes
from .refusal import not_refused


def dims_of(case: Case) -> Dims:
    """Return the rule of the operator in index notation; raises ``NotRunError`` without one."""
    if case.operator.dims is None:
        raise NotRunError("no dims=")
    return case.operator.dims


def refuses_misfits(case: Case) -> str:
    """Enlarge one tensor along each dimension that has to fit; every such call must be refused."""
    problems, count = not_refused(case, dims_of(case))
    if problems:
        raise BrokenRuleError("\n".join(problems))
    if not count:
        raise NotRunError("no two sizes have to be equal")
    return f"{count} calls are refused"


def holds(case: Case, keywords: tuple[str, ...]) -> str:
    """Compare slices with the whole for each dimension that one of the keywords claims."""
    dims = dims_of(case)
    return judged(dims, outcomes(case, dims, keywords), keywords, "is false")


def gradients_hold(case: Case) -> str:
    """Compare gradients of slices with the whole's, for dimensions that are parallel or summed."""
    dims = dims_of(case)
    if not case.has_gradient or case.operator.schema.mutates:
        raise NotRunError("no gradient rule")
    tried = outcomes(case, dims, gradient.KEYWORDS, gradient.GradientTrial)
    return judged(dims, tried, gradient.KEYWORDS, "does not hold for the gradient")


def judged(dims: Dims, results: Iterable[Outcome], keywords: tuple[str, ...], verdict: str) -> str:
    """Return the claims that hold; raises ``BrokenRuleError`` or ``NotRunError`` with those that do not."""
    tried = list(results)
    if not tried:
        raise NotRunError(f"no {'= or '.join(keywords)}=")
    false = [f"{o.claim} {verdict}: {o.detail}" for o in tried if o.status == FAILED]
    untried = [f"{o.claim} could not be tried: {o.detail}" for o in tried if o.status == NOT_RUN]
    passed = ", ".join(o.claim for o in tried if o.status not in (FAILED, NOT_RUN))
    if false:
        raise BrokenRuleError("\n".join(f"{dims.operator}: {line}" for line in (*false, *untried)))
    if untried:
        raise NotRunError("; ".join([*untried, *([f"passed: {passed}"] if passed else [])]))
    return passed


CHECKS = (
    Check("dims, refusals", "numpy", refuses_misfits),
    Check("dims, parallel", "numpy", functools.partial(holds, keywords=("parallel",))),
    Check("dims, reductions", "numpy", functools.partial(holds, keywords=REDUCTIONS)),
    Check("dims, halo", "numpy", functools.partial(holds, keywords=("halo",))),
    Check("dims, gradient", "numpy", gradients_hold),
)
