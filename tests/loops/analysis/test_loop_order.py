"""Bounds of loops in another order: the iterations are the same ones."""

import itertools

import pytest

from polyop.loops.analysis.loop_order import reordered
from polyop.loops.ir.grammar import INT, Const, Expr, For, Size, Var, call

I, J, N0, N1 = Var("i", INT), Var("j", INT), Size("x", 0), Size("x", 1)
ONE = Const(1, INT)
NESTS = {
    "triangle": [("i", Const(0, INT), N0), ("j", I, N0)],
    "band": [("i", Const(0, INT), N0), ("j", call("max", I - ONE, Const(0, INT)), call("min", I + 2, N0))],
    "trapezoid": [("i", Const(0, INT), N0), ("j", Const(0, INT), I + N1)],
    "bounds that meet": [("i", call("max", N0, N1), N1 + 1), ("j", Const(0, INT), I + 1)],
    "from an outer size": [("i", Const(0, INT), N0), ("j", call("max", I, Const(2, INT)), N1)],
    "three": [("i", Const(0, INT), N0), ("j", I, N0), ("k", I, J + 1)],
}
NAMES = {"x.n0": 0, "x.n1": 1}


def evaluated(expr: Expr, values: dict[str, int]) -> int:
    match expr:
        case Const(value=value):
            return int(value)
        case Var(name=name):
            return values[name]
        case Size(axis=axis):
            return values[f"n{axis}"]
    args = [evaluated(a, values) for a in expr.args]
    return {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "max": max, "min": min,
            "neg": lambda a: -a}[expr.name](*args)  # fmt: skip


def iterations(loops: list[For], values: dict[str, int]) -> set[tuple[tuple[str, int], ...]]:
    if not loops:
        return {tuple(sorted((n, v) for n, v in values.items() if n[1:] == ""))}
    loop, *inner = loops
    ends = range(evaluated(loop.lo, values), evaluated(loop.hi, values))
    return set().union(*(iterations(inner, {**values, loop.var: at}) for at in ends))


@pytest.mark.parametrize("name", NESTS)
def test_each_order_has_the_same_iterations(name: str) -> None:
    nest = [For(var, lo, hi, (), 1) for var, lo, hi in NESTS[name]]
    found = 0
    for order in itertools.permutations(nest):
        made = reordered(order)
        if made is None:
            continue
        found += 1
        for n0, n1 in itertools.product(range(5), repeat=2):
            sizes = {"n0": n0, "n1": n1}
            assert iterations(made.loops, sizes) == iterations(nest, sizes), (order, sizes)
    assert found >= 2


def test_a_nest_without_iterations_has_no_order() -> None:
    k = For("k", call("max", I, Const(5, INT)), call("min", J + 1, Const(3, INT)), (), 1)
    outer = [For("i", Const(0, INT), N0, (), 1), For("j", Const(0, INT), N1, (), 1)]
    assert reordered([*outer, k]) is None
