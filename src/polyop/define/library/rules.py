"""Rules that a caller of ``load_library`` gives to operators, by their names."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ...call.bound import BoundOperator
from ...core.errors import ArgumentValueError
from ...core.origin import Origin
from ..operator import check_rule
from .opened import OperatorLibrary
from .operator import LibraryOperator


def by_name(
    library: OperatorLibrary, keyword: str, rules: Mapping[str, Any], origin: Origin
) -> list[tuple[BoundOperator, Any]]:
    """Return each operator with its rule; raises ``ArgumentValueError`` for a name that is none of theirs."""
    operators = {one.name: one for one in library if isinstance(one, BoundOperator)}
    short = {name.rpartition("::")[2]: operator for name, operator in operators.items()}
    unknown = [name for name in rules if name not in operators and name not in short]
    if unknown:
        subject = f"load_library: {library.path.name}: {keyword}"
        hint = f"there are {', '.join(operators) or 'none'}"
        raise ArgumentValueError(subject, "must name its operators", unknown[0], where=origin, hint=hint)
    return [(operators.get(name) or short[name], rule) for name, rule in rules.items()]


def set_forward_mode(library: OperatorLibrary, rules: Mapping[str, Any], origin: Origin) -> None:
    """Give operators their forward-mode rules; raises before any of them is changed."""
    found = by_name(library, "jvp", rules, origin)
    for bound, rule in found:
        check_rule("jvp", rule, bound.schema, origin)
    for bound, rule in found:
        if isinstance(bound, LibraryOperator):
            bound.set_jvp(rule)
        else:
            bound.update(dataclasses.replace(bound.operator, jvp=rule))
