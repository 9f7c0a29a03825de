"""Parts of a case: slices along a dimension, and the same case in other sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...core.dims.dims import Dims
from ...core.dims.entry import Entry, Name, Number, names_in
from ...core.dims.match import Sizes
from ...core.dtypes import dtype
from ..case import Array, Case
from ..samples import draw

ELLIPSIS = "..."


class Dimension(NamedTuple):
    """A dimension of ``dims=``; of ``...``, the one at ``position``."""

    name: str
    position: int = 0

    def axis(self, entry: Entry) -> int | None:
        """Return the axis in a tensor of an entry, or None if the entry lacks the dimension."""
        if self.name == ELLIPSIS:
            return self.position if entry.ellipsis else None
        for position, size in enumerate(entry.dimensions):
            if self.name in names_in(size):
                return position - len(entry.dimensions)
        return None

    def size(self, sizes: Sizes) -> int:
        """Return its size."""
        size = sizes[self.name]
        return int(size[self.position] if self.name == ELLIPSIS else size)

    def with_size(self, sizes: Sizes, size: int) -> Sizes:
        """Return the sizes with another one for this dimension."""
        if self.name != ELLIPSIS:
            return {**sizes, self.name: size}
        leading = sizes[ELLIPSIS]
        return {**sizes, ELLIPSIS: (*leading[: self.position], size, *leading[self.position + 1 :])}


def entries(case: Case, dims: Dims) -> dict[str, Entry]:
    """Return the entry of each tensor argument by its name."""
    schema = case.operator.schema
    names = [argument.name for argument in schema.tensor_arguments]
    return dict(zip(names, dims.inputs, strict=True))


def result_entries(case: Case, dims: Dims) -> Iterator[Entry]:
    """Yield the entry of each result of :meth:`Case.run`: new outputs, then arguments that are written."""
    yield from dims.outputs
    for position, entry in zip(case.operator.schema.tensor_positions, dims.inputs, strict=True):
        value = case.arguments[position]
        if entry.written and value is not None:
            yield from [entry] * (len(value) if entry.each else 1)


def sizes_of(case: Case, dims: Dims) -> Sizes:
    """Return the size of each dimension; raises ``InferError`` for tensors that do not fit."""
    shapes: list[Any] = []
    for position in case.operator.schema.tensor_positions:
        value = case.arguments[position]
        if isinstance(value, (list, tuple)):
            shapes.append([None if item is None else item.shape for item in value])
        else:
            shapes.append(None if value is None else value.shape)
    return dims.match(shapes, case.attributes())


def cut(case: Case, dims: Dims, dimension: Dimension, start: int, stop: int) -> Case:
    """Return the case with a slice of each tensor that has the dimension, and the others whole."""
    known = entries(case, dims)

    def sliced(name: str, value: Array) -> Array:
        axis = dimension.axis(known[argument_of(name)])
        if axis is None:
            return value
        before = value.ndim + axis if axis < 0 else axis
        return np.ascontiguousarray(value[(slice(None),) * before + (slice(start, stop),)])

    return case.mapped(sliced)


def resized(case: Case, dims: Dims, sizes: Sizes) -> Case:
    """Return the case in other sizes.

    A smaller tensor is a part of the sample's. A larger one repeats its elements; those of a floating dtype
    are multiplied by different factors, because equal elements hide a false claim.
    """
    known, rng = entries(case, dims), case.rng("dims")

    def fitted(name: str, value: Array) -> Array:
        entry = known[argument_of(name)]
        return fit(value, entry, shape_of(entry, value.shape, sizes), rng)

    return case.mapped(fitted)


def shape_of(entry: Entry, shape: tuple[int, ...], sizes: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the shape of an argument in these sizes; ``shape`` gives those that the entry leaves open."""
    trailing = shape[len(shape) - len(entry.dimensions) :]
    fitted = [
        sizes[size.name] if isinstance(size, Name) else size.value if isinstance(size, Number) else own
        for size, own in zip(entry.dimensions, trailing, strict=True)
    ]
    return (*(sizes[ELLIPSIS] if entry.ellipsis else ()), *fitted)


def fit(value: Array, entry: Entry, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return an array of this shape with the elements of ``value``."""
    if value.size == 0:
        return draw(shape, dtype(value.dtype), rng)
    trailing = len(entry.dimensions)
    target = shape
    if value.ndim != len(shape):  # another number of dimensions in "...": they count as one
        leading = value.ndim - trailing
        value = value.reshape(math.prod(value.shape[:leading]), *value.shape[leading:])
        target = (math.prod(shape[: len(shape) - trailing]), *shape[len(shape) - trailing :])
    grown = any(new > old for new, old in zip(target, value.shape, strict=True))
    for axis, size in enumerate(target):
        value = np.take(value, np.arange(size) % value.shape[axis], axis)
    value = value.reshape(shape)
    constant = value.size > 1 and bool(np.all(value == value.flat[0]))
    if (grown or constant) and dtype(value.dtype).is_floating:
        value = (value * rng.uniform(0.5, 1.0, shape)).astype(value.dtype)
    return value


def argument_of(name: str) -> str:
    """Return the name of the argument that holds a tensor: that of a list for one of its items."""
    return name.split("[", maxsplit=1)[0]
