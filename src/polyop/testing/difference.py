"""Difference quotients along a random direction, which derivatives are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.dtypes import dtype
from .case import BrokenRuleError, Case, NotRunError
from .samples import registered_dtypes


@dataclass(frozen=True)
class Precision:
    """The step of a difference quotient, and how far a derivative may be from the quotient."""

    dtype: str
    step: float
    tolerance: float


# the error of a central difference is about step**2, plus the rounding of the dtype divided by the step
FLOAT64 = Precision("float64", 1e-5, 1e-5)
PRECISIONS = {  # for operators that do not compute in float64; coarsest first, as the coarsest input decides
    "bfloat16": Precision("bfloat16", 0.1, 0.3),
    "float16": Precision("float16", 0.05, 0.1),
    "float32": Precision("float32", 1e-2, 2e-2),
    "complex64": Precision("complex64", 1e-2, 2e-2),
}


def wide(value: Any) -> Any:
    """Return an array in double precision."""
    return value.astype(np.complex128 if dtype(value.dtype).kind == "complex" else np.float64)


def is_floating(value: Any) -> bool:
    """Whether gradients with respect to an array can exist."""
    return dtype(value.dtype).is_floating


def precise(case: Case) -> tuple[Case, Precision]:
    """Return the case in float64 if the operator can compute in it, else unchanged, and the precision.

    A kernel that declares no dtypes may still be written for one only. So the operator is run in
    float64, and its results must agree with those for the sample's own dtype. Raises ``NotRunError``
    if the dtype is too coarse for a difference quotient.
    """
    kinds = {dtype(value.dtype).name for _, value in case.tensors() if is_floating(value)}
    if kinds <= {"float64", "complex128"}:
        return case, FLOAT64
    declared = registered_dtypes(case.operator)
    if not declared or any(kind.name in ("float64", "complex128") for kind in declared):
        double = case.mapped(lambda _, value: wide(value) if is_floating(value) else value)
        try:
            pairs = zip(double.run(), case.run(), strict=True)
            if all(_agree(left, right) for left, right in pairs):
                return double, FLOAT64
        except Exception:  # noqa: BLE001, S110 - refused in any way: the sample's own dtype then
            pass
    precision = next((PRECISIONS[name] for name in PRECISIONS if name in kinds), None)
    if precision is None or any(dtype(name).itemsize == 1 for name in kinds):
        raise NotRunError(f"{', '.join(sorted(kinds))} is too coarse for difference quotients")
    return case, precision


def _agree(left: Any, right: Any) -> bool:
    if left.shape != right.shape or dtype(left.dtype).name not in ("float64", "complex128"):
        return False
    return bool(np.allclose(left, wide(right), rtol=2e-2, atol=2e-2, equal_nan=True))


def inner(left: Any, right: Any) -> float:
    """Return the real inner product, in which complex numbers are pairs of real ones."""
    return float(np.sum(np.conj(wide(left)) * wide(right)).real)


def direction(value: Any, rng: np.random.Generator) -> Any:
    """Return a random direction of unit-sized components, in double precision."""
    real = rng.standard_normal(value.shape)
    return real + 1j * rng.standard_normal(value.shape) if dtype(value.dtype).kind == "complex" else real


def turned(along: Any, gradient: Any) -> Any:
    """Return a direction whose components have the signs of a gradient, so that a wrong length of it shows.

    Along a direction that is nearly orthogonal to the gradient both derivatives are about zero.

    >>> turned(np.array([2.0, -1.0, -3.0]), np.array([5.0, -7.0, 0.0]))
    array([ 2., -1., -3.])
    >>> turned(np.array([2.0, -1.0]), np.array([-5.0, 7.0]))
    array([-2.,  1.])
    """
    size = np.abs(wide(gradient))
    signs = np.divide(wide(gradient), size, where=(size > 0) & np.isfinite(size), out=np.ones_like(along))
    return np.where(size > 0, np.abs(along) * signs, along)


def random_cotangents(results: Iterable[Any], rng: np.random.Generator) -> list[Any]:
    """Return a random gradient for each floating output of a call, and zeros for the others."""
    return [(direction(x, rng) if is_floating(x) else np.zeros(x.shape)).astype(x.dtype) for x in results]


def quotient(function: Callable[[Any], float], at: Any, along: Any, step: float) -> float:
    """Return the central difference quotient of a function of one array."""
    ahead = (wide(at) + step * along).astype(at.dtype)
    behind = (wide(at) - step * along).astype(at.dtype)
    moved = wide(ahead) - wide(behind)  # rounding may have changed the step
    length = inner(moved, along) / max(inner(along, along), 1e-300)
    return (function(ahead) - function(behind)) / length if length else 0.0


def agree(what: str, derivative: float, expected: float, scale: float, precision: Precision) -> None:
    """Raise ``BrokenRuleError`` unless a derivative is near ``expected``, its difference quotient.

    ``scale`` is the size of the terms that the derivative is a sum of: they may cancel.
    """
    allowed = precision.tolerance * max(1.0, scale, abs(expected))
    if not abs(derivative - expected) <= allowed:
        quotient_text = f"{expected:.6g} along one direction"
        rule = f"{what} must match finite differences in {precision.dtype}, {quotient_text}"
        raise BrokenRuleError(rule, f"{derivative:.6g}")
