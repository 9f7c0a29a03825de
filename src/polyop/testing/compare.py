"""Compare two lists of arrays; an error names the first element that differs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import BrokenRuleError, Case, spec_of


def same_specs(what: str, results: list[Any], expected: list[Any], other: str) -> None:
    """Raise ``BrokenRuleError`` unless both have the same count, shapes and dtypes.

    In the message, ``what`` names the source of the results and ``other`` that of the expected ones.
    """
    if len(results) != len(expected):
        raise BrokenRuleError(f"{other} gives {len(expected)} outputs", f"{len(results)} from {what}")
    for number, (left, right) in enumerate(zip(results, expected, strict=True)):
        if spec_of(left) != spec_of(right):
            raise BrokenRuleError(
                f"output {number}: {other} gives {spec_of(right)}", f"{spec_of(left)} from {what}"
            )


def same_bits(what: str, results: list[Any], expected: list[Any], other: str) -> None:
    """Raise ``BrokenRuleError`` unless both hold the same bytes; all NaNs are equal."""
    same_specs(what, results, expected, other)
    for number, (left, right) in enumerate(zip(results, expected, strict=True)):
        if left.tobytes() != right.tobytes() and not _equal(left, right):
            raise BrokenRuleError(
                _difference(what, number, left, right, apart=_wide(left) != _wide(right), other=other)
            )


def close(case: Case, what: str, results: list[Any], expected: list[Any], other: str) -> None:
    """Raise ``BrokenRuleError`` unless shapes and dtypes agree, and values within tolerance."""
    same_specs(what, results, expected, other)
    for number, (left, right) in enumerate(zip(results, expected, strict=True)):
        near(what, number, left, right, tolerance=case.tolerance(left.dtype), other=other)


def near(
    what: str, number: int, left: Any, right: Any, *, tolerance: tuple[float, float], other: str
) -> None:
    """Raise ``BrokenRuleError`` unless two arrays of one shape agree within (rtol, atol)."""
    if left.shape != right.shape:
        raise BrokenRuleError(
            f"output {number}: {other} gives shape {right.shape}", f"{left.shape} from {what}"
        )
    wide, expected = _wide(left), _wide(right)
    with np.errstate(all="ignore"):
        apart = ~np.isclose(wide, expected, rtol=tolerance[0], atol=tolerance[1], equal_nan=True)
    if apart.any():
        raise BrokenRuleError(_difference(what, number, left, right, apart=apart, other=other))


def _wide(array: Any) -> Any:
    kind = array.dtype.kind
    return np.asarray(array) if kind in "biuc" else np.asarray(array).astype(np.float64)


def _equal(left: Any, right: Any) -> bool:
    wide, other = _wide(left), _wide(right)
    return bool(np.array_equal(wide, other, equal_nan=wide.dtype.kind in "fc"))


def _difference(what: str, number: int, left: Any, right: Any, *, apart: Any, other: str) -> str:
    index = tuple(int(i) for i in np.argwhere(apart)[0])
    subject = f"output {number}{list(index) if index else ''}"
    count = f" ({int(np.sum(apart))} of {left.size} elements differ)"
    return f"{subject}: {other} gives {right[index]}, but got {left[index]} from {what}{count}"
