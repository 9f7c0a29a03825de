"""Temporaries of the forward that a call can save, so that its gradient does not recompute them.

``tape`` chooses which ones are worth saving, and ``tape_bytes`` limits how many bytes they take in all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...loops.analysis.sizes import bytes_of
from ...loops.ir.grammar import Kernel
from ...loops.library.derivations import derivation
from .kernel import LoopKernel, tensors_of

Names = frozenset[str]


def saving_form(
    base: LoopKernel, inputs: Sequence[Any], attributes: Mapping[str, Any], omitted: Names = frozenset()
) -> Kernel | None:
    """Return the kernel of ``base`` that also returns its temporaries, or None if there are none to save.

    ``omitted``: the temporaries that it does not return.
    """
    from ...loops.derive.residuals import is_simple

    if base.tape == "none":
        return None
    kernel = base.for_all_sizes(inputs, attributes)
    if is_simple(kernel):  # it has no temporaries
        return None
    form: Kernel | None = base.once(
        ("saving", id(kernel), omitted), lambda: derivation("saving", kernel, base.tape, omitted)
    )
    return form


class Temporary(NamedTuple):
    """A temporary that a call can save: its size in bytes, and whether ``tape_bytes`` allows to save it."""

    name: str
    size: int
    fits: bool


def temporaries(base: LoopKernel, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[Temporary]:
    """Return what calls with these specs can save.

    The largest temporaries are omitted until the others fit into ``tape_bytes``.
    """
    kernel = saving_form(base, inputs, attributes)
    if kernel is None:
        return []
    specs = dict(zip(tensors_of(kernel), inputs, strict=True))
    numbers = {**base.outline.defaults, **attributes}
    names = kernel.outputs[base.results :]
    sizes = {n: bytes_of(kernel, kernel.buffers[n], specs, numbers) for n in names}
    fitting = dict(sizes)
    while base.tape_bytes is not None and sum(fitting.values()) > base.tape_bytes:
        del fitting[max(fitting, key=lambda name: fitting[name])]
    return [Temporary(n, size, n in fitting) for n, size in sizes.items()]


def over_limit(base: LoopKernel, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Names:
    """Return the temporaries that calls with these specs do not save, because of ``tape_bytes``.

    If a size is a symbol, none is known to fit: all are returned.
    """
    shapes = [size for spec in inputs if spec is not None for size in spec.shape]
    if not all(isinstance(size, int) for size in shapes):
        kernel = saving_form(base, inputs, attributes)
        return frozenset(kernel.outputs[base.results :] if kernel is not None else ())
    return frozenset(row.name for row in temporaries(base, inputs, attributes) if not row.fits)
