"""Operator information: the dtypes, formats, attributes and target that an operator is registered for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .attribute_types import freeze
from .dtypes import DType, dtype
from .errors import InformationError
from .information_parts import (
    AttributeInfo,
    Cell,
    TensorInfo,
    dictionaries,
    read_attributes,
    read_rows,
    read_tensors,
    target_of,
)
from .origin import Origin, caller
from .schema import MISSING
from .spec import Spec

__all__ = ["AttributeInfo", "Cell", "Information", "TensorInfo", "agree", "need"]

Given: TypeAlias = Spec | Sequence[Spec] | None
"""What is in one place of the call: a tensor, a list of tensors, or nothing."""

DENSE = ("", "DefaultFormat", "ND", "NCHW", "NCDHW")
"""The formats whose data lie row-major in the order of the shape, as all data here do."""

_KEYS = ("op_name", "inputs", "outputs", "attr", "dtype_format", "target", "fusion_type")


@dataclass(frozen=True, slots=True)
class Information:
    """One registration: for one target, in immutable form.

    Two are equal when they say the same; their op_name, which registers nothing here, and
    the place where they were given do not count.
    """

    op_name: str = field(compare=False)
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    attributes: tuple[AttributeInfo, ...]
    rows: tuple[tuple[Cell, ...], ...]
    target: str
    fusion_type: str = "OPAQUE"
    extra: tuple[tuple[str, Any], ...] = ()
    origin: Origin | None = field(default=None, compare=False)

    @classmethod
    def from_any(cls, reg_info: Any, *, subject: str, func_type: str) -> tuple[Information, ...]:
        """Return one information per dictionary in ``reg_info``, which is left as it is.

        ``reg_info`` is a dictionary, its JSON text, or lists or tuples of these.

        >>> info = {"op_name": "f", "inputs": [{"index": 0}], "target": "CPU"}
        >>> Information.from_any([info], subject="f", func_type="aot")[0].target
        'CPU'

        Raises ``ArgumentTypeError`` for what is no dictionary, ``InformationError`` for one
        that contradicts itself.
        """
        return tuple(_read(info, func_type, subject) for info in dictionaries(reg_info, subject))

    @property
    def constants(self) -> tuple[AttributeInfo, ...]:
        """The attributes whose value the information gives."""
        return tuple(a for a in self.attributes if a.value is not MISSING)

    @property
    def call_attributes(self) -> tuple[AttributeInfo, ...]:
        """The attributes that a call passes after the tensors, in order."""
        return tuple(a for a in self.attributes if a.value is MISSING)

    @property
    def multi_output(self) -> bool:
        """Whether a call returns a tuple: several outputs, or one that is a list of tensors."""
        return len(self.outputs) > 1 or any(o.param_type == "dynamic" for o in self.outputs)

    def refuse(self, inputs: Sequence[Given], outputs: Sequence[Given] = ()) -> str | None:
        """Return why these tensors are outside the information, or None when they are not.

        Without ``outputs`` the inputs alone are looked at. Information without inputs or
        without rows takes any dtype.
        """
        places = self._places(inputs, outputs)
        if isinstance(places, str):
            return places
        if not self.rows or (inputs and not self.inputs):
            return None
        fitting = [row for row in self.rows if _fits(row, places)]
        if not fitting:
            return self._dtype_reason(places)
        strange = [_strange_cells(row) for row in fitting]
        if not all(strange):
            return None
        column, cell = strange[0][0]
        label = self._label(column)
        return f"{label} is wanted in format {cell.format}; tensors here are dense and row-major ({_DENSE})"

    def output_dtypes(self, inputs: Sequence[Given]) -> tuple[DType, ...] | None:
        """Return one dtype per output from the row that has these inputs.

        None when no row has them, or the rows that do leave a dtype open or disagree.
        """
        places = self._places(inputs, ())
        if isinstance(places, str) or not self.inputs:
            return None
        rows = [row for row in self.rows if _fits(row, places) and not _strange_cells(row)]
        found = {tuple(cell.dtype for cell in row[len(self.inputs) :]) for row in rows}
        names = found.pop() if len(found) == 1 else ()
        return tuple(map(dtype, names)) if names and all(names) else None

    def _places(self, inputs: Sequence[Given], outputs: Sequence[Given]) -> list[_Place] | str:
        """Return each tensor with its column, or why inputs and outputs are not so many or so formed."""
        found: list[_Place] = []
        if self.inputs:
            tensors = sum(a.value_type == "tensor" for a in self.call_attributes)
            if len(inputs) != len(self.inputs) + tensors:
                total = len(self.inputs) + tensors
                return f"the operator information has {total} inputs, and the call {len(inputs)}"
            inputs = inputs[: len(self.inputs)]
            for column, given in enumerate(inputs):
                reason = self._wrong_form(column, given)
                if reason is not None:
                    return reason
                found += [_Place(column, spec) for spec in _specs(given)]
        if outputs and self.outputs:
            shared = _share(self.outputs, outputs)
            if shared is None:
                return f"the operator information has {len(self.outputs)} outputs, and the call {len(outputs)}"
            for column, given in enumerate(shared, len(self.inputs)):
                found += [_Place(column, spec) for spec in _specs(given)]
        return found

    def _wrong_form(self, column: int, given: Given) -> str | None:
        label, param_type = self._label(column), self.inputs[column].param_type
        if given is None:
            return None if param_type == "optional" else f"{label} is {param_type}, and the call has none"
        if not isinstance(given, Spec) and param_type != "dynamic":
            return f"{label} is one tensor, and the call has a list of {len(given)}"
        return None

    def _label(self, column: int) -> str:
        kind, infos = ("input", self.inputs) if column < len(self.inputs) else ("output", self.outputs)
        position = column if kind == "input" else column - len(self.inputs)
        return f"{kind} {position}" + (f" {infos[position].name!r}" if infos[position].name else "")

    def _dtype_reason(self, places: Sequence[_Place]) -> str:
        for column, spec in places:
            allowed = list(dict.fromkeys(row[column].dtype for row in self.rows))
            if "" not in allowed and spec.dtype.name not in allowed:
                return f"{self._label(column)} must be {' or '.join(allowed)}, and is {spec.dtype}"
        seen = ", ".join(str(spec.dtype) for _, spec in places)
        rows = [", ".join(cell.dtype or "any" for cell in row) for row in self.rows]
        more = f" and {len(rows) - 8} more" if len(rows) > 8 else ""
        return f"no row of the operator information has ({seen}); the rows are ({'), ('.join(rows[:8])}){more}"


_DENSE = ", ".join(name for name in DENSE if name)

_Place: TypeAlias = "_PlaceTuple"


def _read(info: Mapping[str, Any], func_type: str, subject: str) -> Information:
    inputs, outputs = (read_tensors(info, key, subject) for key in ("inputs", "outputs"))
    rows = read_rows(info, len(inputs) + len(outputs), subject)
    tensors = [_as_list(*pair, rows, subject) for pair in enumerate((*inputs, *outputs))]
    return Information(
        op_name=str(info.get("op_name") or "Custom"),
        inputs=tuple(tensors[: len(inputs)]),
        outputs=tuple(tensors[len(inputs) :]),
        attributes=read_attributes(info, func_type, subject),
        rows=rows,
        target=target_of(info, func_type, subject),
        fusion_type=str(info.get("fusion_type") or "OPAQUE"),
        extra=tuple(sorted((str(key), freeze(value)) for key, value in info.items() if key not in _KEYS)),
        origin=caller(),
    )
