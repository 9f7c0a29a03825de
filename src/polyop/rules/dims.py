"""``vmap`` of an operator with ``dims=``, in one call: the samples join a parallel dimension.

With ``dims="b i, i o -> b o", parallel="b"`` and a batch of the first tensor::

    (samples, b, i), (i, o)  ->  (samples * b, i), (i, o)  =>  (samples * b, o)  ->  (samples, b, o)

For ``...`` they are one more of the dimensions that it stands for, and nothing is reshaped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..call.bound import BoundOperator
from ..call.host import array_namespace
from ..call.operator import Operator
from ..call.rule import Rule
from ..core.dims.dims import Dims
from ..core.dims.entry import Entry

ELLIPSIS = "..."


def with_dims_batch(operator: Operator) -> BoundOperator:
    """Return the bound operator; its batch rule is derived from ``dims`` if it has no other."""
    if operator.dims is None or operator.batch is not None or operator.schema.mutates:
        return BoundOperator(operator)
    rule = DimsBatch(operator, operator.dims)
    rule.bound = BoundOperator(dataclasses.replace(operator, batch=rule))
    return rule.bound


class DimsBatch(Rule):
    """The batch rule that follows from ``dims``: one call wherever one dimension can take the samples."""

    is_derived = True
    batching = "one call where '...' or a parallel dimension can take the samples"

    def __init__(self, operator: Operator, dims: Dims) -> None:
        """Take the operator; ``bound``, which is called, is set when it has been bound."""
        self.schema, self.dims = operator.schema, dims
        self.bound: BoundOperator

    def dimension_for_samples(self, in_dims: Sequence[int | None]) -> str | None:
        """Return the dimension that takes the samples: ``...`` or a parallel one, else None.

        It stands in the entry of every tensor that has samples and of every output, once and by itself.
        ``in_dims`` has the axis of the samples of each tensor argument, or None.
        """
        rows = list(zip(self.dims.inputs, in_dims, strict=True))
        entries = [entry for entry, axis in rows if axis is not None] + [*self.dims.outputs]
        others = [entry for entry, axis in rows if axis is None]
        names = [name for name in (ELLIPSIS, *self.dims.parallel) if all(_stands(e, name) for e in entries)]
        if any(entry.each for entry in entries):
            return None
        names = [name for name in names if not any(e.each and _stands(e, name) for e in others)]
        # a tensor without samples that has the dimension must be repeated: rather take another dimension
        return min(names, key=lambda name: any(_stands(entry, name) for entry in others), default=None)

    def __call__(self, in_dims: Sequence[Any], inputs: Sequence[Any]) -> Any:
        """Return (outputs, axes that count samples), or ``NotImplemented`` if no dimension can take them."""
        positions = self.schema.tensor_positions
        axes = [in_dims[i] for i in positions]
        axes = [
            None if isinstance(a, (list, tuple)) and not any(x is not None for x in a) else a for a in axes
        ]
        name = self.dimension_for_samples(axes)
        if name is None:
            return NotImplemented
        tensors = list(zip(positions, self.dims.inputs, axes, strict=True))
        samples = next(inputs[i].shape[axis] for i, _, axis in tensors if axis is not None)
        arguments, size = list(inputs), None
        for i, entry, axis in tensors:
            if arguments[i] is not None and _axis(entry, name) is not None:
                arguments[i], size = _join(entry, name, arguments[i], axis, samples)
        result = self.bound(*arguments)
        outputs = result if isinstance(result, (tuple, list)) else (result,)
        rows = [_split(e, name, y, (samples, size)) for e, y in zip(self.dims.outputs, outputs, strict=True)]
        return tuple(y for y, _ in rows), tuple(axis for _, axis in rows)


def _stands(entry: Entry, name: str) -> bool:
    """Whether a dimension stands in an entry, once and by itself."""
    return _axis(entry, name) is not None and list(entry.names()).count(name) == 1


def _axis(entry: Entry, name: str) -> int | None:
    """Return where a dimension stands, from the end; for ``...`` where the samples go, in front."""
    if name == ELLIPSIS:
        return -len(entry.dimensions) - 1 if entry.ellipsis else None
    return entry.axis(name)


def _join(entry: Entry, name: str, tensor: Any, axis: int | None, samples: Any) -> tuple[Any, Any]:
    """Return a tensor whose dimension ``name`` has that of every sample, and its size in one sample.

    A tensor without samples is repeated for each of them, because a dimension has one size everywhere.
    """
    xp = array_namespace(tensor)
    repeated = (samples, *tensor.shape)
    tensor = xp.broadcast_to(tensor, repeated) if axis is None else _moved(tensor, axis, 0)
    if name == ELLIPSIS:
        return tensor, None
    place = _place(entry, name, tensor)
    shape = tuple(tensor.shape)
    joined = (*shape[1:place], samples * shape[place], *shape[place + 1 :])
    return xp.reshape(_moved(tensor, 0, place - 1), joined), shape[place]


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
