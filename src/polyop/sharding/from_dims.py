"""The strategies of a call by ``dims=``, and by ``batch="elementwise"``, which may broadcast."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.dims.dims import Dims
from ..core.dims.entry import Binary, Entry, Expression, Name, names_in
from ..core.spec import Spec
from .rule import AxisStrategy, split

ELLIPSIS = "..."
Shapes = Sequence[tuple[int, ...]]


def strategies_of_dims(
    dims: Dims,
    entries: Sequence[Entry],
    inputs: Sequence[Spec],
    outputs: Sequence[Spec],
    attributes: Mapping[str, Any],
) -> Iterator[AxisStrategy]:
    """Yield a strategy for each dimension of which something is claimed.

    ``entries`` has the entry of each flat input. ``attributes`` are the values by name.
    """
    results = _output_entries(dims, entries, len(outputs))
    call = _Call(dims, (*entries,), (*results,), (*inputs,), (*outputs,), attributes)
    for name in dims.names:
        if name == ELLIPSIS:
            yield from call.leading()
        elif name in dims.parallel or name in dims.reductions or name in dims.halo:
            strategy = call.strategy(name)
            if strategy is not None:
                yield strategy


def _output_entries(dims: Dims, entries: Sequence[Entry], count: int) -> list[Entry]:
    """Return the entry of each flat output: the new ones, then the tensors that are written in place."""
    written = [entry for entry in entries if entry.written]
    fresh = dims.outputs
    if any(entry.each for entry in fresh):  # a list is the only new output
        fresh = fresh[:1] * (count - len(written))
    return [*fresh, *written]


class _Call:
    """The entries and shapes of one call."""

    def __init__(
        self,
        dims: Dims,
        inputs: tuple[Entry, ...],
        outputs: tuple[Entry, ...],
        input_specs: tuple[Spec, ...],
        output_specs: tuple[Spec, ...],
        attributes: Mapping[str, Any],
    ) -> None:
        self.dims, self.attributes = dims, attributes
        self.inputs = list(zip(inputs, (spec.shape for spec in input_specs), strict=True))
        self.outputs = list(zip(outputs, (spec.shape for spec in output_specs), strict=True))

    def leading(self) -> Iterator[AxisStrategy]:
        """Yield a strategy for each dimension that ``...`` stands for, if it may be split."""
        op = self.dims.reductions.get(ELLIPSIS, "")
        entries = [entry for entry, _ in self.outputs]
        if not op and not (entries and all(entry.ellipsis for entry in entries)):
            return
        if any(entry.written and not entry.ellipsis for entry in entries):
            return  # each slice would add to what is there
        leading = [(entry, shape) for entry, shape in self.inputs if entry.ellipsis]
        if not leading:  # only an absent tensor has it
            return
        first, shape = leading[0]
        for axis in range(len(shape) - len(first.dimensions)):
            inputs, outputs = (
                [axis if entry.ellipsis else None for entry, _ in rows]
                for rows in (self.inputs, self.outputs)
            )
            yield split(f"...{axis}", inputs, outputs, op=op, size=shape[axis])

    def strategy(self, name: str) -> AxisStrategy | None:
        """Return the strategy that splits a named dimension, or None if an output does not allow it."""
        op = self.dims.reductions.get(name, "")
        inputs = [_axis(entry, name, shape) for entry, shape in self.inputs]
        outputs = [_output_axis(entry, name, shape) for entry, shape in self.outputs]
        for axis, (entry, _) in zip(outputs, self.outputs, strict=True):
            if axis is None and (not op or entry.written or name in entry.names()):
                return None  # it is the same for every slice, or another size than the slice's
        sizes = _sizes(inputs, self.inputs)
        if not sizes:  # only an absent tensor has it
            return None
        size, lengths = sizes[0], {*_sizes(outputs, self.outputs)}
        if len(lengths) > 1 or (lengths and name not in self.dims.halo and lengths != {size}):
            return None  # devices would need slices of different lengths
        halo = self._halo(name)
        return split(name, inputs, outputs, op=op, size=size, halo=halo)

    def _halo(self, name: str) -> tuple[int, int]:
        if name not in self.dims.halo:
            return 0, 0
        shapes: Any = [shape for _, shape in self.inputs]
        sizes: dict[str, Any] = {}
        for entry, shape in zip((entry for entry, _ in self.inputs), shapes, strict=True):
            for number, size in enumerate(entry.dimensions, len(shape) - len(entry.dimensions)):
                if isinstance(size, Name):
                    sizes[size.name] = shape[number]
        return self.dims.halo_widths(name, sizes, self.attributes)


def _sizes(axes: Sequence[int | None], rows: Sequence[tuple[Entry, tuple[Any, ...]]]) -> list[Any]:
    return [shape[axis] for axis, (_, shape) in zip(axes, rows, strict=True) if axis is not None]


def _axis(entry: Entry, name: str, shape: tuple[Any, ...]) -> int | None:
    axis = entry.axis(name)
    return None if axis is None else len(shape) + axis


def _output_axis(entry: Entry, name: str, shape: tuple[Any, ...]) -> int | None:
    """Return the axis whose size is the dimension, or the dimension and something that is no part of it."""
    for position, size in enumerate(entry.dimensions, len(shape) - len(entry.dimensions)):
        if size == Name(name) or _is_shifted(size, name):
            return position
    return None


def _is_shifted(size: Expression | None, name: str) -> bool:
    """Whether a size is the dimension plus or minus other sizes: ``n-k+1``."""
    if size == Name(name):
        return True
    if not isinstance(size, Binary) or size.operator not in "+-":
        return False
    left, right = name in names_in(size.left), name in names_in(size.right)
    if left and not right:
        return _is_shifted(size.left, name)
    return right and not left and size.operator == "+" and _is_shifted(size.right, name)


def elementwise_strategies(inputs: Sequence[Spec], outputs: Sequence[Spec]) -> Iterator[AxisStrategy]:
    """Yield a strategy for each dimension of an elementwise call, whose operands broadcast as in NumPy."""
    shapes = [spec.shape for spec in inputs]
    rank = max(map(len, shapes), default=0)
    aligned = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    whole = tuple(max(sizes, key=lambda size: size != 1) for sizes in zip(*aligned, strict=True))
    if not outputs or any(tuple(spec.shape) != whole for spec in outputs):
        return
    for axis, size in enumerate(whole):
        if not all(row[axis] in (1, size) for row in aligned):
            return
    for axis, size in enumerate(whole):
        axes = [
            axis - (rank - len(shape)) if row[axis] == size and axis >= rank - len(shape) else None
            for row, shape in zip(aligned, shapes, strict=True)
        ]
        yield split(f"...{axis}", axes, itertools.repeat(axis, len(outputs)), size=size)  # type: ignore[arg-type]
