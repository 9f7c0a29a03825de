"""Compute what a call and its gradient move between devices, for each dimension that can be divided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..call.bound import BoundOperator
from ..core.errors import PolyopError
from ..core.spec import Spec
from ..core.texts import first_line
from ..sharding.communication import Communication, communication, layout_text
from .call import Called
from .units import amount
from .values import Table

DEVICES = 4
"""Devices of the mesh, where none is given."""
AXIS = "devices"


def tables(
    bound: BoundOperator, call: Called, mesh: Mapping[str, int] | None = None
) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """Return a table of what each way to divide the first input moves, and notes in words.

    The mesh is one axis of four devices, unless one is given. An operator of which nothing is known runs
    whole on each device: the notes say it.
    """
    axes = dict(mesh or {AXIS: DEVICES})
    axis = next(iter(axes))
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    for layouts, said in _ways(call, axis):
        try:
            found = communication(bound, axes, layouts, _given(call), "float32", None, call.own)
        except (PolyopError, NotImplementedError) as problem:
            notes.append(f"{said}: {first_line(problem)}")
            continue
        rows.append((said, *_row(found)))
        notes += found.notes
    if not rows:
        return (), tuple(dict.fromkeys(notes))
    size = ", ".join(f"{name}={count}" for name, count in axes.items())
    head = ("divided", "outputs", "forward moves", "gradient moves", "memory of a device")
    return (Table(f"On a mesh with {size}", head, tuple(rows)),), tuple(dict.fromkeys(notes))


def _given(call: Called) -> list[Any]:
    return list(call.given)


def _ways(call: Called, axis: str) -> Iterator[tuple[list[Any], str]]:
    """Yield layouts in which the axis divides one dimension of one tensor, and their description."""
    specs = call.given
    names = _names(call)
    for number, spec in enumerate(specs):
        if not isinstance(spec, Spec):  # an absent tensor, or a list of them
            continue
        for dimension in range(len(spec.shape)):
            row = tuple(axis if d == dimension else None for d in range(len(spec.shape)))
            layouts: list[Any] = [None] * len(specs)
            layouts[number] = row
            yield layouts, f"{names[number]}, dimension {dimension}"


def _names(call: Called) -> Sequence[str]:
    names = list(call.specs()) if call.typed is not None else []
    return names + [f"input {k}" for k in range(len(names), len(call.given))]


def _row(found: Communication) -> tuple[str, ...]:
    outputs = "; ".join(f"{t.name} {layout_text(t, found.mesh)}" for t in found.outputs)
    return (outputs, _moved(found.forward), _moved(found.backward), amount(found.memory, "B"))


def _moved(collectives: Sequence[Any]) -> str:
    if not collectives:
        return "nothing"
    parts = [f"{one.kind} of {one.tensor}, {amount(one.bytes, 'B')}" for one in collectives]
    return "; ".join(parts)
