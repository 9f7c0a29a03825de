"""How an operator is displayed: its signature, attributes, text of two lines, and table in notebooks."""

from __future__ import annotations

import html
import inspect
import types
from collections.abc import Mapping
from typing import Any, cast

from ..core.annotations import signature
from .operator import Operator
from .rule import Rule

ATTRIBUTES = (
    "communication",
    "gradient",
    "mindspore_graph",
    "name",
    "origin",
    "report",
    "schema",
    "source",
    "torch",
    "vjp",
)
"""What users call or read. ``dir`` lists these, and what every object has."""


class CallSignature:
    """The ``__signature__`` of an operator: the author's function's, or what follows from the schema.

    It is None, which makes ``inspect`` read ``__call__``, before the schema is known, and for an operator
    whose schema depends on the call. For a class it is that of the constructor.
    """

    def __get__(self, bound: Any, owner: type) -> inspect.Signature | None:
        """Return it."""
        if bound is None:
            constructor = inspect.signature(cast("Any", owner).__init__)
            return constructor.replace(parameters=list(constructor.parameters.values())[1:])
        function = vars(bound).get("__wrapped__")
        if function is not None:
            return inspect.signature(function)
        if "operator" not in vars(bound) or bound.by_signature:
            return None
        operator: Operator = bound.operator
        found = signature(operator.schema)
        if operator.unpacks:  # one tensor, a tuple, or None
            return found.replace(return_annotation=Any)
        if operator.returns_tuple and len(operator.schema.returns) == 1:
            return found.replace(return_annotation=types.GenericAlias(tuple, (found.return_annotation,)))
        return found


def facts(operator: Operator) -> Mapping[str, str]:
    """Return what one wants to know first, by its label."""
    kernels = ", ".join(dict.fromkeys(f"{kernel} on {kernel.device}" for kernel in operator.kernels))
    rows = {
        "kernel": kernels or "none",
        "gradient": _kind(operator.gradient, "none"),
        "batching": _kind(operator.batch, "a call per sample"),
    }
    if operator.dims is not None:
        rows["dims"] = str(operator.dims)
    if operator.origin is not None:
        rows["defined at"] = str(operator.origin)
    return rows


def text(operator: Operator) -> str:
    """Return two lines: the schema; gradient, batching and where it is defined."""
    rows = facts(operator)
    second = "; ".join(
        f"{label} {rows[label]}" for label in ("gradient", "batching", "defined at") if label in rows
    )
    return f"<polyop operator {operator}>\n  {second}"


def table(operator: Operator) -> str:
    """Return HTML for notebooks: the schema, what the author says of it, and the facts."""
    about = operator.doc.strip().partition("\n")[0]
    head = f"<caption><code>{html.escape(str(operator))}</code><br>{html.escape(about)}</caption>"
    rows = (
        f"<tr><th>{label}</th><td>{html.escape(value)}</td></tr>" for label, value in facts(operator).items()
    )
    return f"<table>{head}{''.join(rows)}</table>"


def _kind(rule: Any, absent: str) -> str:
    if rule is None:
        return absent
    if isinstance(rule, Rule) and rule.is_derived:
        return "derived"
    if isinstance(rule, Rule):
        return "recorded" if rule.is_recorded else rule.made_by
    return "given"
