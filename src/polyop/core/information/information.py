"""``Information``: the dtypes, formats, attributes and target for which an operator is registered."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..dtypes import DType, dtype
from ..errors import InformationError
from ..origin import Origin, caller
from ..schema import MISSING
from .attribute_types import freeze
from .from_dictionaries import (
    AttributeInfo,
    TensorInfo,
    dictionaries,
    read_attributes,
    read_rows,
    read_tensors,
    target_of,
    text_of,
)
from .match import (
    Place,
    Row,
    TensorArgument,
    input_places,
    is_dense,
    labels,
    output_places,
    refuse,
    rows_with_dtypes,
)

__all__ = ["AttributeInfo", "Information", "TensorArgument", "TensorInfo", "check_function", "check_required"]

_KEYS = ("op_name", "inputs", "outputs", "attr", "dtype_format", "target", "fusion_type")


@dataclass(frozen=True, slots=True)
class Information:
    """One registration, for one target. Immutable.

    ``rows`` are the combinations of dtypes and formats, with one cell per input and output. ``extra`` holds
    the keys that polyop does not use. ``op_name`` and ``origin`` do not count for equality.
    """

    op_name: str = field(compare=False)
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    attributes: tuple[AttributeInfo, ...]
    rows: tuple[Row, ...]
    target: str
    fusion_type: str = "OPAQUE"
    extra: tuple[tuple[str, Any], ...] = ()
    origin: Origin | None = field(default=None, compare=False)

    @classmethod
    def from_any(cls, reg_info: Any, *, subject: str, func_type: str) -> tuple[Information, ...]:
        """Return one information per dictionary in ``reg_info``, which is not changed.

        ``reg_info`` is a dictionary, its JSON text, or a list or tuple of these.

        >>> info = {"op_name": "f", "inputs": [{"index": 0}], "target": "CPU"}
        >>> Information.from_any([info], subject="f", func_type="aot")[0].target
        'CPU'

        Raises ``ArgumentTypeError`` for another type, ``InformationError`` for a dictionary that is wrong or
        contradicts itself.
        """
        return tuple(_read(info, func_type, subject) for info in dictionaries(reg_info, subject))

    @property
    def constants(self) -> tuple[AttributeInfo, ...]:
        """The attributes whose value is part of the information."""
        return tuple(a for a in self.attributes if a.value is not MISSING)

    @property
    def call_attributes(self) -> tuple[AttributeInfo, ...]:
        """The attributes that a call passes after the tensors, in this order."""
        return tuple(a for a in self.attributes if a.value is MISSING)

    @property
    def multi_output(self) -> bool:
        """Whether a call returns a tuple: there are several outputs, or one that is a list of tensors."""
        return len(self.outputs) > 1 or any(output.param_type == "dynamic" for output in self.outputs)

    def refuse(self, inputs: Sequence[TensorArgument], outputs: Sequence[TensorArgument] = ()) -> str | None:
        """Return why the operator is not registered for these tensors, or None if it is.

        One row must match all tensors. Without ``outputs`` only the inputs are compared. Information without
        rows, or without inputs, accepts all dtypes.
        """
        places = self._places(inputs, outputs)
        if isinstance(places, str):
            return places
        if not self.rows or (inputs and not self.inputs):
            return None
        return refuse(self.rows, places, labels(self.inputs, self.outputs))

    def output_dtypes(self, inputs: Sequence[TensorArgument]) -> tuple[DType, ...] | None:
        """Return one dtype per output, from the rows that match these inputs.

        None if no row matches, if the rows disagree, and if a row leaves the dtype of an output open.
        """
        places = self._places(inputs, ())
        if isinstance(places, str) or (inputs and not self.inputs):
            return None
        rows = [row for row in rows_with_dtypes(self.rows, places) if is_dense(row)]
        outputs = {tuple(cell.dtype for cell in row[len(self.inputs) :]) for row in rows}
        names = outputs.pop() if len(outputs) == 1 else ()
        return tuple(map(dtype, names)) if names and all(names) else None

    def _places(
        self, inputs: Sequence[TensorArgument], outputs: Sequence[TensorArgument]
    ) -> list[Place] | str:
        """Return each tensor with its column, or why the numbers of tensors are wrong."""
        all_places: list[Place] = []
        if self.inputs:
            tensors = sum(a.value_type == "tensor" for a in self.call_attributes)
            places = input_places(self.inputs, inputs, tensors)
            if isinstance(places, str):
                return places
            all_places += places
        if self.outputs and outputs:
            places = output_places(self.outputs, outputs, len(self.inputs))
            if isinstance(places, str):
                return places
            all_places += places
        return all_places


def _read(info: Mapping[str, Any], func_type: str, subject: str) -> Information:
    inputs, outputs = (read_tensors(info, key, subject) for key in ("inputs", "outputs"))
    rows = read_rows(info, len(inputs) + len(outputs), subject)
    tensors = [_with_container(*pair, rows, subject) for pair in enumerate((*inputs, *outputs))]
    return Information(
        op_name=text_of(info, "op_name", subject) or "Custom",
        inputs=tuple(tensors[: len(inputs)]),
        outputs=tuple(tensors[len(inputs) :]),
        attributes=read_attributes(info, func_type, subject),
        rows=rows,
        target=target_of(info, func_type, subject),
        fusion_type=text_of(info, "fusion_type", subject) or "OPAQUE",
        extra=tuple(sorted((str(key), freeze(value)) for key, value in info.items() if key not in _KEYS)),
        origin=caller(),
    )


def _with_container(column: int, tensor: TensorInfo, rows: Sequence[Row], subject: str) -> TensorInfo:
    """Return the tensor, as a list of tensors if the rows have a tuple or a list in its column."""
    containers = {bool(row[column].container) for row in rows}
    if len(containers) > 1:
        rule = f"the rows disagree whether column {column} is one tensor or a list of them"
        raise InformationError(f"{subject}: registration information, dtype_format", rule)
    return dataclasses.replace(tensor, param_type="dynamic") if True in containers else tensor


def check_function(
    information: Information,
    n_inputs: int | None,
    n_outputs: int | None,
    attribute_names: Sequence[str] | None,
    subject: str,
    where: Any = None,
) -> None:
    """Check that the information fits the function's inputs, outputs and attributes. None means unknown.

    Information without inputs or without outputs fits any number of them. An output that is a list of tensors
    counts as any number of outputs.

    Raises ``InformationError`` with both numbers or names, and both places.
    """
    open_ended = any(output.param_type == "dynamic" for output in information.outputs)
    origins = ((where, "function"), (information.origin, "information"))
    places = ", ".join(f"{place} (the {owner})" for place, owner in origins if place is not None)
    for kind, declared, count in (
        ("inputs", len(information.inputs), n_inputs),
        ("outputs", len(information.outputs), None if open_ended else n_outputs),
    ):
        if declared and count is not None and declared != count:
            rule = f"the registration information has {declared} {kind}, and the function must have as many"
            raise InformationError(subject, rule, count, where=places)
    if attribute_names is None:
        return
    names = [attribute.name for attribute in information.attributes]
    if sorted(names) != sorted(attribute_names):
        rule = f"the registration information has the attributes {names}, and the function must have the same"
        raise InformationError(subject, rule, list(attribute_names), where=places)


_REQUIRED_FOR = {  # kind of kernel that needs information -> whether also without attributes, why
    "tbe": (True, "a tbe function is compiled for the dtypes and formats that it says"),
    "aicpu": (True, "it names the library that the kernel is in"),
    "akg": (False, "it says in which order the attributes of a loop kernel are passed"),
    "hybrid": (False, "it says in which order the attributes of a loop kernel are passed"),
}


def check_required(
    func_type: str,
    information: Sequence[Information],
    attribute_names: Sequence[str],
    subject: str,
    where: Any = None,
) -> None:
    """Check that there is information if the kind of kernel needs it.

    Kernels for tbe and aicpu always need it; the loop kernels akg and hybrid need it if they have attributes.
    Raises ``InformationError``.
    """
    always, why = _REQUIRED_FOR.get(func_type, (False, ""))
    if information or not why or not (always or attribute_names):
        return
    seen = None if always else f"the attributes {list(attribute_names)}"
    rule = f"the registration information must be set for {func_type} kernels" + (
        "" if always else " with attributes"
    )
    raise InformationError(
        subject, rule, seen, where=where, hint=f"{why}: give reg_info, or @custom_info_register"
    )
