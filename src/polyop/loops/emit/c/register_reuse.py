"""Register reuse: a vector loop that reads a row at several offsets loads each vector once.

A vector that begins between two loaded ones is put together from both in registers, where one instruction
does that. An unaligned load takes the time of two where vectors are as long as a cache line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...analysis import affine
from ...analysis.bounds import key
from ...analysis.strides import UNIT, depends, stride
from ...ir.grammar import Assign, For, If, Load, Store, children, statements
from ..common.c_text import NARROW, SIZES, identifier, memory
from ..common.expressions import Expressions, Scope
from .indexed_rows import always
from .optimisations import is_on

LINE = 64
"""Bytes of the vectors that are combined."""
MAX_ROWS = 8
"""Most rows of a loop; each takes two registers."""


@dataclass(frozen=True)
class Slide:
    """Loads along one row, with their offsets in elements from the first."""

    loads: Mapping[Load, int]

    @property
    def first(self) -> Load:
        """The load that begins first."""
        return min(self.loads, key=lambda load: self.loads[load])

    @property
    def span(self) -> int:
        """The offset of the last load."""
        return max(self.loads.values())


def slides(node: For, width: int, expressions: Expressions) -> list[Slide]:
    """Return the rows that a vector loop with ``width`` bytes per lane reads at several offsets.

    The loop does not write their tensors, and the loads are neither conditional nor checked.
    """
    inside = list(statements(node.body))
    if width < 4 or any(isinstance(s, For) for s in inside) or not is_on("register_reuse"):
        return []
    assigned = frozenset(s.name for s in inside if isinstance(s, Assign))
    written = {s.buffer for s in inside if isinstance(s, Store)}
    exprs = [e for s in node.body for e in ((s.condition,) if isinstance(s, If) else children(s))]
    rows: dict[object, dict[Load, int]] = {}
    for load in dict.fromkeys(always(exprs)):
        form = None if load.buffer in written else _form(load, node.var, width, assigned, expressions)
        if form is not None:
            terms = tuple(sorted((name, times) for name, times in form.items() if name))
            rows.setdefault((load.buffer, load.index[:-1], terms), {})[load] = form.get("", 0)
    return [s for row in rows.values() for s in _within(row, LINE // width)][:MAX_ROWS]


def _form(
    load: Load, var: str, width: int, assigned: frozenset[str], expressions: Expressions
) -> affine.Linear | None:
    """Return the column of a load that moves with the lanes, as a linear form."""
    dtype = load.type.dtype
    if not load.index or dtype in NARROW or dtype == "bool" or SIZES[memory(dtype)] != width:
        return None
    if stride(load, var) != UNIT or any(depends(i, assigned) for i in load.index):
        return None
    if expressions.axes(load) or key(load) in expressions.bounds.guarded:
        return None
    return affine.linear(load.index[-1])


def _within(offsets: Mapping[Load, int], max_span: int) -> list[Slide]:
    """Return slides with a span of at most ``max_span`` and at least two offsets each."""
    groups: list[dict[Load, int]] = []
    for load, offset in sorted(offsets.items(), key=lambda item: item[1]):
        if not groups or offset - min(groups[-1].values()) > max_span:
            groups.append({})
        groups[-1][load] = offset
    return [
        Slide({load: offset - min(group.values()) for load, offset in group.items()})
        for group in groups
        if len(set(group.values())) > 1
    ]


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
