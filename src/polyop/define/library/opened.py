"""``OperatorLibrary``: the operators of a library that was loaded, and the rules given to them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...call.bound import BoundOperator
from ...core.errors import ArgumentValueError
from ...core.origin import Origin
from ..operator import check_rule
from .operator import LibraryOperator


class OperatorLibrary:
    """A loaded library: its operators as attributes, ``lib.my_op``.

    ``lib["myops::my_op"]`` is an operator by its qualified name, which a library with several namespaces
    may need. ``path`` is the file.
    """

    def __init__(
        self, path: Path, operators: Mapping[str, Any], refused: Mapping[str, Exception] | None = None
    ) -> None:
        """Store the file, the operators by qualified name, and the errors of those that cannot be called."""
        self.path = path
        self._operators = operators
        self._refused = refused or {}

    def __getitem__(self, name: str) -> Any:
        """Return the operator with the qualified name; raises ``KeyError`` with all names."""
        if name in self._refused:
            raise self._refused[name]
        if name not in self._operators:
            raise KeyError(f"{self.path.name} has no operator {name}; there are {', '.join(self._operators)}")
        return self._operators[name]

    def __getattr__(self, name: str) -> Any:
        if (
            name.startswith("__") or "_refused" not in self.__dict__
        ):  # a copy looks up names before it is filled
            raise AttributeError(name)
        matches = [full for full in (*self._operators, *self._refused) if full.endswith(f"::{name}")]
        if len(matches) == 1 and matches[0] in self._refused:
            raise AttributeError(str(self._refused[matches[0]])) from self._refused[matches[0]]
        if len(matches) == 1:
            return self[matches[0]]
        if matches:
            rule = f"{name} is in several namespaces: index the library with the qualified name"
            raise AttributeError(rule)
        operators = ", ".join(self._operators) or "none"
        raise AttributeError(f"no operator {name} in {self.path}; there are {operators}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name.rpartition("::")[2] for name in self._operators)]

    def __iter__(self) -> Iterator[Any]:
        """Yield the operators."""
        return iter(self._operators.values())

    def __repr__(self) -> str:
        """Return the file and the operators."""
        return f"<polyop library {self.path.name}: {', '.join(self._operators)}>"


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
