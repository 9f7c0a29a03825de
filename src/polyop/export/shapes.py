"""The C++ that infers the outputs of a kernel: from ``dims=``, from the argument it copies, or from loops.

The lines are the body of a ``polyop::exported::Infer``: they read ``inputs`` and ``attributes`` and fill in
``outputs``. include/polyop/export/dims.h has the functions that they call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.dims.dims import Dims
from ..core.dims.entry import Binary, Entry, Expression, Name, Number
from ..core.dims.infer import FromDims
from ..core.dtypes import DType
from ..core.schema import Schema
from ..loops.ir.grammar import Const, Expr, Kernel, Op, Size, Var

_DIMS = {
    "+": "({} + {})",
    "-": "({} - {})",
    "*": "({} * {})",
    "//": "floor_div({}, {})",
    "/": "exact_div({}, {})",
}
_LOOPS = {
    "+": "({} + {})",
    "-": "({} - {})",
    "*": "({} * {})",
    "//": "floor_div({}, {})",
    "%": "floor_mod({}, {})",
    "max": "std::max<int64_t>({}, {})",
    "min": "std::min<int64_t>({}, {})",
}
"""Operators of sizes -> C++. Both halves compute in 64 bits."""


def dtype_constant(name: str) -> str:
    """Return the constant of a dtype.

    >>> dtype_constant("float32")
    'POLYOP_DTYPE_FLOAT32'
    """
    return f"POLYOP_DTYPE_{name.upper()}"


def same_as(position: int, outputs: int) -> list[str]:
    """Return the lines for outputs that are like the argument at a position among the tensors."""
    return [f"outputs[{number}] = like(inputs[{position}]);" for number in range(outputs)]


def from_dims(rule: FromDims, schema: Schema) -> list[str]:
    """Return the lines for ``dims=``: match the arguments, then compute the outputs."""
    dims = rule.dims
    names = names_of(dims)
    lines = matching(dims, schema, names)
    for number, (entry, source) in enumerate(zip(dims.outputs, rule.dtypes, strict=True)):
        shape = _shape(entry, names)
        lines.append(f"outputs[{number}] = {{{_dtype(source, schema)}, {shape}}};")
    return lines


def names_of(dims: Dims) -> list[str]:
    """Return the names of all dimensions, without ``...``; the generated code counts them in this order."""
    entries = (*dims.inputs, *dims.outputs)
    return list(dict.fromkeys(name for entry in entries for name in entry.names() if name != "..."))


def matching(dims: Dims, schema: Schema, names: Sequence[str]) -> list[str]:
    """Return the lines that check the arguments against their entries and bind the names of dimensions."""
    texts = ", ".join(json.dumps(name) for name in names) or '""'
    lines = [f"Matcher match({{{texts}}});"]
    attributes = {attribute.name: number for number, (_, attribute) in enumerate(schema.attributes())}
    for name in names:
        if name in attributes:
            position = names.index(name)
            lines.append(f"match.attribute({position}, attributes[{attributes[name]}].ints[0]);")
    for number, entry in enumerate(dims.inputs):
        sizes = ", ".join(_dimension(size, names) for size in entry.dimensions)
        ellipsis = "true" if entry.ellipsis else "false"
        label, text = json.dumps(entry.label), json.dumps(str(entry))
        lines.append(f"match.tensor({label}, {text}, {ellipsis}, {{{sizes}}}, inputs[{number}]);")
    return lines


def of_loops(kernel: Kernel, inputs: Sequence[str], schema: Schema) -> list[dict[str, Any]] | None:
    """Return dtype and shape of each new output of a loop kernel, None if C++ cannot compute a size.

    ``inputs`` are the kernel's tensors, in the order of the operator's. A size is a number,
    ``["size", tensor, axis]``, ``["attribute", number]``, or an operator as in ``["+", size, size]``.
    """
    numbers = {attribute.name: number for number, (_, attribute) in enumerate(schema.attributes())}
    outputs = [kernel.buffers[name] for name in kernel.outputs if kernel.buffers[name].role == "output"]
    rows = [
        {"dtype": one.outer_dtype, "shape": [_loop_size(size, inputs, numbers) for size in one.outer_shape]}
        for one in outputs
    ]
    return None if any(None in row["shape"] for row in rows) else rows


def from_loops(outputs: Sequence[Mapping[str, Any]], inputs: int, attributes: int) -> list[str]:
    """Return the lines for the outputs that :func:`of_loops` gives; the kernel has so many arguments."""
    lines = [f"check_provable(inputs, {inputs}, attributes, {attributes});"]
    for number, output in enumerate(outputs):
        shape = ", ".join(f"int64_t{{{_cxx_size(size)}}}" for size in output["shape"])
        lines.append(f"outputs[{number}] = {{{dtype_constant(output['dtype'])}, {{{shape}}}}};")
    return lines


def _shape(entry: Entry, names: Sequence[str]) -> str:
    sizes = []
    for dimension in entry.dimensions:
        text = json.dumps(f"{entry.label}: the size {dimension}")
        assert dimension is not None, "an output has no '_'"
        sizes.append(f"match.checked({text}, {_size(dimension, names)})")
    ellipsis = "true" if entry.ellipsis else "false"
    return f"match.shape({ellipsis}, {{{', '.join(sizes)}}})"


def _dimension(dimension: Expression | None, names: Sequence[str]) -> str:
    """Return an entry of ``Matcher::tensor``: a name by its position, a number, or any size."""
    if isinstance(dimension, Name):
        return f"name({names.index(dimension.name)})"
    return f"number({dimension.value})" if isinstance(dimension, Number) else "any()"


def _size(expression: Expression, names: Sequence[str]) -> str:
    if isinstance(expression, Name):
        return f"match.size({names.index(expression.name)})"
    if isinstance(expression, Number):
        return f"INT64_C({expression.value})"
    assert isinstance(expression, Binary)
    return _DIMS[expression.operator].format(_size(expression.left, names), _size(expression.right, names))


def _dtype(source: DType | int | None, schema: Schema) -> str:
    if isinstance(source, DType):
        return dtype_constant(source.name)
    if source is None:
        return f"first_dtype(inputs, {len(schema.tensor_positions)})"
    return f"inputs[{schema.tensor_positions.index(source)}].dtype"


def _loop_size(expression: Expr, inputs: Sequence[str], numbers: Mapping[str, int]) -> Any:
    """Return a size as :func:`of_loops` has it, None if it is none."""
    size: Any = None
    match expression:
        case Const(value=value):
            size = int(value)
        case Size(buffer=name, axis=axis) if name in inputs:
            size = ["size", inputs.index(name), axis]
        case Var(name=name) if name in numbers:
            size = ["attribute", numbers[name]]
        case Op(name=name, args=args):
            arguments = [_loop_size(one, inputs, numbers) for one in args]
            size = None if None in arguments else _operator_of(name, arguments)
    return size


def _operator_of(name: str, arguments: list[Any]) -> Any:
    if name == "cast":
        return arguments[0]
    if name == "neg":
        return ["-", 0, arguments[0]]
    if name == "ceil_div":
        return ["//", ["-", ["+", *arguments], 1], arguments[1]]
    return [name, *arguments] if name in _LOOPS else None


def _cxx_size(size: Any) -> str:
    if isinstance(size, int):
        return f"INT64_C({size})"
    if size[0] == "size":
        return f"inputs[{size[1]}].sizes[{size[2]}]"
    if size[0] == "attribute":
        return f"attributes[{size[1]}].ints[0]"
    return _LOOPS[size[0]].format(*map(_cxx_size, size[1:]))
