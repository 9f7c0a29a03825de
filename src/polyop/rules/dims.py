"""``vmap`` of an operator with ``dims=``, in one call: the samples join a parallel dimension.

With ``dims="b i, i o -> b o", parallel="b"`` and a batch of the first tensor::

    (samples, b, i), (i, o)  ->  (samples * b, i), (i, o)  =>  (samples * b, o)  ->  (samples, b, o)

For ``...`` they are one more of the dimensions that it stands for, and nothing is reshaped.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

from ..call.batching import BatchedCall
from ..call.host import array_namespace
from ..call.operator import Operator
from ..call.rule import Rule
from ..core.dims.dims import Dims
from ..core.dims.entry import Entry
from ..core.schema import Schema
from .batched_tensors import map_pairs, moved, pairs, sample_shape, samples_first

ELLIPSIS = "..."


def with_dims_batch(operator: Operator) -> Operator:
    """Return the operator; its batch rule is derived from ``dims`` if it has no other."""
    if operator.dims is None or operator.batch is not None:
        return operator
    return dataclasses.replace(operator, batch=DimsBatch(operator.schema, operator.dims))


class DimsBatch(Rule):
    """The batch rule that follows from ``dims``: one call wherever one dimension can take the samples."""

    is_derived = True
    batching = "one call where '...' or a parallel dimension can take the samples"

    def __init__(self, schema: Schema, dims: Dims) -> None:
        """Take the schema and the dimensions of an operator."""
        self.schema, self.dims = schema, dims
        written = [entry for entry in dims.inputs if entry.written]
        self.results = (*dims.outputs, *written)

    def dimension_for_samples(self, in_dims: Sequence[Any]) -> str | None:
        """Return the dimension that takes the samples: ``...`` or a parallel one, else None.

        It stands in the entry of every tensor that has samples and of every output, once and by itself.
        ``in_dims`` has the axis of the samples of each tensor argument, or None; a tuple of these for a list.
        """
        rows = list(zip(self.dims.inputs, in_dims, strict=True))
        entries = [entry for entry, axes in rows if _has_samples(axes)] + [*self.results]
        others = [entry for entry, axes in rows if not _has_samples(axes)]
        names = [name for name in (ELLIPSIS, *self.dims.parallel) if all(_stands(e, name) for e in entries)]
        # a tensor without samples that has the dimension must be repeated: rather take another dimension
        return min(names, key=lambda name: any(_stands(entry, name) for entry in others), default=None)

    def __call__(self, in_dims: Sequence[Any], inputs: Sequence[Any], call: BatchedCall) -> Any:
        """Return (outputs, axes that count samples), or ``NotImplemented`` if no dimension can take them.

        ``in_dims`` is like ``inputs``, with the axis of the samples or None for a tensor.
        Raises ``InferError`` if the tensors of one sample do not fit together.
        """
        positions = self.schema.tensor_positions
        name = self.dimension_for_samples([in_dims[i] for i in positions])
        if name is None:
            return NotImplemented
        attributes = {attribute.name: inputs[i] for i, attribute in self.schema.attributes()}
        shapes = [map_pairs(sample_shape, inputs[i], in_dims[i]) for i in positions]
        size = self.dims.match(shapes, attributes)[name]
        rows = (pair for i in positions for pair in pairs(inputs[i], in_dims[i]))
        samples = next(tensor.shape[axis] for tensor, axis in rows if axis is not None)
        arguments = list(inputs)
        for i, entry in zip(positions, self.dims.inputs, strict=True):
            if _axis(entry, name) is not None:
                join = functools.partial(_join, entry, name, samples)
                arguments[i] = map_pairs(join, inputs[i], in_dims[i])
        outputs = call(arguments)
        entries = self._entries(arguments, len(outputs))
        split = [
            _split(entry, name, output, (samples, size))
            for entry, output in zip(entries, outputs, strict=True)
        ]
        return tuple(output for output, _ in split), tuple(axis for _, axis in split)

    def _entries(self, arguments: Sequence[Any], count: int) -> list[Entry]:
        """Return the entry of each of ``count`` outputs; a list of outputs has one entry for all of them."""
        rows = zip(self.schema.tensor_positions, self.dims.inputs, strict=True)
        written = [
            entry
            for i, entry in rows
            if entry.written
            for tensor, _ in pairs(arguments[i], None)
            if tensor is not None
        ]
        fresh = self.dims.outputs
        if any(entry.each for entry in fresh):
            fresh = fresh[:1] * (count - len(written))
        return [*fresh, *written]


def _has_samples(axes: Any) -> bool:
    """Whether a tensor, or one of a list, has samples."""
    return any(axis is not None for axis in axes) if isinstance(axes, (tuple, list)) else axes is not None


def _stands(entry: Entry, name: str) -> bool:
    """Whether a dimension stands in an entry, once and by itself."""
    return _axis(entry, name) is not None and list(entry.names()).count(name) == 1


def _axis(entry: Entry, name: str) -> int | None:
    """Return where a dimension stands, from the end; for ``...`` where the samples go, in front."""
    if name == ELLIPSIS:
        return -len(entry.dimensions) - 1 if entry.ellipsis else None
    return entry.axis(name)


def _join(entry: Entry, name: str, samples: Any, tensor: Any, axis: int | None) -> Any:
    """Return a tensor whose dimension ``name`` has that of every sample.

    A tensor without samples is repeated for each of them, because a dimension has one size everywhere.
    """
    tensor = samples_first(tensor, axis, samples)
    if name == ELLIPSIS:
        return tensor
    place = _place(entry, name, tensor)
    shape = tuple(tensor.shape)
    joined = (*shape[1:place], samples * shape[place], *shape[place + 1 :])
    return array_namespace(tensor).reshape(moved(tensor, 0, place - 1), joined)


def _split(entry: Entry, name: str, output: Any, sizes: tuple[Any, Any]) -> tuple[Any, int]:
    """Return an output whose dimension ``name`` is split into ``sizes``, and the axis that counts samples."""
    if name == ELLIPSIS:
        return output, 0
    place = _place(entry, name, output)
    shape = tuple(output.shape)
    return array_namespace(output).reshape(output, (*shape[:place], *sizes, *shape[place + 1 :])), place


def _place(entry: Entry, name: str, tensor: Any) -> int:
    """Return the axis of a dimension in a tensor, which may have more dimensions in front."""
    axis = entry.axis(name)
    assert axis is not None
    return len(tensor.shape) + axis
