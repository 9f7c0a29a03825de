"""Make the REG_OP prototype of an operator, which a GE project starts from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

from ..call.operator import Operator
from ..call.padded import refuse_data_sizes
from ..core.dtypes import dtype
from ..core.errors import UnsupportedError
from ..core.information.information import Information
from ..core.schema import MISSING, Argument, Type
from .prototype import AttributeItem, DTypeName, Item, Prototype, TensorItem, Types
from .vocabulary import DTYPE_OF_GE

ATTRIBUTE_OF: dict[tuple[str, int], str] = {  # base type and list depth in a schema -> GE's type
    ("int", 0): "Int",       ("int", 1): "ListInt",       ("int", 2): "ListListInt",
    ("SymInt", 0): "Int",    ("SymInt", 1): "ListInt",    ("SymInt", 2): "ListListInt",
    ("float", 0): "Float",   ("float", 1): "ListFloat",   ("float", 2): "ListListFloat",
    ("bool", 0): "Bool",     ("bool", 1): "ListBool",     ("bool", 2): "ListListBool",
    ("str", 0): "String",    ("str", 1): "ListString",    ("str", 2): "ListListString",
    ("ScalarType", 0): "Type", ("ScalarType", 1): "ListType",
}  # fmt: skip
_INPUT_MACROS = {(): "INPUT", ("?",): "OPTIONAL_INPUT", ("[]",): "DYNAMIC_INPUT"}
_OUTPUT_MACROS = {(): "OUTPUT", ("[]",): "DYNAMIC_OUTPUT"}
_HINTS = {
    "Scalar": "say float or int in the schema",
    "complex": "pass the real and the imaginary part as two floats",
}
_ALL = Types(("ALL",))
_FLOAT_MAX = 3.4028235e38


def prototype_of(operator: Any, name: str | None = None) -> Prototype:
    """Return the prototype of an operator: inputs, outputs, then attributes.

    ``name`` is the name of the GE operator; the default is the schema's name in CamelCase. Dtypes
    come from the operator's information (the one for Ascend if there is one), else from its
    kernels; else all are allowed. A tensor that is written in place is an input and an output of
    the same name. Values fixed at definition become attributes with that default.

    >>> import polyop
    >>> schema = "doc::take_half(Tensor x, float k=0.5) -> Tensor"
    >>> half = polyop.operator(schema, lambda x, k: x * k, infer="x")
    >>> from polyop.graph.header import macros
    >>> print(macros(prototype_of(half)))
    REG_OP(TakeHalf)
        .INPUT(x, TensorType::ALL())
        .OUTPUT(y, TensorType::ALL())
        .ATTR(k, Float, 0.5)
        .OP_END_FACTORY_REG(TakeHalf)

    Raises ``UnsupportedError`` for what GE cannot hold, with the argument and what to do.
    """
    value: Operator = getattr(operator, "operator", operator)
    refuse_data_sizes(value, "a deployment graph needs sizes before the kernel runs")
    dtypes = _Dtypes(value)
    items: list[Item] = [*_inputs(value, dtypes), *_outputs(value, dtypes), *_attributes(value)]
    return Prototype(name or camel_case(value.schema.name), tuple(items), value.origin)


def camel_case(name: str) -> str:
    """Return ``AddCustom`` for ``add_custom``; torchair looks operators up by such names."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_") if part)


def _refuse(
    operator: Operator, what: str, rule: str, seen: object = None, hint: str | None = None
) -> NoReturn:
    raise UnsupportedError(f"{operator.name}: {what}", rule, seen, where=operator.origin, hint=hint)


class _Dtypes:
    """The dtypes of each tensor: a column of the information's rows, or what the kernels declare."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        all_rows = [info for info in operator.information if info.rows]
        ascend = [info for info in all_rows if info.target == "Ascend"]
        self.information: Sequence[Information] = ascend or all_rows

    def input(self, index: int) -> Types:
        registered = [info for info in self.information if index < len(info.inputs)]
        if registered:
            return self._of(cell for info in registered for cell in _column(info, index))
        return self._of(self._kernels())

    def output(self, index: int) -> Types:
        registered = [info for info in self.information if index < len(info.outputs)]
        if registered:
            return self._of(cell for info in registered for cell in _column(info, len(info.inputs) + index))
        position = getattr(self.operator.infer, "position", None)
        tensors = self.operator.schema.tensor_positions
        return self.input(tensors.index(position)) if position in tensors else _ALL

    def names(self, index: int, direction: str) -> str:
        """Return the name of a tensor in the information, or an empty text."""
        for info in self.operator.information:
            tensors = getattr(info, direction)
            if index < len(tensors) and tensors[index].name:
                return str(tensors[index].name)
        return ""

    def _kernels(self) -> list[str]:
        """Return the dtypes that kernels declare; an empty name stands for all."""
        names: list[str] = []
        for kernel in self.operator.kernels:
            if not kernel.declared_dtypes:
                return [""]
            names += [each.name for each in kernel.declared_dtypes]
        return names or [""]

    def _of(self, names: Iterable[str]) -> Types:
        unique = list(dict.fromkeys(names))
        if "" in unique:
            return _ALL
        for name in unique:
            if name not in DTYPE_OF_GE:
                rule = f"GE's dtypes are those of {', '.join(DTYPE_OF_GE)}"
                _refuse(self.operator, "dtypes", rule, name, "leave it out of dtypes or of the information")
        return Types(tuple(DTYPE_OF_GE[name] for name in unique))


def _column(info: Information, column: int) -> list[str]:
    return [row[column].dtype for row in info.rows]


def _plain(suffixes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("[]" if suffix.startswith("[") else suffix for suffix in suffixes)


def _inputs(operator: Operator, dtypes: _Dtypes) -> Iterator[Item]:
    schema = operator.schema
    for index, position in enumerate(schema.tensor_positions):
        argument = schema.arguments[position]
        macro = _INPUT_MACROS.get(_plain(argument.type.suffixes))
        if macro is None:
            rule = "GE has tensors, optional tensors and lists of tensors"
            _refuse(operator, f"argument {argument.name}", rule, argument.type)
        yield TensorItem(macro, argument.name, dtypes.input(index))


def _outputs(operator: Operator, dtypes: _Dtypes) -> Iterator[Item]:
    schema = operator.schema
    written = [argument.name for argument in schema.tensor_arguments if argument.type.writes]
    names = {argument.name for argument in schema.arguments}
    single = len(schema.fresh) == 1
    for index, result in enumerate(schema.returns):
        macro = _OUTPUT_MACROS.get(_plain(result.type.suffixes)) if result.type.is_tensor else None
        if macro is None:
            _refuse(operator, f"result {index}", "GE returns tensors and lists of tensors", result.type)
        if result.type.alias:
            name = schema.arguments[schema.alias_of(index)].name
            written = [other for other in written if other != name]
        else:
            name = (
                result.name or dtypes.names(index, "outputs") or _free("y" if single else f"y{index}", names)
            )
        yield TensorItem(macro, name, dtypes.output(index))
    for name in written:
        position = next(i for i, argument in enumerate(schema.arguments) if argument.name == name)
        argument = schema.arguments[position]
        macro = _OUTPUT_MACROS.get(_plain(argument.type.suffixes))
        if macro is None:
            rule = "what is written in place must be a tensor or a list"
            _refuse(operator, f"argument {name}", rule, argument.type)
        yield TensorItem(macro, name, dtypes.input(schema.tensor_positions.index(position)))


def _free(name: str, names: set[str]) -> str:
    if name == "y" and "y" in names and "z" not in names:
        return "z"
    while name in names:
        name = f"{name}_out"
    return name


def _attributes(operator: Operator) -> Iterator[Item]:
    for _, argument in operator.schema.attributes():
        kind = _attribute_type(operator, argument)
        default = argument.default
        if default is not MISSING:
            default = _default(operator, argument.name, kind, default)
        yield AttributeItem(operator.attribute_names.get(argument.name, argument.name), kind, default)
    fixed: dict[str, Any] = {c.name: c.value for info in operator.information for c in info.constants}
    for name, value in {**fixed, **operator.attributes}.items():
        of_value = _type_of_value(operator, name, value)
        yield AttributeItem(name, of_value, _default(operator, name, of_value, value))


def _attribute_type(operator: Operator, argument: Argument) -> str:
    type_: Type = argument.type
    subject = f"argument {argument.name}"
    if "?" in type_.suffixes:
        hint = "give it a default that is a value, and no '?'"
        _refuse(operator, subject, "an attribute of GE always has a value", type_, hint)
    attribute_type = ATTRIBUTE_OF.get((type_.base, len(type_.suffixes)))
    if attribute_type is None:
        types = ", ".join(dict.fromkeys(base for base, _ in ATTRIBUTE_OF))
        rule = f"GE has attributes of {types}, and lists"
        _refuse(operator, subject, rule, type_, _HINTS.get(type_.base))
    return attribute_type


def _type_of_value(operator: Operator, name: str, value: Any) -> str:
    depth, items = 0, [value]
    while items and all(isinstance(item, (list, tuple)) for item in items):
        depth, items = depth + 1, [inner for item in items for inner in item]
    kinds = {type(item).__name__ for item in items} or {"int"}
    numbers = kinds == {"int", "float"}
    kind = "float" if numbers else min(kinds)
    attribute_type = ATTRIBUTE_OF.get((kind, depth))
    if attribute_type is None or (len(kinds) > 1 and not numbers):
        _refuse(operator, f"attribute {name}", "GE has no attribute for its value", repr(value))
    return attribute_type


def _default(operator: Operator, name: str, kind: str, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_default(operator, name, kind, item) for item in value)
    if "Type" in kind:
        dtype_name = dtype(value).name
        if dtype_name not in DTYPE_OF_GE:
            rule = "its default is a dtype that GE does not have"
            _refuse(operator, f"attribute {name}", rule, dtype_name)
        return DTypeName(DTYPE_OF_GE[dtype_name])
    if "Float" in kind:
        value = float(value)
        if abs(value) > _FLOAT_MAX and value not in (float("inf"), float("-inf")):
            _refuse(operator, f"attribute {name}", "GE's floats have 32 bits", value)
    if "Int" in kind and not -(2**63) <= value < 2**63:
        _refuse(operator, f"attribute {name}", "GE's integers have 64 bits", value)
    return value
