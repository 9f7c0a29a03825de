"""``vmap`` of an operator with ``dims=``, in one call: the samples join a parallel dimension.

With ``dims="b i, i o -> b o", parallel="b"`` and a batch of the first tensor::

    (samples, b, i), (i, o)  ->  (samples * b, i), (i, o)  =>  (samples * b, o)  ->  (samples, b, o)

For ``...`` they are one more of the dimensions that it stands for, and nothing is reshaped.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..call.host import array_namespace
from ..call.operator import Operator
from ..call.rule import Rule
from ..core.dims.dims import Dims
from ..core.dims.entry import Entry
from ..core.schema import Schema

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

    def __call__(
        self, in_dims: Sequence[Any], inputs: Sequence[Any], call: Callable[[list[Any]], Sequence[Any]]
    ) -> Any:
        """Return (outputs, axes that count samples), or ``NotImplemented`` if no dimension can take them.

        ``call`` takes the arguments of the schema, and returns the new outputs, then the written tensors; its
        lists are open. ``in_dims`` is like ``inputs``, with the axis of the samples or None for a tensor.
        Raises ``InferError`` if the tensors of one sample do not fit together.
        """
        positions = self.schema.tensor_positions
        name = self.dimension_for_samples([in_dims[i] for i in positions])
        if name is None:
            return NotImplemented
        attributes = {attribute.name: inputs[i] for i, attribute in self.schema.attributes()}
        shapes = [_map(_sample_shape, inputs[i], in_dims[i]) for i in positions]
        size = self.dims.match(shapes, attributes)[name]
        pairs = (pair for i in positions for pair in _pairs(inputs[i], in_dims[i]))
        samples = next(tensor.shape[axis] for tensor, axis in pairs if axis is not None)
        arguments = list(inputs)
        for i, entry in zip(positions, self.dims.inputs, strict=True):
            if _axis(entry, name) is not None:
                join = functools.partial(_join, entry, name, samples)
                arguments[i] = _map(join, inputs[i], in_dims[i])
        outputs = call(arguments)
        rows = zip(self._entries(arguments, len(outputs)), outputs, strict=True)
        split = [_split(entry, name, output, (samples, size)) for entry, output in rows]
        return tuple(output for output, _ in split), tuple(axis for _, axis in split)

    def _entries(self, arguments: Sequence[Any], count: int) -> list[Entry]:
        """Return the entry of each of ``count`` outputs; a list of outputs has one entry for all of them."""
        rows = zip(self.schema.tensor_positions, self.dims.inputs, strict=True)
        written = [
            entry
            for i, entry in rows
            if entry.written
            for tensor, _ in _pairs(arguments[i], None)
            if tensor is not None
        ]
        fresh = self.dims.outputs
        if any(entry.each for entry in fresh):
            fresh = fresh[:1] * (count - len(written))
        return [*fresh, *written]


def _pairs(value: Any, axes: Any) -> Iterator[tuple[Any, int | None]]:
    """Yield each tensor of an argument, and the axis of its samples or None."""
    if not isinstance(value, (tuple, list)):
        yield value, axes
        return
    yield from zip(value, axes or (None,) * len(value), strict=True)


def _map(function: Callable[[Any, int | None], Any], value: Any, axes: Any) -> Any:
    """Return the result for each tensor of an argument and the axis of its samples; None if it is absent."""
    if isinstance(value, (tuple, list)):
        return tuple(_map(function, *pair) for pair in _pairs(value, axes))
    return None if value is None else function(value, axes)


def _sample_shape(tensor: Any, axis: int | None) -> tuple[Any, ...]:
    """Return the shape of one sample."""
    shape = tuple(tensor.shape)
    return shape if axis is None else (*shape[:axis], *shape[axis + 1 :])


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
    xp = array_namespace(tensor)
    repeated = (samples, *tensor.shape)
    tensor = xp.broadcast_to(tensor, repeated) if axis is None else _moved(tensor, axis, 0)
    if name == ELLIPSIS:
        return tensor
    place = _place(entry, name, tensor)
    shape = tuple(tensor.shape)
    joined = (*shape[1:place], samples * shape[place], *shape[place + 1 :])
    return xp.reshape(_moved(tensor, 0, place - 1), joined)


def _moved(tensor: Any, source: int, destination: int) -> Any:
    """Return a tensor with one axis at another place, for ``vmap`` inside ``vmap`` too.

    The axes are tuples, because PyTorch's ``vmap`` has no rule for ``torch.moveaxis`` of two integers.
    """
    return array_namespace(tensor).moveaxis(tensor, (source,), (destination,))


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
