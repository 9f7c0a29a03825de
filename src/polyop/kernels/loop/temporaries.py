"""Temporaries of the forward that a call can save, so that its gradient does not recompute them.

``tape`` chooses which ones are worth saving, and ``tape_bytes`` limits how many bytes they take in all.
"""

from __future__ import annotations

from typing import NamedTuple

from ...loops.analysis.sizes import bytes_of
from ...loops.ir.grammar import Kernel
from ...loops.library.derivations import derivation
from .kernel import Attributes, Inputs, LoopKernel, specs_of

Numbers = tuple[int, ...]
"""Some of the temporaries that a call can save, by their numbers among all of them."""


def saving_kernel(
    base: LoopKernel, inputs: Inputs, attributes: Attributes, omitted: Numbers = ()
) -> Kernel | None:
    """Return the kernel of ``base`` that also returns its temporaries, or None if there are none to save.

    It does not return those that are ``omitted``.
    """
    from ...loops.derive.residuals import is_simple

    if base.tape == "none":
        return None
    kernel = base.for_all_sizes(inputs, attributes)
    if is_simple(kernel):  # it has no temporaries
        return None
    names = _names(base, saving_kernel(base, inputs, attributes)) if omitted else ()
    without = frozenset(name for number, name in enumerate(names) if number in omitted)
    found: Kernel | None = base.once(
        ("saving", id(kernel), without), lambda: derivation("saving", kernel, base.tape, without)
    )
    return found


def _names(base: LoopKernel, kernel: Kernel | None) -> tuple[str, ...]:
    """Return the temporaries that a kernel of :func:`saving_kernel` returns."""
    return () if kernel is None else kernel.outputs[base.results :]


class Temporary(NamedTuple):
    """A temporary that a call can save: its size in bytes, and whether ``tape_bytes`` allows to save it."""

    name: str
    size: int
    fits: bool


def temporaries(base: LoopKernel, inputs: Inputs, attributes: Attributes) -> list[Temporary]:
    """Return what calls with these specs can save.

    The largest temporaries are omitted until the others fit into ``tape_bytes``.
    """
    kernel = saving_kernel(base, inputs, attributes)
    if kernel is None:
        return []
    specs, numbers = specs_of(kernel, inputs), {**base.outline.defaults, **attributes}
    sizes = {n: bytes_of(kernel, kernel.buffers[n], specs, numbers) for n in _names(base, kernel)}
    fitting = dict(sizes)
    while base.tape_bytes is not None and sum(fitting.values()) > base.tape_bytes:
        del fitting[max(fitting, key=lambda name: fitting[name])]
    return [Temporary(n, size, n in fitting) for n, size in sizes.items()]


def over_limit(base: LoopKernel, inputs: Inputs, attributes: Attributes) -> Numbers:
    """Return the temporaries that calls with these specs do not save, because of ``tape_bytes``.

    If a size is a symbol, none is known to fit: all are returned.
    """
    shapes = [size for spec in inputs if spec is not None for size in spec.shape]
    if not all(isinstance(size, int) for size in shapes):
        return tuple(range(len(_names(base, saving_kernel(base, inputs, attributes)))))
    rows = temporaries(base, inputs, attributes)
    return tuple(number for number, row in enumerate(rows) if not row.fits)
