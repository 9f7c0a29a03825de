"""Put zeros around a factor, so that sums along a shift keep their whole range and need no condition.

    d_x[i + p] += d_y[i] * w[p]     ->     d_x[e] = sum over all p of d_y_wide[e - p + width] * w[p]

Where ``e - p`` is outside d_y, its padded copy ``d_y_wide`` has a zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..analysis.ranges import length as of_length
from ..analysis.strides import depends
from ..ir.grammar import (
    BOOL,
    INT,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Op,
    Stmt,
    Store,
    Var,
    own_sizes,
)
from .names import Names


@dataclass(frozen=True)
class Padded:
    """The padded buffer, the statement that copies the factor into it, and the load to use in its place."""

    buffer: Buffer
    copy: Stmt
    load: Load


def factor(value: Expr, variables: Sequence[str]) -> Load | None:
    """Return the only factor of a product that depends on the loops of ``variables``, or None.

    Its indices must be the variables themselves.
    """
    names = frozenset(variables)
    moving = [e for e in _factors(value) if depends(e, names)]
    if len(moving) != 1 or not isinstance(moving[0], Load):
        return None
    plain = [i.name for i in moving[0].index if isinstance(i, Var) and i.name in variables]
    others = [i for i in moving[0].index if not isinstance(i, Var) and depends(i, names)]
    return moving[0] if sorted(plain) == sorted(variables) and not others else None


def _factors(value: Expr) -> list[Expr]:
    if isinstance(value, Op) and value.name in ("*", "neg"):
        return [f for a in value.args for f in _factors(a)]
    return [value]


def padded(load: Load, loops: Mapping[str, tuple[For, For]], shape: Sequence[Expr], names: Names) -> Padded:
    """Return a load's buffer with zeros around it.

    ``loops``: for a variable of its index, the loop over it and the one that shifts it. ``shape``: the
    buffer's. The returned load has the same variables. They may exceed their loops by the width of the shift.
    """
    name = names.new(f"{load.buffer}_wide")
    sizes: list[Expr] = []
    source: list[Expr] = []
    target: list[Expr] = []
    index: list[Expr] = []
    ranges: list[tuple[str, Expr]] = []
    tests: list[Expr] = []
    for axis, at in enumerate(load.index):
        var = names.new(f"e{axis}")
        here = Var(var, INT)
        if isinstance(at, Var) and at.name in loops:
            loop, shift = loops[at.name]
            width = shift.hi - shift.lo - 1
            length = loop.hi - loop.lo
            whole = length + 2 * width
            sizes.append(of_length(Const(0, INT), whole))
            source.append(here + loop.lo)
            target.append(here + width)
            index.append(at - loop.lo + width)
            ranges.append((var, length))
            tests.append(Op("<", (shift.lo, shift.hi), BOOL))
        else:
            sizes.append(shape[axis])
            source.append(here)
            target.append(here)
            index.append(at)
            ranges.append((var, shape[axis]))
    node: Stmt = Store(name, tuple(target), replace(load, index=tuple(source)), "", load.line)
    for var, size in reversed(ranges):
        node = For(var, Const(0, INT), size, (node,), load.line)
    for test in tests:
        node = If(test, (node,), (), load.line)
    buffer = Buffer(name, load.type.dtype, tuple(sizes), "local", load.line)
    return Padded(buffer, node, replace(load, buffer=name, index=tuple(index)))


def sizes_of(kernel: Kernel, buffer: str) -> tuple[Expr, ...]:
    """Return the sizes of a buffer, in terms that the shape of another buffer may have."""
    original = kernel.buffers[buffer]
    if original.role in ("input", "inplace"):
        return own_sizes(buffer, original)
    return original.shape
