"""Recognise, by its form and without a proof, a store that writes each element at most once."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.grammar import Const, For, Kernel, Store, Var, statements


def is_sole_write(kernel: Kernel, store: Store, loops: Sequence[For]) -> bool:
    """Whether each iteration of the loops around a store assigns an element that is written only once.

    True where every loop variable is an index by itself and no other statement writes the buffer. False
    inside a loop of constant length, whose iterations may be unrolled to statements.
    """
    if store.op or any(isinstance(loop.lo, Const) and isinstance(loop.hi, Const) for loop in loops):
        return False
    writes = [s for s in statements(kernel.body) if isinstance(s, Store) and s.buffer == store.buffer]
    indices = {index.name for index in store.index if isinstance(index, Var)}
    return len(writes) == 1 and indices.issuperset(loop.var for loop in loops)
