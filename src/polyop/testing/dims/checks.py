"""The checks of ``dims=``: sizes that do not fit are refused, and slices give what is claimed of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from ...core.dims.claims import REDUCTIONS
from ..case import BrokenRuleError, Case, Check, NotRunError
from ..report import FAILED, NOT_RUN, PASSED
from . import gradient
from .bits import same_bits_in_a_batch
from .outcome import Outcome, outcomes
from .refusal import not_refused
from .rule import DimsRule, rule_of
from .shapes import compare_shapes


def refuses_misfits(case: Case) -> str:
    """Enlarge one tensor along each dimension that has to fit; every such call must be refused."""
    rule = rule_of(case)
    if rule.is_derived:
        raise NotRunError("no dims=: no call is refused for what is proved of loops")
    problems, count = not_refused(case, rule.dims)
    if problems:
        raise BrokenRuleError("\n".join(problems))
    if not count:
        raise NotRunError("no two sizes have to be equal")
    return f"{count} calls are refused"


def shapes_hold(case: Case) -> str:
    """Compare the shapes that are returned with those of the rule, in small sizes."""
    rule = rule_of(case)
    if rule.is_derived:
        raise NotRunError("no dims=")
    return compare_shapes(case, rule.dims)


def holds(case: Case, keywords: tuple[str, ...]) -> str:
    """Compare slices with the whole for each dimension that one of the keywords claims."""
    rule = rule_of(case)
    return judged(rule, outcomes(case, rule.dims, keywords), keywords, "is false")


def gradients_hold(case: Case) -> str:
    """Compare gradients of slices with the whole's, for dimensions that are parallel or summed."""
    rule = rule_of(case)
    case.need_gradient()
    tried = outcomes(case, rule.dims, gradient.KEYWORDS, gradient.GradientTrial)
    return judged(rule, tried, gradient.KEYWORDS, "does not hold for the gradient")


def judged(rule: DimsRule, results: Iterable[Outcome], keywords: tuple[str, ...], verdict: str) -> str:
    """Return the claims that hold; raises ``BrokenRuleError`` or ``NotRunError`` with those that do not."""
    tried = list(results)
    if not tried:
        raise NotRunError(f"no {'= or '.join(keywords)}=")
    false = [f"{o.claim} {verdict}: {o.detail}" for o in tried if o.status == FAILED]
    untried = [f"{o.claim} could not be tried: {o.detail}" for o in tried if o.status == NOT_RUN]
    passed = rule.origin + ", ".join(map(_passed, (o for o in tried if o.status == PASSED)))
    if false:
        subject = f"{rule.dims.operator}: {rule.origin}"
        raise BrokenRuleError("\n".join(subject + line for line in (*false, *untried)))
    if untried:
        held = [f"passed: {passed}"] if len(untried) < len(tried) else []
        raise NotRunError("; ".join([*untried, *held]))
    return passed


def _passed(outcome: Outcome) -> str:
    return f"{outcome.claim} ({outcome.detail})" if outcome.detail else outcome.claim


CHECKS = (
    Check("dims, refusals", "numpy", refuses_misfits),
    Check("dims, shapes", "numpy", shapes_hold, "the shapes of dims= are wrong"),
    Check("dims, parallel", "numpy", functools.partial(holds, keywords=("parallel",))),
    Check("dims, reductions", "numpy", functools.partial(holds, keywords=REDUCTIONS)),
    Check("dims, halo", "numpy", functools.partial(holds, keywords=("halo",))),
    Check("dims, gradient", "numpy", gradients_hold),
    Check("same bits in a batch", "numpy", same_bits_in_a_batch),
)
