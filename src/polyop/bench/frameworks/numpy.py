"""Calls on NumPy arrays; gradients are those of ``op.vjp``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import UnsupportedError
from ...testing.case import Array, Case, as_list


def convert(case: Case, *, gradient: bool) -> tuple[Any, ...]:
    """Return copies of the arrays."""
    del gradient
    return case.copy()


def timed(
    case: Case, function: Callable[..., Any], arguments: tuple[Any, ...], *, gradient: bool
) -> Callable[[], Any]:
    """Return the call. Raises ``UnsupportedError`` for the gradient of anything but an operator."""
    if not gradient:
        return lambda: function(*arguments)
    if function is not case.bound:
        raise UnsupportedError(
            getattr(function, "__name__", "peer"), "NumPy has no gradients of other functions"
        )

    def run() -> Any:
        outputs, pull = case.bound.vjp(*arguments)
        ones = tuple(np.ones_like(out) for out in as_list(outputs))
        return pull(ones[0] if isinstance(outputs, np.ndarray) else ones)

    return run


def arrays(case: Case, result: Any) -> list[Array]:
    """Return the results as arrays; a tensor without a gradient is left out."""
    del case
    return [np.asarray(value) for value in as_list(result) if value is not None]
