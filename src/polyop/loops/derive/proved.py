"""Run a derivation within isl's quota; if that is used up, run it again without proofs about indices."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

from ...core.errors import GradientError
from ..analysis.session import IslSession
from ..ir.grammar import Kernel

OPERATIONS = 40_000_000
"""Isl's quota for one derivation, in its own operations: ten times that of a kernel's passes (session.py).

A value without a proof is taped, which costs more than the proof.
"""

HINTS = {
    "gradient": "give bprop= (or gradient=), or make two kernels of it",
    "tangent": "make two kernels of it",
}
"""By derived form, the way out where it cannot be derived."""

Made = TypeVar("Made")


def proved(kernel: Kernel, form: str, make: Callable[[IslSession], Made], patience: int) -> tuple[Made, bool]:
    """Return what ``make`` derives, and whether with all proofs; ``form`` is "gradient" or "tangent".

    ``patience`` multiplies isl's quota. Where that is used up, it is made again without knowing any index:
    each write of a tensor may then be of what any other statement has read. Raises ``GradientError`` where
    that, too, takes too long.
    """
    import islpy

    with contextlib.suppress(islpy.Error):
        return make(IslSession(patience * OPERATIONS)), True
    try:
        return make(IslSession(OPERATIONS, blind=True)), False
    except islpy.Error as problem:
        rule = f"its {form} cannot be derived: where its values come from takes too long to prove"
        where = kernel.where(first_line(kernel))
        raise GradientError(kernel.name, rule, str(problem), where=where, hint=HINTS[form]) from None


def first_line(kernel: Kernel) -> int:
    """Return the first line of a kernel's source."""
    return min(kernel.source, default=0)
