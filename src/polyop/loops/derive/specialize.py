"""Specialise a kernel: replace attributes by their values, where this makes indices and bounds affine.

    for j in range((n - window) // stride + 1):         for j in range((n - 3) // 2 + 1):
        for k in range(window):                  ->         for k in range(3):
            y[j] = max(y[j], x[j * stride + k])                 y[j] = max(y[j], x[j * 2 + k])

Nothing can be proved of ``j * stride``: isl knows products with constants only. A short loop with constant
bounds is unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..frontend.counted_whiles import with_counted_whiles
from ..ir.grammar import (
    INT,
    Assign,
    Const,
    Expr,
    For,
    Kernel,
    Load,
    Op,
    Size,
    Var,
    statements,
    walk,
)
from ..ir.operate import fold
from ..ir.rewriter import rewrite
from ..ir.stops import is_unbounded
from ..ir.uses import accesses_of, variables_of

SPECIAL_VALUES = range(1, 65)
"""The values that are put into a kernel. Strides, dilations and windows are among them."""
MAX_SPECIALIZED = 16
"""The most kernels that are specialised from one: the calls with other values share it."""


def attributes_to_specialize(kernel: Kernel) -> frozenset[str]:
    """Return the integer attributes that scale a loop or a size, divide one, bound a window, or step a while.

    A window is a loop whose variable is added to that of another loop in an index.
    """
    integers = frozenset(name for name, kind in kernel.attributes.items() if kind == INT)
    if not integers:
        return integers
    found: set[str] = set()
    for expr in _expressions(kernel):
        found |= _nonlinear(expr, integers)
    windows = _window_variables(kernel, integers)
    for loop in statements(kernel.body):
        if isinstance(loop, For) and loop.var in windows:
            found |= variables_of(loop) & integers
    return frozenset(found | _steps(kernel, integers))


def _steps(kernel: Kernel, integers: frozenset[str]) -> set[str]:
    """Return the attributes that a ``while`` adds to a scalar: it counts if they are constants."""
    whiles = [s for s in statements(kernel.body) if isinstance(s, For) and is_unbounded(s)]
    added = [s for loop in whiles for s in statements(loop.body) if isinstance(s, Assign) and s.op == "+"]
    return variables_of(*added) & integers


def describe_values(kernel: Kernel, numbers: Mapping[str, object], for_all: bool) -> Iterator[str]:
    """Yield which attributes of a call have a kernel for each value; ``for_all``: one serves all values."""
    limits = f"a value from {SPECIAL_VALUES.start} to {SPECIAL_VALUES.stop - 1} has a kernel of its own"
    limits = f"{limits}, {MAX_SPECIALIZED} kernels at most; other values share one, which is slower"
    own = [name for name, value in numbers.items() if type(value) is int and name not in kernel.attributes]
    if own:
        yield f"{' and '.join(own)}: {limits}"
    for name in sorted(frozenset() if for_all else attributes_to_specialize(kernel)):
        yield f"{name}={numbers.get(name)} shares a kernel with other values: {limits}"


def specialize(kernel: Kernel, values: Mapping[str, int]) -> Kernel:
    """Return the kernel for these values of attributes; it takes the others only."""
    constants = {name: Const(value, INT) for name, value in values.items()}

    def with_values(node: Any) -> Any:
        return rewrite(node, lambda e: constants.get(e.name, e) if isinstance(e, Var) else fold(e))

    buffers = {
        name: replace(buffer, shape=tuple(with_values(size) for size in buffer.shape))
        for name, buffer in kernel.buffers.items()
    }
    special = replace(
        kernel,
        parameters=tuple(name for name in kernel.parameters if name not in values),
        attributes={name: kind for name, kind in kernel.attributes.items() if name not in values},
        buffers=buffers,
        body=tuple(with_values(node) for node in kernel.body),
        demands=tuple(replace(d, condition=with_values(d.condition)) for d in kernel.demands),
    )
    return with_counted_whiles(special)


def _expressions(kernel: Kernel) -> Iterator[Expr]:
    """Yield all expressions of the body and of sizes."""
    for node in statements(kernel.body):
        yield from walk(node)
    for buffer in kernel.buffers.values():
        for size in buffer.shape:
            yield from walk(size)


def _nonlinear(expr: Expr, integers: frozenset[str]) -> frozenset[str]:
    """Return the attributes in a factor of a loop or a size, or in a divisor."""
    if not isinstance(expr, Op) or expr.type != INT:
        return frozenset()
    if expr.name == "*":
        first, second = expr.args
        return _factor(first, second, integers) | _factor(second, first, integers)
    if expr.name in ("//", "%", "ceil_div"):
        return _factor(expr.args[1], expr.args[0], integers)
    return frozenset()


def _factor(factor: Expr, other: Expr, integers: frozenset[str]) -> frozenset[str]:
    """Return the attributes of which alone ``factor`` consists, if ``other`` depends on more than those."""
    leaves = [e for e in walk(factor) if isinstance(e, (Var, Size, Load))]
    names = frozenset(e.name for e in leaves if isinstance(e, Var))
    if len(names) == 0 or not names <= integers or any(not isinstance(e, Var) for e in leaves):
        return frozenset()
    rest = [e for e in walk(other) if isinstance(e, (Var, Size))]
    return names if any(isinstance(e, Size) or e.name not in integers for e in rest) else frozenset()


def _window_variables(kernel: Kernel, integers: frozenset[str]) -> frozenset[str]:
    """Return the variables of loops that an index adds to that of another loop."""
    loops = {s.var for s in statements(kernel.body) if isinstance(s, For)} - integers
    used = [variables_of(index) & loops for access in accesses_of(kernel.body) for index in access.index]
    return frozenset(name for names in used if len(names) > 1 for name in names)
