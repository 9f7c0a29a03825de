"""Whether a row has the same bits alone and in a batch of any size, on any number of threads.

    for i in range(n):                     i is parallel, and one thread computes the sum of a row:
        s = 0.0                            each row has the same operations in the same order
        for k in range(m):
            s += x[i, k]
        y[i] = s

A dimension is a batch if slices along it are independent (:mod:`polyop.loops.dims.derive`). Its rows keep
their bits if no loop on threads adds to what the threads share: each thread would have a part of the sum, and
how many parts there are depends on the number of threads. The other roles keep the order of each element's
operations: the remainder of vector lanes runs the code of whole vectors with fewer lanes, and register tiles
go through a sum in the order of its loop. The check "same bits in a batch" of :mod:`polyop.testing` compares
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.grammar import For, statements
from ..program import Program
from .derive import Slicing


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
    return f"the same for a row alone and in a batch along {names} of any size, on any number of threads"
