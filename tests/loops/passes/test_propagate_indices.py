"""Divisions of an index that do nothing in the loops around it are left out, and loops of one iteration."""
# ruff: noqa: F821 - the language's words are not names of this module

import numpy as np
import pytest

from polyop.loops.derive.specialize import specialize
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import For, statements
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.printing import shown
from polyop.loops.ir.schedule import Schedule
from polyop.loops.passes.propagate_indices import propagate_indices
from polyop.loops.passes.unroll import unroll
from polyop.loops.program import Program

TEXT = """
def f(x, y, n: int = 3):
    for i in range(x.shape[0]):
        for j in range({range}):
            y[i] += x[{index}]
    return y
"""
INDICES = [  # the range of j, an index, the index that is left
    ("x.shape[0]", "i // x.shape[0]", "0"),
    ("x.shape[0]", "i % x.shape[0]", "i"),
    ("x.shape[0]", "(i + j) // (2 * x.shape[0])", "0"),
    ("x.shape[0]", "(x.shape[0] - 1 - i) % x.shape[0]", "x.shape[0] - 1 - i"),
    ("3", "j // 3 + i", "i"),
    ("3", "j // 2", "j // 2"),
    ("x.shape[0]", "(i + 1) % x.shape[0]", "(i + 1) % x.shape[0]"),
    ("x.shape[0]", "(i - j) % x.shape[0]", "(i - j) % x.shape[0]"),
    ("y.shape[0]", "j % x.shape[0]", "j % x.shape[0]"),
    ("n", "j // n + i", "i"),  # for any n: the loop runs for a positive one alone
    ("3", "j // n + i", "j // n + i"),
]


@pytest.mark.parametrize(("extent", "index", "left"), INDICES)
def test_an_index_without_divisions(extent, index, left, tmp_path):
    (tmp_path / "f.py").write_text(TEXT.format(range=extent, index=index))
    scope = {}
    exec(compile((tmp_path / "f.py").read_text(), tmp_path / "f.py", "exec"), scope)
    kernel = parse(scope["f"], [("float64", 1)] * 2, {"n": 3})
    after = propagate_indices(Program(kernel)).kernel
    assert f"x[{left}]" in shown(after)
    x = np.array([0.5, -2.0, 3.0, 7.0])
    before = interpret(kernel, [x, np.zeros(4)], {"n": 3})
    np.testing.assert_array_equal(interpret(after, [x, np.zeros(4)], {"n": 3}), before)


def groups(x, n: int = 1):
    y = output_tensor(x.shape, x.dtype)
    for g in range(n):
        for i in range(x.shape[0] // n):
            y[g * (x.shape[0] // n) + i] = 2 * x[g * (x.shape[0] // n) + i]
    return y


def test_a_loop_of_one_iteration_is_its_body():
    kernel = specialize(parse(groups, [("float64", 1)], {"n": 1}), {"n": 1})
    program = unroll(propagate_indices(Program(kernel)))
    loops = [node.var for node in statements(program.kernel.body) if isinstance(node, For)]
    assert loops == ["i"] and "range(x.shape[0])" in shown(program.kernel)
    x = np.arange(5.0)
    np.testing.assert_array_equal(interpret(program.kernel, [x], {})[0], 2 * x)
    named = Program(kernel, schedule=Schedule().parallel("g"), loops={"g": "g", "i": "i"})
    assert [s.var for s in statements(unroll(named).kernel.body) if isinstance(s, For)] == ["g", "i"]
