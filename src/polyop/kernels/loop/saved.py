"""The temporaries that a forward call can save for its gradient, and which of them fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...loops.analysis.sizes import bytes_of
from ...loops.ir.grammar import Kernel
from .kernel import LoopKernel, tensors_of

Left = frozenset[str]


def saved(
    base: LoopKernel, inputs: Sequence[Any], attributes: Mapping[str, Any], left: Left = frozenset()
) -> Kernel | None:
    """Return the kernel of ``base`` that also returns temporaries for specs, or None where there are none."""
    from ...loops.derive.residuals import is_simple

    if base.tape == "none":
        return None
    kernel = base.form(inputs, attributes)
    if is_simple(kernel):  # it has no temporaries
        return None
    from ...loops.derive.saving import saving  # late: a simple kernel does without isl

    found: Kernel | None = base.once(("saving", id(kernel), left), lambda: saving(kernel, base.tape, left))
    return found


class Handed(NamedTuple):
    """A temporary that a call can hand over: how many bytes it takes, and whether it is handed over."""

    name: str
    size: int
    fits: bool


def handed_over(base: LoopKernel, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[Handed]:
    """Return what calls with these specs can hand over; while it is beyond the limit the largest stays."""
    kernel = saved(base, inputs, attributes)
    if kernel is None:
        return []
    known = dict(zip(tensors_of(kernel), inputs, strict=True))
    given = {**base.outline.defaults, **attributes}
    names = kernel.outputs[base.results :]
    sizes = {n: bytes_of(kernel, kernel.buffers[n], known, given) for n in names}
    fits = dict(sizes)
    while base.tape_bytes is not None and sum(fits.values()) > base.tape_bytes:
        del fits[max(fits, key=lambda name: fits[name])]
    return [Handed(n, size, n in fits) for n, size in sizes.items()]


def beyond(base: LoopKernel, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Left:
    """Return the temporaries that calls with these specs can hand over and the limit forbids.

    Of sizes that are symbols none is known to fit.
    """
    shapes = [size for spec in inputs if spec is not None for size in spec.shape]
    if not all(isinstance(size, int) for size in shapes):
        kernel = saved(base, inputs, attributes)
        return frozenset(kernel.outputs[base.results :] if kernel is not None else ())
    return frozenset(one.name for one in handed_over(base, inputs, attributes) if not one.fits)
