"""Which dimensions of a call may be split over devices: those that ``dims=`` claims.

Each axis of each tensor gets a name. Axes with one name have one size, and are split alike:

    dims="b i, i o -> b o", parallel="b o"     d0 r0, r1 d1 -> d0 d1
    "elementwise", broadcast (2, 3) and (3,)   d0 d1, d1 -> d0 d1

An axis that has to be whole has a name of its own (``r0``), so that it is replicated.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec

from ...core.dims.dims import Dims
from ...core.dims.entry import Entry
from ...rules.elementwise import ElementwiseBatch
from .site import Site

Names = tuple[str, ...]
Shapes = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class CallDimensions:
    """The names of the axes of each flat operand and output; those in ``parallel`` may be split."""

    inputs: tuple[Names, ...]
    outputs: tuple[Names, ...]
    parallel: frozenset[str]

    @property
    def are_equal(self) -> bool:
        """Whether all tensors have the same dimensions, and all of these may be split."""
        first = self.outputs[0]
        return self.parallel.issuperset(first) and all(x == first for x in (*self.inputs, *self.outputs))

    def specs(self, axes: Mapping[str, Any]) -> list[PartitionSpec]:
        """Return how each operand, then each output is split; ``axes`` has the mesh axes of dimensions."""
        split = {name: axes[name] for name in self.parallel if name in axes}
        return [PartitionSpec(*map(split.get, names)) for names in (*self.inputs, *self.outputs)]

    def rule(self) -> str:
        """Return Shardy's rule of the call.

        >>> elementwise_dimensions([(2, 3), (3,), (2, 1)], [(2, 3)]).rule()
        'd0 d1, d1, d0 r0 -> d0 d1'
        """
        sides = (", ".join(map(" ".join, names)) for names in (self.inputs, self.outputs))
        return " -> ".join(sides)

    def replicated(self) -> Names:
        """Return the names of the axes that have to be whole, in the order of the rule."""
        names = itertools.chain(*self.inputs, *self.outputs)
        return tuple(dict.fromkeys(name for name in names if name not in self.parallel))


def dimensions_of(site: Site, flat: Sequence[Any]) -> CallDimensions | None:
    """Return the dimensions of a call, or None if nothing is claimed of them or its sizes are symbols."""
    shapes = [tuple(x.shape) for x in flat]
    outputs = [tuple(output.shape) for output in site.outputs(flat)]
    if not all(isinstance(size, int) for shape in (*shapes, *outputs) for size in shape):
        return None
    if isinstance(site.operator.batch, ElementwiseBatch):
        return elementwise_dimensions(shapes, outputs)
    if site.operator.dims is None:
        return None
    return dims_dimensions(site.operator.dims, _entries(site, len(flat)), shapes, outputs)


def elementwise_dimensions(inputs: Shapes, outputs: Shapes) -> CallDimensions | None:
    """Return the dimensions of an elementwise call, whose operands broadcast as in NumPy."""
    try:
        whole = np.broadcast_shapes(*inputs)
    except ValueError:
        return None
    if any(output != whole for output in outputs):
        return None
    fresh = (f"r{number}" for number in itertools.count())

    def names(shape: tuple[int, ...]) -> Names:
        rows = enumerate(shape, len(whole) - len(shape))
        return tuple(f"d{number}" if size == whole[number] else next(fresh) for number, size in rows)

    parallel = frozenset(f"d{number}" for number in range(len(whole)))
    return CallDimensions(tuple(map(names, inputs)), tuple(map(names, outputs)), parallel)


def dims_dimensions(
    dims: Dims, entries: Sequence[Entry], inputs: Shapes, outputs: Shapes
) -> CallDimensions | None:
    """Return the dimensions of a call by ``dims``; ``entries`` has one for each flat operand.

    None if no dimension of the outputs may be split.
    """
    written = [entry for entry in entries if entry.written]
    fresh_entries = dims.outputs
    if any(entry.each for entry in fresh_entries):  # a list is the only new output
        fresh_entries = fresh_entries[:1] * (len(outputs) - len(written))
    results = (*fresh_entries, *written)
    names = {name: f"d{number}" for number, name in enumerate(dims.parallel) if name != "..."}
    names = {name: label for name, label in names.items() if _splits(name, (*entries, *results))}
    mapped = bool(results) and all(entry.ellipsis for entry in results)
    fresh = (f"r{number}" for number in itertools.count())

    def axes(entry: Entry, shape: tuple[int, ...]) -> Names:
        leading = len(shape) - len(entry.dimensions)
        first = [f"e{number}" if mapped else next(fresh) for number in range(leading)]
        return (*first, *(names.get(str(size)) or next(fresh) for size in entry.dimensions))

    rows = [axes(*row) for row in zip((*entries, *results), (*inputs, *outputs), strict=True)]
    sizes: dict[str, int] = {}
    for name, size in itertools.chain(*map(zip, rows, (*inputs, *outputs))):
        if sizes.setdefault(name, size) != size:
            return None
    count = len(entries)
    parallel = frozenset(name for name in itertools.chain(*rows[count:]) if not name.startswith("r"))
    return CallDimensions(tuple(rows[:count]), tuple(rows[count:]), parallel) if parallel else None


def _splits(name: str, entries: Sequence[Entry]) -> bool:
    """Whether a dimension stands by itself in each entry that has it, and not in arithmetic."""
    return all(entry.axis(name) is not None for entry in entries if name in entry.names())


def _entries(site: Site, count: int) -> list[Entry]:
    """Return the entry of each flat operand of a call."""
    schema, dims = site.operator.schema, site.operator.dims
    assert dims is not None
    positions = site.by_argument(range(count))
    entries: dict[int, Entry] = {}
    for entry, position in zip(dims.inputs, schema.tensor_positions, strict=True):
        for flat_position in _flat(positions[position]):
            entries[flat_position] = entry
    return [entries[number] for number in range(count)]


def _flat(positions: Any) -> Iterator[int]:
    """Yield the positions of an argument: one, several for a list, none for an absent tensor."""
    each = positions if isinstance(positions, tuple) else (positions,)
    yield from (position for position in each if position is not None)
