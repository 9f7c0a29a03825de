"""Runs a program in one way: a package, a mode and a class ``Custom``."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import around, native, python
from .rows import ROWS, Row, World

__all__ = ["ROWS", "around", "native", "outcome", "python", "table"]


def outcome(world: World, row: Row, graph: bool, jit: Any = None) -> str:
    """Run a program and its gradient; return "" or what is not as expected. Errors are raised.

    ``jit`` compiles the network where the package's own graph mode takes long.
    """
    ms = world.ms
    ms.set_context(mode=ms.GRAPH_MODE if graph and not jit else ms.PYNATIVE_MODE)
    try:
        made = row.make(world)
        net = _net(world, made)
        net = jit(net) if graph and jit else net
        for arrays in (row.inputs, row.again) if row.again else (row.inputs,):
            wrong = _compared(ms, row, net, arrays)
            if wrong:
                return wrong
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    return ""


def _net(world: World, made: Any) -> Any:
    class Net(world.nn.Cell):
        def __init__(self):
            super().__init__()
            self.made = made

        def construct(self, *inputs):
            return self.made(*inputs)

    return made if isinstance(made, world.nn.Cell) else Net()


def _compared(ms: Any, row: Row, net: Any, arrays: tuple[Any, ...]) -> str:
    tensors = [ms.Tensor(array) for array in arrays]
    result = net(*tensors)
    expected = row.expected(*arrays) if row.expected else result
    if isinstance(expected, tuple) != isinstance(result, (tuple, list)):
        return f"{type(result).__name__} in place of {type(expected).__name__}"
    wrong = _differs("value", result, expected)
    if wrong or row.gradient is None:
        return wrong
    positions = tuple(i for i, array in enumerate(arrays) if array.dtype.kind == "f")
    grads = ms.grad(net, positions if len(positions) > 1 else positions[0])(*tensors)
    return _differs(
        "gradient", grads if isinstance(grads, tuple) else (grads,), row.gradient(*arrays), dtype=False
    )


def _differs(what: str, actual: Any, expected: Any, dtype: bool = True) -> str:
    items = actual if isinstance(actual, (tuple, list)) else (actual,)
    rows = expected if isinstance(expected, tuple) else (expected,)
    if len(items) != len(rows):
        return f"{what}: {len(items)} in place of {len(rows)}"
    for item, row in zip(items, rows, strict=True):
        array, right = (np.asarray(x.asnumpy() if hasattr(x, "asnumpy") else x) for x in (item, row))
        if array.shape != right.shape or (dtype and array.dtype != right.dtype):
            return f"{what}: {array.dtype}{array.shape} in place of {right.dtype}{right.shape}"
        if not np.allclose(array, right, rtol=1e-6):
            return f"{what}: {array.tolist()} in place of {right.tolist()}"
    return ""


def table() -> str:
    """Return the table of docs/hosts/mindspore.md: the programs by the argument that they are about."""
    head = (
        "argument",
        "programs",
        "run in all four ways",
        "refused by polyop, with the reason",
        "run by MindSpore's own `Custom`: PyNative, graph",
    )
    lines = [head, ("---",) * len(head)]
    for group in dict.fromkeys(row.group for row in ROWS):
        rows = [row for row in ROWS if row.group == group]
        own = [sum(row.own in ("both", mode) for row in rows) for mode in ("pynative", "graph")]
        refused = sum(bool(row.error) for row in rows)
        lines.append((group, len(rows), len(rows) - refused, refused, f"{own[0]}, {own[1]}"))
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)
