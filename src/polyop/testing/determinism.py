"""Check that repeated runs on equal inputs return equal bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .case import Case, Check
from .compare import same_bits

RUNS = 4


def _repeat(case: Case, run: Callable[[Case], list[Any]]) -> None:
    first = run(case)
    for number in range(2, RUNS + 1):
        same_bits(f"run {number} on equal inputs", run(case), first, "run 1")


def repeated_numpy(case: Case) -> None:
    """Repeat the call on arrays."""
    _repeat(case, Case.run)


def repeated_torch(case: Case) -> None:
    """Repeat the call on tensors."""
    from .frameworks import torch as framework

    _repeat(case, framework.run)


CHECKS = (
    Check("repeated runs", "numpy", repeated_numpy),
    Check("repeated runs", "torch", repeated_torch),
)
