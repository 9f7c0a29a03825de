"""The generated source of a library: the tables that ``polyop/export/operator.h`` declares."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.dtypes import DTYPES
from ..core.schema import MISSING, Argument
from .literal import comment, literal
from .operator import ExportedKernel, ExportedOperator

_ROWS = {one.name: number for number, one in enumerate(DTYPES)}
_KINDS = {
    "bool": "POLYOP_BOOL",
    "int": "POLYOP_INT",
    "SymInt": "POLYOP_INT",
    "float": "POLYOP_FLOAT",
    "str": "POLYOP_STRING",
}
_FORM = """\
// The operators of an exported library. polyop export has written this file.
#include <cmath>

#include "polyop/export/dims.h"
#include "polyop/export/run.h"

{declarations}

namespace polyop {{
namespace exported {{

{operators}

const Operator* const kOperators[] = {{{names}}};
const int32_t kOperatorCount = {count};

}}  // namespace exported
}}  // namespace polyop
"""


def source(operators: Sequence[ExportedOperator]) -> str:
    """Return the C++ of the tables."""
    functions = {
        (kernel.function, kernel.init): None for operator in operators for kernel in operator.kernels
    }
    return _FORM.format(
        declarations="\n".join(_declaration(*names) for names in functions),
        operators="\n\n".join("\n".join(_lines(f"{n}", one)) for n, one in enumerate(operators)),
        names=", ".join(f"&kOperator{number}" for number in range(len(operators))),
        count=len(operators),
    )


def _declaration(function: str, init: str) -> str:
    parameters = "int, void**, int*, int64_t**, const char**, void*, void*"
    lines = [f'extern "C" int {function}({parameters});']
    if init:
        lines.append(f'extern "C" int {init}(int*, int64_t**, const char**, void*);')
    return "\n".join(lines)


def _lines(number: str, operator: ExportedOperator) -> Iterator[str]:
    """Yield the tables of one operator."""
    schema = operator.schema
    yield f"/* {comment(str(schema))} */"
    tensors = schema.tensor_arguments
    inputs = [
        f"{{{json.dumps(a.name)}, {_flag(a.type.is_optional)}, {_flag(a.type.writes)}}}" for a in tensors
    ]
    yield f"static const Input kInputs{number}[] = {{{', '.join(inputs) or '{}'}}};"
    outputs = ", ".join(map(json.dumps, operator.output_names)) or "nullptr"
    yield f"static const char* const kOutputs{number}[] = {{{outputs}}};"
    attributes = [argument for _, argument in schema.attributes()]
    yield from _attributes(f"Attributes{number}", {a.name: _default(a) for a in attributes}, attributes)
    yield from _attributes(f"Fixed{number}", operator.fixed, [])
    for k, kernel in enumerate(operator.kernels):
        yield from _kernel(f"{number}_{k}", kernel)
    rows = [_kernel_row(f"{number}_{k}", kernel) for k, kernel in enumerate(operator.kernels)]
    yield f"static const Kernel kKernels{number}[] = {{{', '.join(rows)}}};"
    yield (
        f"static const Operator kOperator{number} = {{{json.dumps(operator.name)}, {literal(str(schema))}, "
        f"kInputs{number}, {len(tensors)}, kOutputs{number}, {len(schema.fresh)}, kAttributes{number}, "
        f"{len(attributes)}, kKernels{number}, {len(rows)}, kFixed{number}, {len(operator.fixed)}}};"
    )


def _kernel(name: str, kernel: ExportedKernel) -> Iterator[str]:
    masks = ", ".join(_mask(dtypes) for dtypes in kernel.dtypes) or "0"
    ranks = ", ".join("-1" if rank is None else str(rank) for rank in kernel.ranks) or "0"
    yield f"static const DTypes kDTypes{name}[] = {{{masks}}};"
    yield f"static const int32_t kRanks{name}[] = {{{ranks}}};"
    yield (
        f"static void infer{name}(const polyop_array* inputs, const polyop_attribute* attributes, "
        "Shape* outputs) {"
    )
    yield "  (void)inputs, (void)attributes, (void)outputs;"
    yield from (f"  {line}" for line in kernel.infer)
    yield "}"


def _kernel_row(name: str, kernel: ExportedKernel) -> str:
    init = f"::{kernel.init}" if kernel.init else "nullptr"
    return f"{{kDTypes{name}, kRanks{name}, infer{name}, ::{kernel.function}, {init}}}"


def _mask(dtypes: tuple[str, ...] | None) -> str:
    return "kAnyDType" if dtypes is None else hex(sum(1 << _ROWS[name] for name in dtypes))


def _attributes(table: str, values: Mapping[str, Any], arguments: Sequence[Argument]) -> Iterator[str]:
    """Yield the constants of the values, then the table; ``MISSING`` is an attribute without a default."""
    types = {argument.name: argument.type for argument in arguments}
    rows = []
    for number, (name, value) in enumerate(values.items()):
        fallback = "nullptr"
        kind, depth = _kind_of(value)
        if name in types:
            kind, depth = _KINDS[types[name].base], int(types[name].is_list)
        if value is not MISSING:
            fallback = f"&k{table}Value{number}"
            yield from _value(f"k{table}Value{number}", value, kind, depth)
        optional = _flag(name in types and types[name].is_optional)
        rows.append(f"{{{json.dumps(name)}, {kind}, {depth}, {fallback}, {optional}}}")
    yield f"static const Attribute k{table}[] = {{{', '.join(rows) or '{}'}}};"


def _value(name: str, value: Any, kind: str, depth: int) -> Iterator[str]:
    """Yield the definition of a constant, and of the array that it points to."""
    items = [value] if not depth else list(value or ())
    if value is None or not items:
        none = f"POLYOP_NONE, {0 if value is None else depth}, 0"
        yield f"static const polyop_attribute {name} = {{{none}, nullptr, nullptr, nullptr, 0, nullptr}};"
        return
    c_type, field = {
        "POLYOP_FLOAT": ("double", 1),
        "POLYOP_STRING": ("char* const", 2),
    }.get(kind, ("int64_t", 0))
    texts = ", ".join(_literal(item, kind) for item in items)
    yield f"static const {c_type} {name}Items[] = {{{texts}}};"
    pointers = ", ".join(f"{name}Items" if position == field else "nullptr" for position in range(3))
    yield (
        f"static const polyop_attribute {name} = {{{kind}, {depth}, {len(items)}, {pointers}, 0, nullptr}};"
    )


def _literal(value: Any, kind: str) -> str:
    if kind == "POLYOP_STRING":
        return literal(value)
    if kind == "POLYOP_FLOAT":
        text = repr(float(value))
        words = {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}
        return words.get(text, text)
    return f"INT64_C({int(value)})"


def _default(argument: Argument) -> Any:
    if argument.default is MISSING and argument.type.is_optional:
        return None
    return argument.default


def _kind_of(value: Any) -> tuple[str, int]:
    """Return the kind and the depth of a Python value."""
    depth = int(isinstance(value, (list, tuple)))
    item = (value[0] if value else 0) if depth else value
    kinds = ((bool, "POLYOP_BOOL"), (int, "POLYOP_INT"), (float, "POLYOP_FLOAT"), (str, "POLYOP_STRING"))
    return next((kind for of, kind in kinds if isinstance(item, of)), "POLYOP_NONE"), depth


def _flag(value: bool) -> str:
    return "true" if value else "false"
