"""Build the dask graph of a call: a task for each block, and a tree reduction for each partial output.

Axes have labels for ``dask.array.blockwise``: the axes of one cut share a label, any other axis has its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.layers import ArrayValuesDep

from ...core.spec import Spec
from ...sharding.placement import Partial
from .block import COMBINE, Block, Pick, Result, unchanged
from .cuts import Cut, axis_of
from .gather import read_blocks


class _Output(NamedTuple):
    """One output in blocks. The cuts along which it is partial are its leading axes."""

    name: str
    spec: Spec
    partial: tuple[int, ...]
    cut_of: tuple[int | None, ...]
    """The number of the cut along each axis, or None."""
    op: str

    @classmethod
    def of(cls, name: str, number: int, spec: Spec, cuts: Sequence[Cut]) -> _Output:
        placements = [cut.strategy.outputs[number] for cut in cuts]
        axes = [axis_of(placement) for placement in placements]
        partial = tuple(i for i, axis in enumerate(axes) if axis is None)
        cut_of = tuple(axes.index(axis) if axis in axes else None for axis in range(spec.ndim))
        op = next((one.op for one in placements if isinstance(one, Partial)), "")
        return cls(name, spec, partial, cut_of, op)

    def result(self, placed: Sequence[int]) -> Result:
        """Return how a block trims this output; ``placed`` are the cuts whose slices a block gets."""
        rows = [(axis, placed.index(i)) for axis, i in enumerate(self.cut_of) if i in placed]
        return Result(tuple(rows), len(self.partial))

    def blocks(self, function: Any, arguments: Sequence[Any], cuts: Sequence[Cut], like: Any) -> Any:
        """Return the array of trimmed blocks; each has a leading axis of size 1 for each partial cut."""
        whole = {f"out{axis}": self.spec.shape[axis] for axis, i in enumerate(self.cut_of) if i is None}
        own = [f"out{axis}" if i is None else _label(i) for axis, i in enumerate(self.cut_of)]
        sizes = {
            _label(i): 1 if i in self.partial else tuple(one.output.size for one in cut.slices)
            for i, cut in enumerate(cuts)
        }
        return da.blockwise(
            function,
            [*map(_label, self.partial), *own],
            *arguments,
            new_axes=whole,
            adjust_chunks=sizes,
            dtype=self.spec.dtype.numpy,
            meta=self.meta(like, len(self.partial)),
            align_arrays=False,
            token=self.name,
        )

    def combined(self, blocks: Any, like: Any) -> Any:
        """Return the output: partial results are combined in a tree."""
        if not self.partial:
            return blocks
        return da.reduction(
            blocks,
            chunk=unchanged,
            aggregate=COMBINE[self.op],
            axis=tuple(range(len(self.partial))),
            dtype=self.spec.dtype.numpy,
            meta=self.meta(like),
        )

    def meta(self, like: Any, more: int = 0) -> Any:
        """Return an empty array of the type of the blocks."""
        return meta_from_array(like, ndim=self.spec.ndim + more, dtype=self.spec.dtype.numpy)


def outputs_of(
    bound: Any,
    values: tuple[Any, ...],
    tensors: Sequence[Any],
    specs: Sequence[Spec],
    cuts: Sequence[Cut],
) -> list[Any]:
    """Return the outputs of a call as lazy arrays. ``values`` are those of ``call.foreign.unflatten``."""
    name = bound.schema.name  # as dask's dashboard shows the tasks
    outputs = [_Output.of(name, number, spec, cuts) for number, spec in enumerate(specs)]
    placed = [i for i, cut in enumerate(cuts) if cut.has_place]
    like = tensors[0]._meta  # noqa: SLF001 - the type of an array's blocks has no public name
    results = tuple(output.result(placed) for output in outputs)
    block = Block(bound, values, results, tuple(cuts[i].strategy for i in placed))
    arguments = _arguments(tensors, cuts, placed)
    if len(outputs) == 1:
        (only,) = outputs
        return [only.combined(only.blocks(block, arguments, cuts, like), like)]
    together = [*map(_label, range(len(cuts)))]
    all_blocks = da.blockwise(
        block,
        together,
        *arguments,
        adjust_chunks=dict.fromkeys(together, 1),
        dtype=object,
        meta=np.empty((0,) * len(cuts), object),
        align_arrays=False,
        token=name,
    )
    picked = [all_blocks, together]
    return [
        output.combined(output.blocks(Pick(number), picked, cuts, like), like)
        for number, output in enumerate(outputs)
    ]


def _arguments(tensors: Sequence[Any], cuts: Sequence[Cut], placed: Sequence[int]) -> list[Any]:
    """Return what a block is made of, with labels: the tensors, then the slices of the ``placed`` cuts."""
    arguments: list[Any] = []
    for number, tensor in enumerate(tensors):
        cut_of = {axis_of(cut.strategy.inputs[number]): i for i, cut in enumerate(cuts)}
        own = {axis: cuts[i] for axis, i in cut_of.items() if axis is not None}
        labels = [
            _label(cut_of[axis]) if axis in own else f"in{number}.{axis}" for axis in range(tensor.ndim)
        ]
        arguments += [read_blocks(tensor, own), labels]
    for i in placed:
        slices = {(number,): one for number, one in enumerate(cuts[i].slices)}
        arguments += [ArrayValuesDep(((1,) * len(slices),), slices), [_label(i)]]
    return arguments


def _label(cut: int) -> str:
    return f"cut{cut}"
