"""Estimate the time of a scheduled program for given sizes, in the units of ``loops/analysis/cost.py``.

It ranks schedules before any is compiled. It knows arithmetic, strides, lanes and threads. A step to another
cache line costs more than a step along one, unless a loop around walks along the same lines before the first
cache has lost them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.dtypes import dtype
from ..core.errors import InferError
from ..loops.analysis.cost import arithmetic
from ..loops.analysis.sizes import size_of
from ..loops.analysis.strides import BACK, STRIDED, UNIFORM, UNIT, UNKNOWN, stride
from ..loops.ir.grammar import Assign, Buffer, Expr, For, If, Load, Stmt, Store, statements, walk
from ..loops.program import Program

LINE_COST, GATHER_COST = 6.0, 2.5
"""Loads that a step to another line costs, and that one lane of a gather costs."""
LOOP_COST = 2.0
"""The control of one iteration of a loop that is not unrolled."""
FORK_COST = 8000.0
"""Waking the threads: about two microseconds."""
UNKNOWN_TRIPS = 16.0
"""The iterations of a loop whose number the sizes do not tell."""
LINE_BYTES, L1_LINES = 64, 512


def estimate(
    program: Program, specs: Sequence[Any], attributes: Mapping[str, Any], threads: int, width: int
) -> float:
    """Return the cost of a call with tensors of these specs, on ``threads``, with vectors of ``width`` bytes.

    >>> import polyop
    >>> from polyop.core.spec import Spec
    >>> from polyop.loops.pipeline import schedule
    >>> @polyop.kernel
    ... def doc_transposed(x):
    ...     y = output_tensor((x.shape[1], x.shape[0]), x.dtype)
    ...     for i in range(x.shape[0]):
    ...         for j in range(x.shape[1]):
    ...             y[j, i] = x[i, j]
    ...     return y
    >>> spec = Spec((1024, 1024), "float32")
    >>> kernel = doc_transposed.operator.kernels[0].typed([spec], {})
    >>> blocks = polyop.Schedule().tile("i", 16).tile("j", 16)
    >>> blocks = blocks.interchange("i.outer", "j.outer", "i.inner", "j.inner")
    >>> columns = polyop.Schedule().parallel("i")
    >>> costs = [estimate(schedule(kernel, steps=s), [spec], {}, 2, 32) for s in (columns, blocks)]
    >>> costs[0] > costs[1]
    True
    """
    kernel = program.kernel
    tensors = [name for name in kernel.parameters if name not in kernel.attributes]
    known = {name: spec for name, spec in zip(tensors, specs, strict=True) if spec is not None}
    model = _Model(program, known, dict(attributes), threads, width)
    return model.block(kernel.body, ())


@dataclass
class _Model:
    program: Program
    specs: Mapping[str, Any]
    values: dict[str, Any]
    threads: int
    width: int
    lanes: str = ""
    """The variable of the loop around whose iterations are lanes."""
    parallel: bool = False
    varying: frozenset[str] = field(default_factory=frozenset)
    trips: dict[str, float] = field(default_factory=dict)

    def block(self, body: Sequence[Stmt], loops: tuple[str, ...]) -> float:
        return sum(self.statement(node, loops) for node in body)

    def statement(self, node: Stmt, loops: tuple[str, ...]) -> float:
        match node:
            case For():
                return self.loop(node, loops)
            case If():
                sides = (self.block(body, loops) for body in (node.body, node.orelse))
                return 1.0 + max(sides)
            case _:
                if isinstance(node, Assign):
                    self.values[node.name] = None if node.op else self.value(node.value)
                return self.simple(node, loops)

    def loop(self, node: For, loops: tuple[str, ...]) -> float:
        lo, hi = self.value(node.lo), self.value(node.hi)
        trips = UNKNOWN_TRIPS if lo is None or hi is None else max(0.0, hi - lo)
        self.trips[node.var] = trips
        self.values[node.var] = None if lo is None or hi is None else (lo + hi - 1) / 2
        plan, outer_lanes, outer_parallel = self.program.plan, self.lanes, self.parallel
        forks = node.var in plan.threads or node.var in plan.rows
        if node.var in plan.vector:
            self.lanes = node.var
        self.parallel = self.parallel or forks
        inside = self.block(node.body, (*loops, node.var))
        self.lanes, self.parallel = outer_lanes, outer_parallel
        if node.var in plan.vector:
            lanes = max(1.0, self.width / self.itemsize(node))
            return math.ceil(trips / lanes) * inside + LOOP_COST
        cost = trips * (inside + LOOP_COST)
        if forks and not outer_parallel:
            share = math.ceil(trips / self.threads) / trips if trips else 1.0
            return cost * share + FORK_COST
        return cost

    def simple(self, node: Store | Assign, loops: tuple[str, ...]) -> float:
        """Return the cost of one statement: of all lanes at once, if it is in a vector loop."""
        var = self.lanes or (loops[-1] if loops else "")
        accesses: list[Load | Store] = [e for e in walk(node) if isinstance(e, Load)]
        accesses += [node] if isinstance(node, Store) else []
        return arithmetic(node) + sum(self.access(access, var, loops) for access in accesses)

    def access(self, access: Load | Store, var: str, loops: tuple[str, ...]) -> float:
        """Return the cost of a load or a store where ``var`` is the loop of lanes, or the innermost one."""
        size = dtype(self.program.kernel.buffers[access.buffer].dtype).itemsize
        apart = bool(var) and self.stride(access, var) in (STRIDED, UNKNOWN)
        cost = 1.0
        if apart:
            cost += GATHER_COST * self.width / size if self.lanes else 0.0
        if any(self.stride(access, loop) in (STRIDED, UNKNOWN) for loop in {*loops[-1:], var} - {""}):
            cost += (
                LINE_COST
                * (self.width / size if self.lanes and apart else 1.0)
                / self.reuse(access, loops, size)
            )
        return cost

    def reuse(self, access: Load | Store, loops: tuple[str, ...], size: int) -> float:
        """Return how often a cache line is used before the first cache has lost it."""
        lines = 1.0
        for loop in reversed(loops):
            step = self.stride(access, loop)
            if step in (UNIT, BACK):
                return max(1.0, min(self.trips[loop], LINE_BYTES / size)) if lines <= L1_LINES else 1.0
            lines *= 1.0 if step == UNIFORM else self.trips[loop]
        return 1.0

    def stride(self, access: Load | Store, loop: str) -> str:
        return stride(access, loop, self.varying)

    def itemsize(self, node: For) -> int:
        """Return the bytes of the widest element that a loop stores or loads."""
        names = {e.buffer for s in _all(node.body) for e in walk(s) if isinstance(e, Load)}
        names |= {s.buffer for s in _all(node.body) if isinstance(s, Store)}
        sizes = [dtype(self.program.kernel.buffers[name].dtype).itemsize for name in names]
        return max(sizes, default=4)

    def value(self, expr: Expr) -> Any:
        try:
            value = size_of(expr, self.program.kernel, _NOWHERE, self.specs, self.values)
        except (InferError, KeyError, TypeError):
            return None
        return value if isinstance(value, (int, float)) else None


def _all(body: Sequence[Stmt]) -> list[Stmt]:
    return list(statements(tuple(body)))


_NOWHERE = Buffer("a bound", "int64", ())
