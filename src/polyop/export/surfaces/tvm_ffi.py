"""tvm-ffi: the function ``__tvm_ffi_NAME`` of each operator, ``tvm_ffi.load_module("lib.so").NAME``."""

from __future__ import annotations

from collections.abc import Sequence

from ..operator import ExportedOperator
from .functions import functions

_BASES = ("int", "SymInt", "float", "bool", "str")

_FUNCTION = """
extern "C" __attribute__((visibility("default"))) int __tvm_ffi_{short_name}(
    void*, const tvm_ffi::Any* arguments, int32_t count, tvm_ffi::Any* result) {{
  return exported::call_from_tvm_ffi(*exported::kOperators[{number}], arguments, count, result);
}}
"""


def refused(operator: ExportedOperator) -> str | None:
    """Return why tvm-ffi cannot call an operator, or None."""
    for _, argument in operator.schema.attributes():
        if argument.type.base not in _BASES:
            return f"the attribute {argument.name} has the type {argument.type.base}"
        if sum(suffix != "?" for suffix in argument.type.suffixes) > 1:
            return f"the attribute {argument.name} is a list of lists"
    return None


def source(operators: Sequence[ExportedOperator]) -> str:
    """Return the C++ of the functions."""
    return functions("tvm_ffi.h", _FUNCTION, operators, refused)
