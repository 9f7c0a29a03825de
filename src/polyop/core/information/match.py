"""Match the tensors of a call with the rows of operator information, and say why none matches.

Each row has one column per input, then one per output. A column is about one tensor, or about a list of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from ..spec import Spec
from .from_dictionaries import Cell, TensorInfo

TensorArgument: TypeAlias = Spec | Sequence[Spec | None] | None
"""An input or output of a call: a tensor, a list of tensors, or an absent tensor."""

Row: TypeAlias = tuple[Cell, ...]

DENSE = ("", "DefaultFormat", "ND", "NCHW", "NCDHW")
"""The formats whose data are row-major in the order of the shape, as all of polyop's tensors are."""

_ROWS_SHOWN = 8


class Place(NamedTuple):
    """A tensor of the call, and the column of the rows that is about it."""

    column: int
    spec: Spec


def labels(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> list[str]:
    """Return the name of each column, for messages."""
    return [
        f"{kind} {position}" + (f" {info.name!r}" if info.name else "")
        for kind, infos in (("input", inputs), ("output", outputs))
        for position, info in enumerate(infos)
    ]


def input_places(
    infos: Sequence[TensorInfo], inputs: Sequence[TensorArgument], uncovered: int
) -> list[Place] | str:
    """Return the place of each input tensor, or why the inputs are not as declared.

    The last ``uncovered`` inputs are attributes of type tensor, which have no column.
    """
    count = len(infos) + uncovered
    if len(inputs) != count:
        return f"the operator information has {count} inputs, and the call has {len(inputs)}"
    for label, info, value in zip(labels(infos, ()), infos, inputs):  # noqa: B905 - attributes follow
        if value is None and info.param_type != "optional":
            return f"{label} is {info.param_type}, and the call has none"
        if not isinstance(value, Spec) and value is not None and info.param_type != "dynamic":
            return f"{label} is one tensor, and the call has a list of {len(value)}"
    return _places(inputs[: len(infos)], 0)


def output_places(
    infos: Sequence[TensorInfo], outputs: Sequence[TensorArgument], first: int
) -> list[Place] | str:
    """Return the place of each output tensor, from column ``first`` on, or why their number is wrong.

    An output that is a list may be passed as separate outputs: those that the others leave over.
    """
    lists = [i for i, info in enumerate(infos) if info.param_type == "dynamic"]
    grouped = list(outputs)
    if len(grouped) != len(infos):
        length = len(grouped) - len(infos) + 1
        if len(lists) != 1 or length < 0:
            return f"the operator information has {len(infos)} outputs, and the call has {len(grouped)}"
        start = lists[0]
        group = [spec for spec in grouped[start : start + length] if isinstance(spec, Spec)]
        grouped[start : start + length] = [group]
    return _places(grouped, first)


def _places(values: Sequence[TensorArgument], first: int) -> list[Place]:
    places = []
    for column, value in enumerate(values, first):
        specs = [value] if isinstance(value, Spec) else value or ()
        places += [Place(column, spec) for spec in specs if spec is not None]
    return places


def rows_with_dtypes(rows: Sequence[Row], places: Sequence[Place]) -> list[Row]:
    """Return the rows that have the dtypes of these tensors."""
    return [row for row in rows if all(row[column].dtype in ("", spec.dtype.name) for column, spec in places)]


def is_dense(row: Row) -> bool:
    """Whether every cell has a format of dense, row-major tensors."""
    return all(cell.format in DENSE for cell in row)


def refuse(rows: Sequence[Row], places: Sequence[Place], names: Sequence[str]) -> str | None:
    """Return why no row matches the tensors, or None if one does; ``names`` are the names of the columns."""
    candidates = rows_with_dtypes(rows, places)
    if not candidates:
        return _dtype_reason(rows, places, names)
    if any(map(is_dense, candidates)):
        return None
    column, cell = next((i, cell) for i, cell in enumerate(candidates[0]) if cell.format not in DENSE)
    return (
        f"{names[column]} must have the format {cell.format}, and polyop's tensors are "
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
