"""The gradient of a loop kernel, as a loop kernel."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ...core.errors import FallbackWarning, GradientError
from ..analysis.initialisation import with_initialisation
from ..analysis.session import IslSession
from ..ir.grammar import Kernel
from .dead_inputs import without_unread
from .reverse import Reverse
from .tidy import tidy

OPERATIONS = 40_000_000
"""What isl may spend on deriving: without a proof a value is taped, which costs more than the proof."""
UNPROVED = "its gradient tapes whatever may change: where values come from takes too long to prove"

Made = TypeVar("Made")


def proved(kernel: Kernel, make: Callable[[IslSession], Made]) -> tuple[Made, bool]:
    """Return what ``make`` derives, and whether with all proofs.

    Where isl gives up it is made again without knowing any index: each write of a tensor may then be of
    what any other statement has read. Raises ``GradientError`` where that, too, takes too long.
    """
    import islpy

    with contextlib.suppress(islpy.Error):
        return make(IslSession(OPERATIONS)), True
    try:
        return make(IslSession(OPERATIONS, blind=True)), False
    except islpy.Error as problem:
        rule = "its gradient cannot be derived: where its values come from takes too long to prove"
        hint = "give bprop= (or gradient=), or make two kernels of it"
        where = kernel.where(_first(kernel))
        raise GradientError(kernel.name, rule, str(problem), where=where, hint=hint) from None


def _first(kernel: Kernel) -> int:
    return min(kernel.source, default=0)


@dataclass(frozen=True)
class Adjoint:
    """The kernel, where the values that it reads come from (line, text), and what each tape keeps."""

    kernel: Kernel
    told: tuple[tuple[int, str], ...]
    tapes: Mapping[str, str] = field(default_factory=dict)


def adjoint(
    kernel: Kernel,
    present: Sequence[bool],
    wanted: Sequence[bool] = (),
    kept: frozenset[str] = frozenset(),
    *,
    segments: bool = False,
) -> Adjoint:
    """Return the gradient of a typed kernel; ``present``: which outputs have one to start from.

    Parameters: the kernel's tensors, its outputs, one gradient for each output; what is not read has
    no dimensions. ``kept`` are inputs and outputs that are there in any case. Outputs: a gradient for
    each of the kernel's tensors, of its shape and dtype where it holds real numbers and is ``wanted`` (all
    are, where that is empty), else of one element. ``segments``: what iterations overwrite is taped for a
    segment of them at a time. Raises ``GradientError`` with the line for what has none.
    """

    def derive(session: IslSession) -> Adjoint:
        found = Reverse(kernel, session, present, wanted)
        if segments:
            found.in_segments()
        made = found.run()
        copies = {found.sums[n]: found.given[n] for n in found.outputs if n in found.active}
        made = tidy(made, found.session, [n for n in found.sums.values() if n in made.buffers], copies)
        shapes = dict(found.kernel.buffers)
        known = {n: shapes[n].shape for n in kernel.outputs}
        if len(kernel.outputs) == 1:  # of several gradients any may be absent in another call
            known |= {found.given[n]: shapes[n].shape for n in found.outputs}
        made = with_initialisation(without_unread(made, known, kept), found.session)
        tapes = {n: value for n, value in found.tapes().items() if n in made.buffers}
        return Adjoint(made, tuple(found.told()), tapes)

    found, sure = proved(kernel, derive)
    if sure:
        return found
    warnings.warn(FallbackWarning(f"{kernel.name}: {UNPROVED}"), stacklevel=2)
    return replace(found, told=((_first(kernel), UNPROVED), *found.told))
