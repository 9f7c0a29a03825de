"""Print the rows that a vector loop reads at several offsets: each vector is loaded once."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.grammar import For, Load
from ...ir.plan import Slide
from ..common.c_text import identifier, memory
from ..common.expressions import Expressions, Scope


class Sliding:
    """Prints the slides of a vector loop."""

    def __init__(
        self, rows: Sequence[Slide], node: For, width: int, expressions: Expressions, scope: Scope
    ) -> None:
        self.rows, self.expressions, self.scope, self.width = rows, expressions, scope, width
        self.var = node.var
        self.lanes = expressions.lane_count(width)

    @property
    def guard(self) -> str:
        """The condition that whole vectors follow and the next vector of each row is all read anyway."""
        var = identifier(self.var)
        return f"{var} + 2 * {self.lanes} <= {var}_end + {min(s.span for s in self.rows)}"

    def begin(self) -> list[str]:
        """Return the lines before the loop."""
        var = identifier(self.var)
        return [f"{self._vector(s)} {self._name(n)} = {self._load(s, var)};" for n, s in enumerate(self.rows)]

    def step(self) -> list[str]:
        """Return the lines at the begin of an iteration."""
        at = f"({identifier(self.var)} + {self.lanes})"
        return [
            f"const {self._vector(s)} {self._name(n)}_next = {self._load(s, at)};"
            for n, s in enumerate(self.rows)
        ]

    def end(self) -> list[str]:
        """Return the lines at the end of an iteration."""
        names = map(self._name, range(len(self.rows)))
        return [f"{name} = {name}_next;" for name in names]

    def texts(self) -> dict[Load, str]:
        """Return the C of each load, where the loop has its row in registers."""
        result = {}
        for number, slide in enumerate(self.rows):
            name, vector = self._name(number), self._vector(slide)
            for load, offset in slide.loads.items():
                text = f"polyop_concat_lanes({vector}, {self.width}, {name}, {name}_next, {offset})"
                result[load] = text if offset else name
        return result

    def _name(self, number: int) -> str:
        return f"{identifier(self.var)}_row{number}"

    def _vector(self, slide: Slide) -> str:
        return self.expressions.vector_type(memory(slide.first.type.dtype), self.width)

    def _load(self, slide: Slide, at: str) -> str:
        scope = self.scope.with_names({self.var: at})
        index = tuple(self.expressions.scalar(i, scope) for i in slide.first.index)
        buffer = slide.first.buffer
        place = self.expressions.place(buffer, index, scope)
        return f"load_{self._vector(slide)}(&{identifier(buffer)}[{place}])"
