"""``vmap`` of an operator with ``dims=``, in one call: the samples join a parallel dimension.

With ``dims="b i, i o -> b o", parallel="b"`` and a batch of the first tensor::

    (samples, b, i), (i, o)   ->   (samples * b, i), (i, o)   one call   (samples * b, o)   ->   (samples, b, o)

For ``...`` they are one more of the dimensions that it stands for, and nothing is reshaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..call.host import array_namespace
from ..call.operator import Operator
from ..call.rule import Rule
from ..core.dims.dims import Dims
from ..core.dims.entry import Entry

ELLIPSIS = "..."


class DimsBatch(Rule):
    """The batch rule that follows from ``dims``: one call wherever one dimension can take the samples."""

    is_derived = True

    def __init__(self, operator: Operator, dims: Dims) -> None:
        """Take the operator; ``bound``, which is called, is set when it has been bound."""
        self.schema, self.dims = operator.schema, dims
        self.bound: Any = None

    def dimension(self, in_dims: Sequence[int | None]) -> str | None:
        """Return the dimension that takes the samples: ``...`` or a parallel one, else None.

        It stands in the entry of every tensor that has samples and of every output, once and by itself.
        ``in_dims`` has the axis of the samples of each tensor argument, or None.
        """
        entries = [e for e, axis in zip(self.dims.inputs, in_dims, strict=True) if axis is not None]
        entries += self.dims.outputs
        attributes = {attribute.name for _, attribute in self.schema.attributes()}
        for name in (ELLIPSIS, *self.dims.parallel):
            stands = all(list(e.names()).count(name) == 1 and _axis(e, name) is not None for e in entries)
            if stands and name not in attributes and not any(entry.each for entry in entries):
                return name
        return None

    def __call__(self, in_dims: Sequence[Any], inputs: Sequence[Any]) -> Any:
        """Return (outputs, the axis of each that counts samples); ``NotImplemented`` where none can take them."""
        positions = self.schema.tensor_positions
        axes = [in_dims[i] for i in positions]
        name = None if any(isinstance(axis, (list, tuple)) for axis in axes) else self.dimension(axes)
        if name is None:
            return NotImplemented
        samples = next(
            inputs[i].shape[axis] for i, axis in zip(positions, axes, strict=True) if axis is not None
        )
        arguments = list(inputs)
        for i, entry, axis in zip(positions, self.dims.inputs, axes, strict=True):
            if arguments[i] is not None and _axis(entry, name) is not None:
                arguments[i] = _join(entry, name, arguments[i], axis, samples)
        result = self.bound(*arguments)
        outputs = result if isinstance(result, (tuple, list)) else (result,)
        rows = [_split(e, name, y, samples) for e, y in zip(self.dims.outputs, outputs, strict=True)]
        return tuple(y for y, _ in rows), tuple(axis for _, axis in rows)


def _axis(entry: Entry, name: str) -> int | None:
    """Return where a dimension stands, from the end; for ``...`` where the samples go, in front."""
    if name == ELLIPSIS:
        return -len(entry.dimensions) - 1 if entry.ellipsis else None
    return entry.axis(name)


def _join(entry: Entry, name: str, tensor: Any, axis: int | None, samples: Any) -> Any:
    """Return a tensor whose dimension ``name`` has that of every sample, one after the other.

    A tensor without samples is repeated for each of them, because the dimension has one size everywhere.
    """
    xp = array_namespace(tensor)
    if axis is None:
        tensor = xp.broadcast_to(tensor, (samples, *tensor.shape))
    else:
        tensor = xp.moveaxis(tensor, axis, 0)
    if name == ELLIPSIS:
        return tensor
    place = tensor.ndim + _of(entry, name)
    tensor = xp.moveaxis(tensor, 0, place - 1)
    shape = tuple(tensor.shape)
    return xp.reshape(tensor, (*shape[: place - 1], shape[place - 1] * shape[place], *shape[place + 1 :]))


def _split(entry: Entry, name: str, output: Any, samples: Any) -> tuple[Any, int]:
    """Return an output with an axis that counts samples, and that axis."""
    if name == ELLIPSIS:
        return output, 0
    place = output.ndim + _of(entry, name)
    shape = tuple(output.shape)
    rest = shape[place] // samples if samples else shape[place]
    shape = (*shape[:place], samples, rest, *shape[place + 1 :])
    return array_namespace(output).reshape(output, shape), place


def _of(entry: Entry, name: str) -> int:
    axis = entry.axis(name)
    assert axis is not None
    return axis
