"""The data classes of a parsed ``REG_OP``: a prototype, its inputs, outputs and attributes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..core.origin import Origin
from ..core.schema import MISSING
from .vocabulary import ATTRIBUTE_TYPES, TENSOR_MACROS, AttributeType


class DTypeName(str):
    """The name of a ``ge::DataType`` as the value of an attribute, as in ``.ATTR(dst, Type, DT_INT8)``."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Types:
    """The dtypes of a tensor: ``DT_...`` and named sets in ``names``, or the ``variable`` of a DATATYPE.

    ``sequence`` is True for ``ListTensorType``, False for ``TensorType``. ``str()`` is the text in a header.

    >>> str(Types(("DT_FLOAT", "BasicType"))), str(Types(("ALL",))), str(Types(variable="T"))
    ('TensorType({DT_FLOAT, BasicType()})', 'TensorType::ALL()', '"T"')
    """

    names: tuple[str, ...] = ()
    variable: str = ""
    sequence: bool = False

    @property
    def text(self) -> str:
        """The names as they are written in braces; empty for a single named set, and for a variable."""
        if not self.lists_dtypes:
            return ""
        return ", ".join(name if name.startswith("DT_") else f"{name}()" for name in self.names)

    @property
    def lists_dtypes(self) -> bool:
        """Whether the dtypes are a list, not a single named set."""
        return len(self.names) != 1 or self.names[0].startswith("DT_")

    def __str__(self) -> str:
        """Return the second argument of a macro such as INPUT."""
        if self.variable:
            return f'"{self.variable}"'
        inner = f"{{{self.text}}}" if self.lists_dtypes else f"TensorType::{self.names[0]}()"
        if self.sequence:
            return f"ListTensorType({inner})"
        return f"TensorType({inner})" if self.lists_dtypes else inner


@dataclass(frozen=True, slots=True)
class TensorItem:
    """An input or output; ``macro`` is one of INPUT, OPTIONAL_INPUT, ..., DYNAMIC_OUTPUT."""

    macro: str
    name: str
    types: Types

    @property
    def is_input(self) -> bool:
        """Whether it is an input."""
        return TENSOR_MACROS[self.macro][0] == "input"

    @property
    def kind(self) -> str:
        """``"required"``, ``"optional"`` or ``"dynamic"``: one tensor, at most one, or a list."""
        return TENSOR_MACROS[self.macro][1]


@dataclass(frozen=True, slots=True)
class AttributeItem:
    """An attribute. ``default`` is MISSING for REQUIRED_ATTR; lists are tuples, dtypes ``DTypeName``.

    Some types have values in C++ only (Tensor, AnyValue, ...). Their default is its source text.
    """

    name: str
    type: str
    default: Any = MISSING

    @property
    def row(self) -> AttributeType:
        """The row of its type in ``ATTRIBUTE_TYPES``."""
        return ATTRIBUTE_TYPES[self.type]

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING


@dataclass(frozen=True, slots=True)
class DatatypeItem:
    """A DATATYPE: the dtypes of the variable ``name``, which other items refer to."""

    name: str
    types: Types


@dataclass(frozen=True, slots=True)
class GraphItem:
    """A subgraph; ``macro`` is GRAPH or DYNAMIC_GRAPH."""

    macro: str
    name: str


Item = TensorItem | AttributeItem | DatatypeItem | GraphItem


@dataclass(frozen=True, slots=True)
class Prototype:
    """One REG_OP. ``items`` are in the order of the header; ``==`` does not compare ``origin``."""

    name: str
    items: tuple[Item, ...]
    origin: Origin | None = field(default=None, compare=False)

    @property
    def tensors(self) -> tuple[TensorItem, ...]:
        """Inputs and outputs, in order."""
        return tuple(item for item in self.items if isinstance(item, TensorItem))

    @property
    def inputs(self) -> tuple[TensorItem, ...]:
        """The inputs, in order."""
        return tuple(item for item in self.tensors if item.is_input)

    @property
    def outputs(self) -> tuple[TensorItem, ...]:
        """The outputs, in order."""
        return tuple(item for item in self.tensors if not item.is_input)

    @property
    def attributes(self) -> tuple[AttributeItem, ...]:
        """The attributes in the order of a graph: required ones first."""
        attributes = [item for item in self.items if isinstance(item, AttributeItem)]
        return tuple(sorted(attributes, key=lambda item: not item.required))

    @property
    def graphs(self) -> tuple[GraphItem, ...]:
        """The subgraphs, in order."""
        return tuple(item for item in self.items if isinstance(item, GraphItem))
