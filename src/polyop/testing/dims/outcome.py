"""``outcomes``: try each claim of ``dims`` until one case shows that it is false."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass

from ...core.dims.claims import REDUCTIONS
from ...core.dims.dims import Dims
from ...core.dims.entry import Number
from ...core.errors import InferError
from ..case import Case, NotRunError
from ..crash import signal_of
from ..report import FAILED, NOT_RUN, PASSED
from .join import SliceRefusedError, UntriedError
from .slices import ELLIPSIS, result_entries
from .smallest import smallest, trials
from .trial import Trial

KEYWORDS = ("parallel", *REDUCTIONS, "halo")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the trials of one claim about one dimension showed.

    ``claim`` is its text: ``parallel="n"``. ``status`` is ``"passed"``, ``"failed"`` or ``"not run"``.
    ``detail`` is the smallest case of a false claim, or the reason why a claim could not be tried. For a
    claim that passed it is a slice that the operator refused, if there was one.
    """

    claim: str
    status: str
    detail: str = ""


def outcomes(
    case: Case, dims: Dims, keywords: tuple[str, ...] = KEYWORDS, kind: type[Trial] = Trial
) -> Iterator[Outcome]:
    """Yield the outcome of each claim with one of these keywords; ``kind`` says what is compared."""
    for keyword in keywords:
        for name in claimed(case, dims, keyword):
            yield Outcome(claim_text(dims, keyword, name), *_verdict(case, dims, keyword, name, kind))


def claim_text(dims: Dims, keyword: str, name: str) -> str:
    """Return a claim about one dimension as an author writes it: ``sum="n", halo={"n": (0, 1)}``."""
    texts = [] if keyword == "halo" else [f'{keyword}="{name}"']
    if name in dims.halo:
        widths = ", ".join(str(w) if isinstance(w, Number) else f'"{w}"' for w in dims.halo[name])
        texts.append(f'halo={{"{name}": ({widths})}}')
    return ", ".join(texts)


def claimed(case: Case, dims: Dims, keyword: str) -> tuple[str, ...]:
    """Return the dimensions that a keyword claims.

    ``...`` in every result is parallel, whether ``parallel=`` names it or not. A dimension with a halo
    that is also reduced is tried as a reduction, whose slices have the halo.
    """
    if keyword == "halo":
        return tuple(name for name in dims.halo if name not in dims.reductions)
    if keyword != "parallel":
        return tuple(name for name, kind in dims.reductions.items() if kind == keyword)
    results = list(result_entries(case, dims))
    maps = bool(results) and all(entry.ellipsis for entry in results) and ELLIPSIS not in dims.reductions
    return tuple(dict.fromkeys([*([ELLIPSIS] if maps else []), *dims.parallel]))


def _verdict(case: Case, dims: Dims, keyword: str, name: str, kind: type[Trial]) -> tuple[str, str]:
    """Return the status of a claim, and the smallest case or the reason."""
    tried = functools.partial(_first_failure, case, dims, keyword, name, kind)
    try:
        if case.bound.native and hasattr(os, "fork"):
            signal = signal_of(tried)
            if signal:
                return FAILED, f"{signal} ended the kernel when it ran on slices of {name}"
        failure, refused = tried()
    except (UntriedError, NotRunError, InferError) as reason:  # InferError: the sample does not fit
        return NOT_RUN, str(reason)
    return (PASSED, refused) if failure is None else (FAILED, str(smallest(failure)))


def _first_failure(
    case: Case, dims: Dims, keyword: str, name: str, kind: type[Trial]
) -> tuple[Trial | None, str]:
    """Return the first trial that fails, and the first refusal of a slice, empty if none was refused.

    Raises ``UntriedError`` if no trial could run.
    """
    reason, refused, ran = "the rule gives no outputs in any of the sizes that were tried", "", False
    for trial in trials(case, dims, keyword, name, kind):
        is_false, problem = _tried(trial)
        if is_false:
            return trial, refused
        ran = ran or problem is None
        reason = str(problem or reason)
        # with a halo, a window may not fit into a slice to which no element of the output belongs
        if isinstance(problem, SliceRefusedError) and name not in dims.halo:
            refused = refused or reason
    if not ran:
        raise UntriedError(reason)
    return None, refused


def _tried(trial: Trial) -> tuple[bool, UntriedError | None]:
    """Return whether the slices differ from the whole, or why the trial could not run."""
    try:
        return trial.difference() is not None, None
    except UntriedError as problem:
        return False, problem
