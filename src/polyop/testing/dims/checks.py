"""The checks of ``dims=``: sizes that do not fit are refused, and slices give what is claimed of them."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from ...core.dims.claims import REDUCTIONS
from ...core.dims.dims import Dims
from ...core.dims.entry import Name, Number
from ...core.errors import InferError
from ..case import Array, BrokenRuleError, Case, Check, NotRunError, one_line
from ..report import FAILED, NOT_RUN, PASSED
from . import gradient
from .bits import same_bits_in_a_batch
from .outcome import Outcome, outcomes
from .rule import DimsRule, rule_of
from .shapes import compare_shapes
from .slices import ELLIPSIS, argument_of, entries


def not_refused(case: Case, dims: Dims) -> tuple[list[str], int]:
    """Return a line for each wrong call that is not refused with ``InferError``, and how many were tried."""
    problems, count = [], 0
    for what, variant in misfits(case, dims):
        count += 1
        try:
            variant.prepare()
        except InferError:
            continue
        except Exception as problem:  # noqa: BLE001 - any other error is what the check found
            problems.append(f"{what}: must be refused with InferError, but got {one_line(problem)}")
            continue
        problems.append(f"{what}: must be refused, but a kernel would run on ({variant})")
    return problems, count


def misfits(case: Case, dims: Dims) -> Iterator[tuple[str, Case]]:
    """Yield (what is wrong, case) for each axis that has to fit another size, enlarged by one."""
    tensors = [(name, value, entries(case, dims)[argument_of(name)]) for name, value in case.tensors()]
    uses = Counter(name for _, _, entry in tensors for name in entry.names())
    uses.update(case.attributes().keys())  # a dimension that an attribute gives has to fit, too
    for name, value, entry in tensors:
        leading = value.ndim - len(entry.dimensions)
        if entry.ellipsis and uses[ELLIPSIS] > 1:
            if leading:
                yield f"{name}: dimension ... enlarged", _replaced(case, name, _enlarged(value, 0))
            yield f"{name}: one dimension more in ...", _replaced(case, name, np.stack([value, value]))
        if not entry.ellipsis:
            yield f"{name}: one dimension more", _replaced(case, name, np.stack([value, value]))
        for axis, size in enumerate(entry.dimensions, leading):
            if isinstance(size, Number) or (isinstance(size, Name) and uses[size.name] > 1):
                yield f"{name}: dimension {size} enlarged", _replaced(case, name, _enlarged(value, axis))


def _enlarged(value: Array, axis: int) -> Array:
    """Return an array with one more element along an axis, equal to its last ones."""
    size = value.shape[axis]
    if size == 0:
        return np.zeros((*value.shape[:axis], 1, *value.shape[axis + 1 :]), value.dtype)
    return np.take(value, [*range(size), size - 1], axis)


def _replaced(case: Case, name: str, array: Array) -> Case:
    return case.mapped(lambda other, value: array if other == name else value)


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
