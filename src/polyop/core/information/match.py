"""Comparing tensors with the rows of operator information; every refusal has its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from ..spec import Spec
from .parts import Cell, TensorInfo

Given: TypeAlias = Spec | Sequence[Spec | None] | None
"""What is in one place of a call: a tensor, a list of tensors, or nothing."""

Row: TypeAlias = tuple[Cell, ...]

DENSE = ("", "DefaultFormat", "ND", "NCHW", "NCDHW")
"""The formats whose data lie row-major in the order of the shape, as all data here do."""

_ROWS_SHOWN = 8


class Place(NamedTuple):
    """A tensor of the call and the column of the rows that is about it."""

    column: int
    spec: Spec


def labels(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> list[str]:
    """Return the name of each column for messages."""
    return [
        f"{kind} {position}" + (f" {info.name!r}" if info.name else "")
        for kind, infos in (("input", inputs), ("output", outputs))
        for position, info in enumerate(infos)
    ]


def input_places(infos: Sequence[TensorInfo], inputs: Sequence[Given], uncovered: int) -> list[Place] | str:
    """Return the place of each input tensor, or why the inputs do not have the declared form.

    ``uncovered`` tensors after the inputs are attributes, which no column is about.
    """
    wanted = len(infos) + uncovered
    if len(inputs) != wanted:
        return f"the operator information has {wanted} inputs, and the call has {len(inputs)}"
    for label, info, given in zip(labels(infos, ()), infos, inputs):  # noqa: B905 - attributes follow
        if given is None and info.param_type != "optional":
            return f"{label} is {info.param_type}, and the call has none"
        if not isinstance(given, Spec) and given is not None and info.param_type != "dynamic":
            return f"{label} is one tensor, and the call has a list of {len(given)}"
    return _places(inputs[: len(infos)], 0)


def output_places(infos: Sequence[TensorInfo], outputs: Sequence[Given], first: int) -> list[Place] | str:
    """Return the place of each output tensor, from column ``first`` on, or why they are too many or few.

    Outputs may come in a flat list: the ones that others leave over are those of a list.
    """
    lists = [i for i, info in enumerate(infos) if info.param_type == "dynamic"]
    shared = list(outputs)
    if len(shared) != len(infos):
        over = len(shared) - len(infos) + 1
        if len(lists) != 1 or over < 0:
            return f"the operator information has {len(infos)} outputs, and the call has {len(shared)}"
        start = lists[0]
        group = [spec for spec in shared[start : start + over] if isinstance(spec, Spec)]
        shared[start : start + over] = [group]
    return _places(shared, first)


def _places(given: Sequence[Given], first: int) -> list[Place]:
    found = []
    for column, value in enumerate(given, first):
        specs = [value] if isinstance(value, Spec) else value or ()
        found += [Place(column, spec) for spec in specs if spec is not None]
    return found


def fitting(rows: Sequence[Row], places: Sequence[Place]) -> list[Row]:
    """Return the rows that have these dtypes."""
    return [row for row in rows if all(row[column].dtype in ("", spec.dtype.name) for column, spec in places)]


def dense(row: Row) -> bool:
    """Whether every cell has a format that tensors here are in."""
    return all(cell.format in DENSE for cell in row)


def refuse(rows: Sequence[Row], places: Sequence[Place], names: Sequence[str]) -> str | None:
    """Return why no row takes the places, or None when one does; ``names`` are the columns'."""
    found = fitting(rows, places)
    if not found:
        return _dtype_reason(rows, places, names)
    if any(map(dense, found)):
        return None
    column, cell = next((i, cell) for i, cell in enumerate(found[0]) if cell.format not in DENSE)
    return (
        f"{names[column]} is wanted in format {cell.format}, and tensors here are "
        f"dense and row-major ({', '.join(DENSE[1:])})"
    )


def _dtype_reason(rows: Sequence[Row], places: Sequence[Place], names: Sequence[str]) -> str:
    for column, spec in places:
        allowed = list(dict.fromkeys(row[column].dtype for row in rows))
        if "" not in allowed and spec.dtype.name not in allowed:
            return f"{names[column]} must be {' or '.join(allowed)}, and is {spec.dtype}"
    seen = ", ".join(str(spec.dtype) for _, spec in places)
    shown = ", ".join(f"({', '.join(cell.dtype or 'any' for cell in row)})" for row in rows[:_ROWS_SHOWN])
    more = f" and {len(rows) - _ROWS_SHOWN} more" if len(rows) > _ROWS_SHOWN else ""
    return f"no row of the operator information has ({seen}); the rows are {shown}{more}"
