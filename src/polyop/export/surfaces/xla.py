"""XLA: the handler ``NAME_xla`` of each operator, which ``jax.ffi.register_ffi_target`` takes."""

from __future__ import annotations

from collections.abc import Sequence

from ..operator import ExportedOperator
from .functions import functions

_NUMBERS = ("int", "SymInt", "float", "bool")

_HANDLER = """
extern "C" __attribute__((visibility("default"))) xla::Error* {short_name}_xla(xla::Frame* frame) {{
  return exported::call_from_xla(*exported::kOperators[{number}], frame);
}}
"""


def refused(operator: ExportedOperator) -> str | None:
    """Return why XLA cannot call an operator, or None."""
    schema = operator.schema
    for argument in schema.arguments:
        if argument.type.writes:
            return f"it writes the argument {argument.name}, and XLA gives inputs that nobody may write"
    if not schema.fresh:
        return "it returns no array"
    for _, argument in schema.attributes():
        if argument.type.base not in (*_NUMBERS, "str"):
            return f"the attribute {argument.name} has the type {argument.type.base}"
        lists = [suffix for suffix in argument.type.suffixes if suffix != "?"]
        if len(lists) > 1:
            return f"the attribute {argument.name} is a list of lists"
        if lists and argument.type.base not in _NUMBERS:
            return f"the attribute {argument.name} is a list, and not one of numbers"
    return None


def source(operators: Sequence[ExportedOperator]) -> str:
    """Return the C++ of the handlers."""
    return functions("xla.h", _HANDLER, operators, refused)
