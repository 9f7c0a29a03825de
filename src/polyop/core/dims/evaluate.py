"""Compute the shapes of outputs, and other sizes, with the sizes and attributes of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from ..sizes import DataSize, size_text
from .entry import Entry
from .expression import AtMost, Expression, Same, evaluate, names_in
from .match import Definition


class Evaluator:
    """Evaluates expressions with the sizes and attributes of one call."""

    def __init__(
        self, definition: Definition, inputs: Sequence[Entry], values: Mapping[str, Any], same: Same
    ) -> None:
        self.definition, self.inputs, self.values, self.same = definition, inputs, values, same

    def shape(self, entry: Entry) -> tuple[Any, ...]:
        """Return the shape of an output; raises ``InferError``."""
        if entry.ellipsis and "..." not in self.values:
            self._fail_unknown(entry.label, "...")
        leading = self.values["..."] if entry.ellipsis else ()
        sizes = []
        for dimension in entry.dimensions:
            assert dimension is not None, "an output has no '_'"
            sizes.append(self.size(entry.label, dimension))
        return (*leading, *sizes)

    def size(self, label: str, expression: Expression) -> Any:
        """Return the value of an expression, a ``DataSize`` for one that depends on data.

        Raises ``InferError`` if it is negative, not whole or unknown.
        A symbol is not compared with 0: its sign is checked when the call runs, with its real sizes.
        """
        try:
            size = evaluate(expression, self.values, self.same)
        except KeyError as problem:
            self._fail_unknown(label, problem.args[0])
        except ArithmeticError as problem:
            self._fail(label, expression, str(problem))
        if isinstance(size, int) and size < 0:
            self._fail(label, expression, f"is {size}")
        if isinstance(expression, AtMost):
            return DataSize(expression.name, size, f"{self.definition.operator}: {self.definition.hint}")
        return size

    def _fail(self, label: str, expression: Expression, problem: str) -> NoReturn:
        names = dict.fromkeys(names_in(expression))
        values = ", ".join(f"{name}={size_text(self.values[name])}" for name in names if name in self.values)
        where = f", for {values}" if values else ""
        self.definition.fail(f"{label}: the size {expression} {problem}{where}")

    def _fail_unknown(self, label: str, name: str) -> NoReturn:
        sources = [entry.label for entry in self.inputs if name in entry.names()]
        reason = f"no tensor is passed as {' or '.join(sources)}"
        self.definition.fail(f"{label}: the size {name} is unknown, because {reason}")
