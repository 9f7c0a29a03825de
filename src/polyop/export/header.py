"""Plain C functions of the operators, the header that declares them, and the file for ``find_package``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..build.paths import include_dir
from ..core.dtypes import DTYPES
from ..core.schema import Argument
from .literal import comment
from .names import CNames, c_names
from .operator import ExportedOperator

_TYPES = {"int": "int64_t", "SymInt": "int64_t", "bool": "int", "float": "double", "str": "const char*"}
_SPACE = "::polyop::exported::"
_NUMBERS = "/* The numbers are those of polyop's table of dtypes, which only grows. */"
_SOURCE = """\
// The C functions of an exported library. polyop export has written this file.
#include <cstddef>

#include "polyop/export/c.h"

extern "C" {{

POLYOP_EXPORTED const char* {prefix}_error(void) {{ return polyop::exported::last_error().c_str(); }}
POLYOP_EXPORTED int {prefix}_register_torch(void) {{ return polyop::exported::register_in_torch(); }}

{functions}

}}
"""
_HEADER = """\
/* The operators of {library}. polyop export has written this file.
 *
 * Every function returns 0, or 1 for an error, whose text is {prefix}_error(). Arrays are dense, row-major.
 * The caller gives the memory of the outputs: NAME_shapes() writes their dtypes and sizes, for which `sizes`
 * needs room for POLYOP_MAX_DIMENSIONS numbers, and `data` is not read. Any thread may call a function.
 *
 * The comment before a function is its schema. C has no defaults: pass the value that the schema has.
 *   Tensor, and outputs    never NULL; only NAME_shapes() takes NULL for an output, and leaves it out
 *   Tensor?                NULL: no array
 *   int?, float?, bool?    a pointer to the value; NULL: None
 *   str?                   NULL: None
 *   int[] and other lists  a pointer and a count; NULL with the count 0: an empty list
 *   int[]? and others      the same, but NULL with the count 0: None; another pointer with 0: an empty list
 *   bool                   0 is false, any other int true
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

/* Registers the operators in PyTorch, if libtorch has come into the process after this library. Returns 0; 1
 * if there is no libtorch of PyTorch 2.10 or newer; 2 if PyTorch refused an operator. */
int {prefix}_register_torch(void);

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


def enumeration() -> str:
    """Return the C enumeration of the dtypes."""
    rows = ["ABSENT = -1, /* no array is given for an optional argument */"]
    rows += [f"{row.name.upper()} = {number}," for number, row in enumerate(DTYPES)]
    lines = "\n".join(f"  POLYOP_DTYPE_{row}" for row in rows).removesuffix(",")
    return f"{_NUMBERS}\nenum polyop_dtype {{\n{lines}\n}};"


def header(operators: Sequence[ExportedOperator], library: str) -> str:
    """Return the text of the header, which needs no other file of polyop."""
    prefix = prefix_of(library)
    blocks = []
    for one in operators:
        lines = [f"/* {comment(str(one.schema))} */"]
        lines += [f"int {one.c_name}({', '.join(_parameters(one))});"]
        if one.output_names:
            lines += [f"int {one.c_name}_shapes({', '.join(_parameters(one))});"]
        blocks.append("\n".join(lines))
    array = (include_dir() / "polyop" / "export" / "array.h").read_text(encoding="utf-8").strip()
    array = array.replace('#include "polyop/dtypes.h"', enumeration())
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


def _parameters(operator: ExportedOperator) -> Iterator[str]:
    """Yield the parameters: the schema's arguments in order, then the outputs."""
    names = c_names(operator)
    for argument in operator.schema.arguments:
        name = names.arguments[argument.name]
        if argument.type.is_tensor:
            yield f"const polyop_array* {name}"
        elif argument.type.is_list:
            yield f"{_item(argument)}* {name}"
            yield f"size_t {names.counts[argument.name]}"
        elif argument.type.is_optional and argument.type.base != "str":
            yield f"const {_TYPES[argument.type.base]}* {name}"
        else:
            yield f"{_TYPES[argument.type.base]} {name}"
    yield from (f"polyop_array* {name}" for name in names.outputs)


def _item(argument: Argument) -> str:
    return "const char* const" if argument.type.base == "str" else f"const {_TYPES[argument.type.base]}"


def _functions(number: int, operator: ExportedOperator) -> Iterator[str]:
    """Yield the C functions. Names are qualified: a parameter may have any of them."""
    parameters = ", ".join(_parameters(operator))
    schema, names = operator.schema, c_names(operator)
    tensors = "".join(f".input({names.arguments[argument.name]})" for argument in schema.tensor_arguments)
    attributes = "".join(f".{_setter(a, names)}" for _, a in schema.attributes())
    outputs = ", ".join(names.outputs)
    for suffix, method in (("", "run"), ("_shapes", "shapes")):
        if suffix and not operator.output_names:
            continue
        yield f"POLYOP_EXPORTED int {operator.c_name}{suffix}({parameters}) {{"
        yield f"  return {_SPACE}guarded([&] {{"
        yield f"    {_SPACE}CCall(*{_SPACE}kOperators[{number}]){tensors}{attributes}"
        yield f"        .{method}({{{outputs}}});"
        yield "  });"
        yield "}"


def _setter(argument: Argument, names: CNames) -> str:
    name = names.arguments[argument.name]
    if argument.type.is_list:
        method = "optional_list" if argument.type.is_optional else "list"
        return f"{method}({name}, {names.counts[argument.name]})"
    if argument.type.is_optional and argument.type.base != "str":
        return f"optional({name})"
    return f"value({name})"


_CONFIG = """\
# polyop export has written this file. find_package({name} CONFIG) gives the target {name}::{name}.
if(NOT TARGET {name}::{name})
  add_library({name}::{name} SHARED IMPORTED)
  set_target_properties({name}::{name} PROPERTIES
    IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/{file}"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}")
endif()
"""


def file_name(library: str) -> str:
    """Return the name of the file, which lies beside the library.

    >>> file_name("libmyops.so")
    'myops-config.cmake'
    """
    return f"{prefix_of(library).lower()}-config.cmake"


def config(library: str) -> str:
    """Return the text of the file. The folder may be moved: paths are relative to it."""
    return _CONFIG.format(name=prefix_of(library), file=Path(library).name)
