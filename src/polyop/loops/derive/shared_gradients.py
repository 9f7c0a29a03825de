"""Inputs whose gradient is an output's gradient, unchanged, so that no kernel runs for it.

y[i] = x[i] + w[i]     ->     d_x[i] = d_y[i]     is d_y itself
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..ir.grammar import Const, Expr, For, Kernel, Load, Size, Store, Var, statements, walk
from ..ir.rewriter import placed


class SharedGradient(NamedTuple):
    """An output that is a copy of the parameter ``source``, if both sizes of each pair are equal."""

    source: str
    equal: tuple[tuple[Expr, Expr], ...]


def shared_gradients(kernel: Kernel) -> Mapping[int, SharedGradient]:
    """Return, by number, the outputs that copy a parameter element by element."""
    stores = [s for s in statements(kernel.body) if isinstance(s, Store)]
    shared: dict[int, SharedGradient] = {}
    for number, name in enumerate(kernel.outputs):
        if sum(s.buffer == name for s in stores) != 1:
            continue
        for store, place in placed(kernel.body):
            loops = place.loops
            if len(loops) < len(place.around) or not isinstance(store, Store):
                continue  # under a condition it copies some elements only
            if store.buffer == name and (copy := _copied_parameter(kernel, loops, store)) is not None:
                shared[number] = copy
    return shared


def _copied_parameter(kernel: Kernel, loops: tuple[For, ...], store: Store) -> SharedGradient | None:
    """Return the parameter that a store under loops copies, if it copies one."""
    value, target = store.value, kernel.buffers[store.buffer]
    if not isinstance(value, Load) or store.op or value.index != store.index:
        return None
    source = kernel.buffers[value.buffer]
    names = [i.name for i in store.index if isinstance(i, Var)]
    ends = {loop.var: loop.hi for loop in loops if loop.lo == Const(0, loop.lo.type)}
    parts = [e for end in ends.values() for e in walk(end)]
    if any(isinstance(e, Load) or (isinstance(e, Var) and e.name in names) for e in parts):
        return None
    each_axis = len(names) == len(store.index) == len(set(names)) == len(loops) and ends.keys() == {*names}
    if not each_axis or source.role != "input" or source.dtype != target.dtype:
        return None
    equal: list[tuple[Expr, Expr]] = []
    for axis, name in enumerate(names):
        size = Size(source.name, axis)
        equal += [(ends[name], size), (target.shape[axis], size)]
    return SharedGradient(source.name, tuple(equal))
