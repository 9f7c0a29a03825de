"""The work of a loop kernel: operations and bytes, counted from the typed loops with the sizes of a call.

The bytes are those that a call cannot avoid: each element that it reads, once, and each that it writes, once.
Temporaries count nothing. A loop whose bounds depend on an outer variable is counted at the middle of that
one's range, which is exact for a triangle. Of the two branches of a condition the larger one is counted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.dtypes import dtype
from ...core.errors import InferError
from ...core.spec import Spec
from ..ir.grammar import (
    Assign,
    Buffer,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Var,
    children,
    walk,
)
from ..ir.stops import stop_flags
from ..ir.uses import loads_of
from .sizes import bytes_of, size_of

FREE = frozenset(
    (
        *(
            "cast",
            "select",
            "stop_gradient",
            "with_gradient",
            "and",
            "or",
            "not",
            "isnan",
            "isinf",
            "isfinite",
        ),
        *("<", "<=", ">", ">=", "==", "!=", "&", "|", "^", "<<", ">>"),
    )
)
"""Operators that are no floating-point operation. Every other one counts as one, an exponential too."""


@dataclass(frozen=True)
class Work:
    """What a call computes and moves at least. ``flops`` is None where it is not known.

    ``dtype`` is the dtype of most operations. ``exact`` is False where the numbers are an upper bound: a loop
    may end early, a condition may be false, or indices come from data.
    """

    flops: float | None
    bytes_read: float
    bytes_written: float
    dtype: str = "float32"
    exact: bool = True

    @property
    def bytes(self) -> float:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float | None:
        """Operations per byte; None where operations are not known."""
        return self.flops / self.bytes if self.flops is not None and self.bytes else None

    def __add__(self, other: Work) -> Work:
        """Return the work of one call after the other."""
        flops = None if self.flops is None or other.flops is None else self.flops + other.flops
        read, written = self.bytes_read + other.bytes_read, self.bytes_written + other.bytes_written
        return Work(flops, read, written, self.dtype, self.exact and other.exact)


def work_of_loops(kernel: Kernel, specs: Sequence[Spec | None], attributes: Mapping[str, Any]) -> Work:
    """Return the work of a typed kernel, the author's or a derived one; ``specs`` are of its tensors."""
    tensors = [name for name in kernel.parameters if name not in kernel.attributes]
    by_name = {name: spec for name, spec in zip(tensors, specs, strict=True) if spec is not None}
    values = {name: attributes[name] for name in kernel.attributes if name in attributes}
    count = _Count(kernel, by_name, dict(values))
    count.block(kernel.body, 1.0)
    sizes = {
        name: float(bytes_of(kernel, buffer, by_name, values))
        for name, buffer in kernel.buffers.items()
        if buffer.role != "local" and not buffer.absent
    }
    read = sum(min(sizes[n], count.read[n] * _item(kernel, n)) for n in sizes)
    written = sum(min(sizes[n], count.written[n] * _item(kernel, n)) for n in sizes)
    most = max(count.flops, key=lambda name: count.flops[name], default="")
    names = [b.dtype for b in kernel.buffers.values()]
    total = sum(count.flops.values())
    flops = None if math.isnan(total) else total
    return Work(flops, read, written, most or widest(names), count.exact)


def widest(names: Sequence[str]) -> str:
    """Return the widest floating-point dtype among some; "float32" without any.

    >>> widest(["int64", "float32", "bfloat16"])
    'float32'
    """
    floats = [name for name in names if dtype(name).kind == "float"]
    return max(floats, key=lambda name: dtype(name).itemsize, default="float32")


def _item(kernel: Kernel, name: str) -> int:
    return dtype(kernel.buffers[name].dtype).itemsize


Numbers = defaultdict[str, float]


@dataclass
class _Count:
    """The numbers of one kernel, while its statements are walked."""

    kernel: Kernel
    specs: Mapping[str, Any]
    values: dict[str, Any]
    flops: Numbers = field(default_factory=lambda: defaultdict(float))
    read: Numbers = field(default_factory=lambda: defaultdict(float))
    written: Numbers = field(default_factory=lambda: defaultdict(float))
    exact: bool = True

    def block(self, body: Sequence[Stmt], times: float) -> None:
        for node in body:
            match node:
                case For():
                    self.loop(node, times)
                case If():
                    self.branches(node, times)
                case Assign():
                    self.statement(node, times)
                    self.values[node.name] = None if node.op else self.value(node.value)
                case Store():
                    self.statement(node, times)

    def loop(self, node: For, times: float) -> None:
        self.expression(node.lo, times)
        self.expression(node.hi, times)
        lo, hi = self.value(node.lo), self.value(node.hi)
        self.exact = self.exact and not stop_flags(node)
        trips = math.nan if lo is None or hi is None else max(0.0, hi - lo)
        if math.isnan(trips):  # only a flag, or data, ends it
            self.exact = False
        self.values[node.var] = None if math.isnan(trips) else (lo + hi - 1) / 2
        self.block(node.body, times * trips)

    def branches(self, node: If, times: float) -> None:
        """Add the branch with more operations; both read and write."""
        self.expression(node.condition, times)
        before, sides = self.flops, []
        for body in (node.body, node.orelse):
            self.flops = defaultdict(float)
            self.block(body, times)
            sides.append(self.flops)
        self.flops, self.exact = before, False
        for name, number in max(sides, key=_sum).items():
            self.flops[name] += number

    def statement(self, node: Assign | Store, times: float) -> None:
        self.expression(node.value, times)
        if node.op and _is_float(node.value):
            self.flops[node.value.type.dtype] += times
        if isinstance(node, Store):
            for index in node.index:
                self.expression(index, times)
            self.written[node.buffer] = _add(self.written[node.buffer], times)
            self.read[node.buffer] += times if node.op and self.is_given(node.buffer) else 0.0

    def is_given(self, name: str) -> bool:
        return self.kernel.buffers[name].role in ("input", "inplace")

    def expression(self, expr: Expr, times: float) -> None:
        for part in walk(expr):
            if isinstance(part, Load) and self.is_given(part.buffer):
                self.read[part.buffer] = _add(self.read[part.buffer], times)
                self.exact = self.exact and not bool(loads_of(*children(part)))
            elif isinstance(part, Op) and part.name not in FREE and _is_float(part) and _varies(part):
                self.flops[part.type.dtype] += times

    def value(self, expr: Expr) -> Any:
        """Return the value of a bound, or None if it is not known without data."""
        try:
            value = size_of(expr, self.kernel, _NOWHERE, self.specs, self.values)
        except (InferError, KeyError, TypeError):
            return None
        return value if isinstance(value, (int, float)) else None


def _add(sum_so_far: float, times: float) -> float:
    """Return the sum; a number that is not known counts as more than any tensor has."""
    return math.inf if math.isnan(times) else sum_so_far + times


def _sum(numbers: Numbers) -> float:
    total = sum(numbers.values())
    return math.inf if math.isnan(total) else total


def _is_float(expr: Expr) -> bool:
    return expr.type.dtype.startswith(("float", "bfloat"))


def _varies(expr: Expr) -> bool:
    """Whether a value depends on elements or on scalars: what does not is computed once, or not at all."""
    return any(isinstance(e, (Load, Var)) for e in walk(expr))


_NOWHERE = Buffer("a bound", "int64", ())
