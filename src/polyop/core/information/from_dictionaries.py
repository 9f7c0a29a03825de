"""Read the parts of operator information from dictionaries, and check them. The input is never changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..dtypes import dtype
from ..errors import ArgumentTypeError, InformationError
from ..limits import is_text, oversize, read_json, shown
from ..schema import MISSING
from .attribute_types import VALUE_TYPES, freeze, parse_default, schema_type, typed, value_type_of

TENSOR_PARAM_TYPES = ("required", "dynamic", "optional")
ATTRIBUTE_PARAM_TYPES = ("required", "optional")

TARGETS = ("Ascend", "GPU", "CPU")
_UNSET = (None, "", "UnKnown")
_TARGET_OF = (  # keys that imply a target if none is set; the first one that does decides
    ("processor", {"AiCore": "Ascend", "CUDA": "GPU", "CPU": "CPU"}),
    ("imply_type", {"TBE": "Ascend", "AiCPU": "Ascend", "GPU": "GPU", "CPU": "CPU"}),
)
_TARGET_OF_FUNC_TYPE = {"tbe": "Ascend", "pyfunc": "CPU"}

_TENSOR_KEYS = ("index", "name", "paramType", "param_type")
_ATTRIBUTE_KEYS = (
    "name", "paramType", "param_type", "type", "value_type", "defaultValue", "default_value", "value",
)  # fmt: skip


class Cell(NamedTuple):
    """What one row accepts in one column. An empty dtype is any; ``container`` is "", "tuple" or "list"."""

    dtype: str
    format: str
    container: str = ""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output. ``param_type`` is "required", "dynamic" (a list of tensors) or "optional"."""

    index: int | None
    name: str
    param_type: str = "required"
    extra: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class AttributeInfo:
    """An attribute. With a ``value`` it is a constant, without one an argument of the call."""

    name: str
    param_type: str
    value_type: str
    default: Any = MISSING
    value: Any = MISSING
    extra: tuple[tuple[str, Any], ...] = ()

    @property
    def schema_type(self) -> str:
        """The type of the argument in a schema: ``float[]`` for ``listFloat``."""
        return str(schema_type(self.value_type))


def dictionaries(reg_info: Any, subject: str) -> Iterator[Mapping[str, Any]]:
    """Yield the dictionaries in a dictionary, its JSON text, or lists of these at any depth.

    Raises ``ArgumentTypeError`` for another type, and ``InformationError`` for a text that is no JSON and for
    a value that is too deep or too large (:func:`polyop.core.limits.oversize`).
    """
    problem = oversize(reg_info)
    if problem is not None:
        hint = "a dictionary for each target, in one list, is enough"
        raise InformationError(subject, f"the registration information is too large: {problem}", hint=hint)
    yield from _dictionaries(reg_info, subject)


def _dictionaries(reg_info: Any, subject: str) -> Iterator[Mapping[str, Any]]:
    if isinstance(reg_info, Mapping):
        yield _checked(reg_info, subject)
        return
    if isinstance(reg_info, (list, tuple)):
        for item in reg_info:
            yield from _dictionaries(item, subject)
        return
    if isinstance(reg_info, str):
        try:
            value = read_json(reg_info)
        except ValueError as problem:
            rule = f"the registration information must be JSON when it is a text ({problem})"
            raise InformationError(subject, rule, shown(reg_info[:80])) from None
        if not isinstance(value, str):
            yield from _dictionaries(value, subject)
            return
    hint = "pass what its get_op_info() returns" if hasattr(reg_info, "get_op_info") else None
    seen = f"{shown(reg_info)} ({type(reg_info).__name__})"
    raise ArgumentTypeError(subject, "the registration information must be of type dict", seen, hint=hint)


def _checked(info: Mapping[Any, Any], subject: str) -> Mapping[str, Any]:
    """Return the information if all keys in it are strings, and UTF-8 and C can represent all strings."""
    stack: list[Any] = [info]
    while stack:
        value = stack.pop()
        if isinstance(value, Mapping):
            for key in value:
                if not isinstance(key, str):
                    rule = "every key of the registration information must be a text"
                    raise InformationError(subject, rule, f"{shown(key)} ({type(key).__name__})")
            stack += [*value, *value.values()]
        elif isinstance(value, (list, tuple)):
            stack += value
        elif isinstance(value, str) and not is_text(value):
            rule = "a text in the registration information must be one that UTF-8 and C can hold"
            raise InformationError(subject, rule, shown(value), hint="remove NULs and lone surrogates")
    return info


def target_of(info: Mapping[str, Any], func_type: str, subject: str) -> str:
    """Return the target: the one that is set, else the one that processor, imply_type or func_type imply.

    Raises ``InformationError`` if there is none, or if the value is no target.
    """
    target = info.get("target")
    if target in TARGETS:
        return str(target)
    if target in _UNSET:
        implied = [table.get(text_of(info, key, subject) or "") for key, table in _TARGET_OF]
        for candidate in (*implied, _TARGET_OF_FUNC_TYPE.get(func_type)):
            if candidate is not None:
                return candidate
    rule = f"target set in registration information must be one of {list(TARGETS)}"
    raise InformationError(subject, rule, shown(target), hint='set it with CustomRegOp().target("CPU")')


def text_of(info: Mapping[str, Any], key: str, subject: str) -> str | None:
    """Return the text of a key, or None if the key is absent; raises ``InformationError`` for other types."""
    return _text(info, (key,), f"{subject}: registration information")


def read_tensors(info: Mapping[str, Any], key: str, subject: str) -> tuple[TensorInfo, ...]:
    """Return the inputs or outputs (``key``), in the order in which they are listed.

    Raises ``InformationError`` for a wrong type, and for indices in another order.
    """
    tensors = []
    for position, item in enumerate(_items(info, key, subject)):
        where = f"{subject}: registration information, {key}[{position}]"
        index = item.get("index")
        if index is not None and (not isinstance(index, int) or isinstance(index, bool)):
            raise InformationError(where, "the index must be an int", shown(index))
        if index is not None and index not in range(2**31):
            raise InformationError(where, "the index must be the number of an argument", shown(index))
        name = _text(item, ("name",), where) or ""
        param_type = _one_of(item, TENSOR_PARAM_TYPES, where)
        tensors.append(TensorInfo(index, name, param_type, _rest(item, _TENSOR_KEYS)))
    indices = [tensor.index for tensor in tensors if tensor.index is not None]
    if len(set(indices)) == len(indices) and indices != sorted(indices):
        rule = f"the {key} must be listed in the order of their indices"
        raise InformationError(f"{subject}: registration information", rule, indices)
    return tuple(tensors)


def read_attributes(info: Mapping[str, Any], func_type: str, subject: str) -> tuple[AttributeInfo, ...]:
    """Return the attributes, with their values converted to their value types.

    Raises ``InformationError`` for a missing or repeated name, an unknown value type, and a value or default
    of another type.
    """
    attributes: dict[str, AttributeInfo] = {}
    for position, item in enumerate(_items(info, "attr", subject)):
        where = f"{subject}: registration information, attr[{position}]"
        name = _text(item, ("name",), where)
        if not name:
            raise InformationError(where, "an attribute must have a name")
        where += f" {name!r}"
        if name in attributes:
            raise InformationError(where, "the name is that of another attribute")
        attributes[name] = _attribute(name, item, func_type, where)
    return tuple(attributes.values())


def _attribute(name: str, item: Mapping[str, Any], func_type: str, where: str) -> AttributeInfo:
    value = MISSING if item.get("value") is None else item["value"]
    value_type = _text(item, ("type", "value_type"), where) or value_type_of(value)
    if value_type not in VALUE_TYPES:
        raise InformationError(where, f"the value type must be one of {', '.join(VALUE_TYPES)}", value_type)
    if isinstance(value, str) and value == "all" and (value_type != "str" or func_type == "tbe"):
        value = MISSING  # MindSpore's TBE builders write "all" for an attribute that the call passes
    default = item.get("defaultValue", item.get("default_value"))
    if value is not MISSING:
        if value_type == "tensor":
            raise InformationError(where, "a tensor cannot be a constant", hint="pass it in the call")
        value = typed(value_type, value, where)
    return AttributeInfo(
        name,
        _one_of(item, ATTRIBUTE_PARAM_TYPES, where),
        value_type,
        MISSING if default is None else parse_default(value_type, default, where),
        value,
        _rest(item, _ATTRIBUTE_KEYS),
    )


def read_rows(info: Mapping[str, Any], width: int, subject: str) -> tuple[tuple[Cell, ...], ...]:
    """Return the dtype and format rows, ``width`` cells each; raises ``InformationError``."""
    where = f"{subject}: registration information, dtype_format"
    rows = info.get("dtype_format") or ()
    if not _is_list(rows) or not all(map(_is_list, rows)):
        raise InformationError(where, "must be a list of rows", shown(rows))
    for number, row in enumerate(rows):
        if len(row) != width:
            rule = f"row {number} must have one cell per input and output, {width}"
            raise InformationError(where, rule, len(row))
    return tuple(
        tuple(_cell(cell, f"{where}, row {number}") for cell in row) for number, row in enumerate(rows)
    )


def _cell(cell: Any, where: str) -> Cell:
    if not _is_list(cell) or len(cell) not in (2, 3) or not all(isinstance(part, str) for part in cell):
        raise InformationError(
            where, "a cell must be two or three texts: dtype, format, tuple or list", shown(cell)
        )
    parsed = Cell(*cell)
    if parsed.container not in ("", "tuple", "list"):
        raise InformationError(where, "the third text of a cell must be 'tuple' or 'list'", shown(cell))
    try:
        return parsed._replace(dtype=dtype(parsed.dtype).name) if parsed.dtype else parsed
    except ArgumentTypeError as problem:
        raise InformationError(where, str(problem)) from None


def _items(info: Mapping[str, Any], key: str, subject: str) -> Sequence[Mapping[str, Any]]:
    items = info.get(key) or ()
    if not _is_list(items) or not all(isinstance(item, Mapping) for item in items):
        where = f"{subject}: registration information, {key}"
        raise InformationError(where, "must be a list of dictionaries", shown(items))
    return tuple(items)


def _text(item: Mapping[str, Any], keys: Sequence[str], where: str) -> str | None:
    for key in keys:
        value = item.get(key)
        if value is not None and not isinstance(value, str):
            raise InformationError(where, f"{key} must be a text", shown(value))
        if value is not None:
            return value
    return None


def _one_of(item: Mapping[str, Any], allowed: tuple[str, ...], where: str) -> str:
    value = _text(item, ("paramType", "param_type"), where) or "required"
    if value not in allowed:
        raise InformationError(where, f"the param_type must be one of {', '.join(allowed)}", shown(value))
    return value


def _rest(item: Mapping[str, Any], used: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((str(key), freeze(value)) for key, value in item.items() if key not in used))


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))
