"""Plain C functions of the operators, and the header that declares them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..build.paths import include_dir
from ..core.schema import Argument
from .operator import ExportedOperator

_TYPES = {"int": "int64_t", "SymInt": "int64_t", "bool": "int", "float": "double", "str": "const char*"}
_KEYWORDS = frozenset({
    "alignas", "alignof", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "case", "catch", "char",
    "char16_t", "char32_t", "char8_t", "compl", "concept", "const", "const_cast", "consteval",
    "constexpr", "constinit", "co_await", "co_return", "co_yield", "decltype", "default", "delete",
    "do", "double", "dynamic_cast", "enum", "explicit", "export", "extern", "float", "friend", "goto",
    "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not_eq", "nullptr", "operator",
    "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "restrict",
    "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch",
    "template", "this", "thread_local", "throw", "typedef", "typeid", "typename", "union", "unsigned",
    "using", "virtual", "void", "volatile", "wchar_t", "xor", "xor_eq",
    "true", "false", "typeof", "linux", "unix",
})  # fmt: skip
"""Words of C and C++ that a schema may have as names; ``cppreference.com`` lists them."""
_SOURCE = """\
// The C functions of an exported library. polyop export has written this file.
#include <cstddef>

#include "polyop/export/c.h"

using namespace polyop::exported;

extern "C" {{

POLYOP_EXPORTED const char* {prefix}_error(void) {{ return last_error().c_str(); }}

{functions}

}}
"""
_HEADER = """\
/* The operators of {library}. polyop export has written this file.
 *
 * Every function returns 0, or 1 for an error, whose text is {prefix}_error(). Arrays are dense, row-major.
 * The caller gives the memory of the outputs: NAME_shapes() writes their dtypes and sizes, for which `sizes`
 * needs room for POLYOP_MAX_DIMENSIONS numbers, and `data` is not read. Any thread may call a function.
 */
#ifndef {guard}
#define {guard}

#include <stddef.h>

{array}

#ifdef __cplusplus
extern "C" {{
#endif

/* The text of the last error of the calling thread. It is valid until the next error of this thread. */
const char* {prefix}_error(void);

{functions}

#ifdef __cplusplus
}}
#endif

#endif
"""


def prefix_of(library: str) -> str:
    """Return the first part of the names that belong to the library: ``libmy-ops.so`` is ``my_ops``.

    >>> prefix_of("out/libmy-ops.so")
    'my_ops'
    """
    name = Path(library).name.partition(".")[0].removeprefix("lib")
    return re.sub(r"\W|^(?=\d)", "_", name) or "polyop"


def header(operators: Sequence[ExportedOperator], library: str) -> str:
    """Return the text of the header, which needs no other file of polyop."""
    prefix = prefix_of(library)
    blocks = []
    for one in operators:
        lines = [f"/* {_comment(str(one.schema))} */"]
        lines += [f"int {one.c_name}({', '.join(_parameters(one))});"]
        if one.output_names:
            lines += [f"int {one.c_name}_shapes({', '.join(_parameters(one))});"]
        blocks.append("\n".join(lines))
    array = (include_dir() / "polyop" / "export" / "array.h").read_text(encoding="utf-8").strip()
    return _HEADER.format(
        library=Path(library).name,
        prefix=prefix,
        guard=f"{prefix.upper()}_H",
        array=array,
        functions="\n\n".join(blocks),
    )


def source(operators: Sequence[ExportedOperator], library: str) -> str:
    """Return the C++ that defines the C functions."""
    functions = "\n\n".join("\n".join(_functions(n, one)) for n, one in enumerate(operators))
    return _SOURCE.format(prefix=prefix_of(library), functions=functions)


def _comment(text: str) -> str:
    return text.replace("*/", "* /")


def _parameters(operator: ExportedOperator) -> Iterator[str]:
    """Yield the parameters: the schema's arguments in order, then the outputs."""
    for argument in operator.schema.arguments:
        if argument.type.is_tensor:
            yield f"const polyop_array* {_name(argument.name)}"
        elif argument.type.is_list:
            yield f"{_item(argument)}* {_name(argument.name)}"
            yield f"size_t {argument.name}_count"
        elif argument.type.is_optional and argument.type.base != "str":
            yield f"const {_TYPES[argument.type.base]}* {_name(argument.name)}"
        else:
            yield f"{_TYPES[argument.type.base]} {_name(argument.name)}"
    yield from (f"polyop_array* {_name(name)}" for name in operator.output_names)


def _name(name: str) -> str:
    """Return the name of a parameter; a word of C or C++ gets an underscore.

    >>> _name("x"), _name("default")
    ('x', 'default_')
    """
    return f"{name}_" if name in _KEYWORDS else name


def _item(argument: Argument) -> str:
    return "const char* const" if argument.type.base == "str" else f"const {_TYPES[argument.type.base]}"


def _functions(number: int, operator: ExportedOperator) -> Iterator[str]:
    parameters = ", ".join(_parameters(operator))
    schema = operator.schema
    tensors = "".join(f".input({_name(schema.arguments[i].name)})" for i in schema.tensor_positions)
    attributes = "".join(f".{_setter(a)}" for _, a in schema.attributes())
    outputs = ", ".join(map(_name, operator.output_names))
    for suffix, method in (("", "run"), ("_shapes", "shapes")):
        if suffix and not operator.output_names:
            continue
        yield f"POLYOP_EXPORTED int {operator.c_name}{suffix}({parameters}) {{"
        yield "  return guarded([&] {"
        yield f"    CCall(*kOperators[{number}]){tensors}{attributes}.{method}({{{outputs}}});"
        yield "  });"
        yield "}"


def _setter(argument: Argument) -> str:
    if argument.type.is_list:
        return f"list({_name(argument.name)}, {argument.name}_count)"
    if argument.type.is_optional and argument.type.base != "str":
        return f"optional({_name(argument.name)})"
    return f"value({_name(argument.name)})"
