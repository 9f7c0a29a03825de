"""Prove that a row has the same bits alone and in a batch of any size, on any number of threads.

    for i in range(n):                     i is parallel, and one thread computes the sum of a row:
        s = 0.0                            each row has the same operations in the same order
        for k in range(m):
            s += x[i, k]
        y[i] = s

A dimension is a batch if slices along it are independent (:mod:`polyop.loops.dims.derive`). Its rows keep
their bits if two things hold.

* Each row has the same operations in the same order. So no loop on threads adds to what the threads share:
  each thread would have a part of the sum, and how many parts there are depends on the number of threads. The
  other roles keep the order of each element's operations: the remainder of vector lanes runs the code of
  whole vectors with fewer lanes, and register tiles go through a sum in the order of its loop.
* Each operation is rounded in the same way. A C compiler that may fuse a product and a sum does so in whole
  vectors, say, and not in their remainder. With ``deterministic`` it fuses nothing, and the text alone says
  what is fused. Without it, only a kernel that has nothing to fuse has the same bits.

The check "same bits in a batch" of :mod:`polyop.testing` compares them. Which of several NaN a result is may
differ: processors take the first operand's, and compilers exchange operands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.grammar import Assign, Expr, For, Kernel, Op, Store, statements, walk
from ..ir.types import kind
from ..program import Program
from .derive import Slicing

ROUNDED_ONCE = frozenset(
    (
        *("+", "-", "*", "/", "max", "min", "neg", "abs", "sign", "floor", "ceil", "trunc", "round", "sqrt"),
        *("rsqrt", "select", "cast", "stop_gradient", "with_gradient"),
    )
)
"""Operators of floats in which no product is added to anything."""


def batch_dimensions(slicings: Sequence[Slicing]) -> list[str]:
    """Return the names of the dimensions whose slices are independent, as the kernel is."""
    return [row.dimension.name for row in slicings if row.kind == "parallel" and not row.placed]


def shared_sums(program: Program) -> Iterator[tuple[For, str]]:
    """Yield the loops on threads that add to what the threads share, and the names of that.

    ``program`` is what the compiler's passes returned.
    """
    for node in statements(program.kernel.body):
        if isinstance(node, For) and node.var in program.plan.private:
            yield node, ", ".join(name for name, _ in program.plan.private[node.var])


def fusable(kernel: Kernel) -> int | None:
    """Return the first line in which a C compiler may fuse two operations to one rounding; None without any.

    It may in a kernel that multiplies floats and adds floats, and in a function that does both.
    """
    products, adds, functions = list[int](), False, list[int]()
    for node in statements(kernel.body):
        names = [e.name for e in walk(node) if isinstance(e, Op) and _is_float(e)]
        if isinstance(node, (Store, Assign)) and node.op and _is_float(node.value):
            names.append(node.op)
        adds = adds or "+" in names or "-" in names
        products += [node.line] * ("*" in names)
        functions += [node.line] * any(name not in ROUNDED_ONCE for name in names)
    return min([*functions, *(products if adds else [])], default=None)


def _is_float(expr: Expr) -> bool:
    return kind(expr.type) == "f"


def describe_bits(program: Program, slicings: Sequence[Slicing]) -> str:
    """Return a sentence on the bits of rows; empty if no dimension is a batch."""
    names = " ".join(batch_dimensions(slicings))
    if not names:
        return ""
    for loop, targets in shared_sums(program):
        line = f" (line {loop.line})" if loop.line else ""
        return (
            f"depend on the number of threads: each has its own part of {targets} in loop {loop.var}{line}; "
            'deterministic="batch" keeps the sum in one thread'
        )
    product = None if program.schedule.is_deterministic else fusable(program.kernel)
    if product is not None:
        line = f" (line {product})" if product else ""
        return (
            f"may differ by rounding: the C compiler may fuse a product and a sum{line} in one place and not "
            'in another; deterministic="batch" forbids it'
        )
    return f"the same for a row alone and in a batch along {names} of any size, on any number of threads"
