"""Streaming (non-temporal) stores for results larger than the caches: memory is not read to be written."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..analysis.strides import UNIT, stride
from ..ir.grammar import Store, statements
from ..ir.uses import tensors_of
from ..program import Program
from .vector_loops import VectorLoop, vector_loops


def streaming_stores(program: Program) -> Program:
    """Return the program with the stores of vector loops that may go past the caches."""
    found = {loop.node.var: _stores(loop) for loop in vector_loops(program) if not loop.transposes}
    plan = replace(program.plan, streaming={var: stores for var, stores in found.items() if stores})
    return program.with_(plan=plan)


def _stores(loop: VectorLoop) -> tuple[Store, ...]:
    """Return the stores of a vector loop whose tensors the kernel writes once and never reads."""
    kernel, bounds = loop.program.kernel, loop.program.bounds
    plain = [
        s for s in loop.node.body if isinstance(s, Store) and not s.op and stride(s, loop.node.var) == UNIT
    ]
    written = Counter(s.buffer for s in statements(kernel.body) if isinstance(s, Store))
    read = tensors_of(*statements(kernel.body))
    return tuple(
        s
        for s in plain
        if kernel.buffers[s.buffer].role == "output" and not kernel.buffers[s.buffer].zeroed
        if written[s.buffer] == 1 and s.buffer not in read and not bounds.axes(s)
    )
