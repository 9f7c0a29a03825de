"""ONNX Runtime: the function ``RegisterCustomOps`` of an exported library, over ``polyop/export/onnx.h``."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.schema import Schema
from ..operator import ExportedOperator

KINDS = ("int", "SymInt", "float", "bool", "str")  # of attributes; of lists: those that are not str

ENTRY = """#include "polyop/export/onnx.h"

extern "C" __attribute__((visibility("default"))) polyop::ort::Status* RegisterCustomOps(
    polyop::ort::Options* options, const polyop::ort::Base* base) {{
  using polyop::exported::kOperators;
  return polyop::exported::register_in_onnx(options, base, {{{operators}}});
}}
"""


def refused(operator: ExportedOperator) -> str | None:
    """Return why a session of ONNX Runtime cannot run an operator, or None."""
    schema: Schema = operator.schema
    if schema.mutates:
        return "it writes into an argument, and the tensors of a session are values"
    if not schema.returns:
        return "it returns nothing, and a node of a session has outputs"
    for _, argument in schema.attributes():
        kind = argument.type
        if kind.is_list and kind.base == "str":
            return f"the attribute {argument.name} is a list of texts, which a node cannot have"
        if kind.base not in KINDS:
            return f"the attribute {argument.name} is a {kind}, which a node cannot have"
    return None


def source(operators: Sequence[ExportedOperator]) -> str:
    """Return the C++ source that registers the operators that are not :func:`refused`."""
    rows = [f"kOperators[{i}]" for i, operator in enumerate(operators) if refused(operator) is None]
    return ENTRY.format(operators=", ".join(rows)) if rows else ""
