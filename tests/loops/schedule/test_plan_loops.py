"""What loops become: lanes, rows beside them, and what threads share."""

import pytest

from polyop.loops.derive.forms import adjoint
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import perfect
from polyop.loops.ir.uses import stored_by
from polyop.loops.pipeline import schedule

ROW = """
def f(x, w):
    y = output_tensor((x.shape[0], w.shape[0], x.shape[2] - w.shape[2] + 1), x.dtype)
    for b in range(x.shape[0]):
        for o in range(w.shape[0]):
            for i in range(x.shape[2] - w.shape[2] + 1):
                total = 0.0
                for c in range(w.shape[1]):
                    for q in range(w.shape[2]):
                        total += x[b, c, i + q] * w[o, c, q]
                y[b, o, i] = total
    return y
"""
GROUPS = """
def f(x, w):
    n = w.shape[0] // 4
    y = output_tensor((x.shape[0], w.shape[0], x.shape[2]), x.dtype)
    for b in range(x.shape[0]):
        for g in range(4):
            for o in range(n):
                for i in range(x.shape[2]):
                    total = 0.0
                    for c in range(w.shape[1]):
                        total += x[b, g * w.shape[1] + c, i] * w[g * n + o, c]
                    y[b, g * n + o, i] = total
    return y
"""
STEPS = """
def f(x, w):
    y = output_tensor((w.shape[0], 2 * x.shape[1] + w.shape[2] - 2, 3 * x.shape[2] + w.shape[3] - 3), x.dtype)
    for o in range(w.shape[0]):
        for c in range(x.shape[0]):
            for i in range(x.shape[1]):
                for j in range(x.shape[2]):
                    for p in range(w.shape[2]):
                        for q in range(w.shape[3]):
                            y[o, 2 * i + p, 3 * j + q] += x[c, i, j] * w[o, c, p, q]
    return y
"""
POOL = """
def f(x, size: int = 3):
    y = output_tensor((x.shape[0], (x.shape[1] + 2 - size) // 2 + 1), x.dtype)
    for c in range(x.shape[0]):
        for j in range(y.shape[1]):
            total = 0.0
            for q in range(size):
                if 0 <= 2 * j - 1 + q and 2 * j - 1 + q < x.shape[1]:
                    total += x[c, 2 * j - 1 + q]
            y[c, j] = total
    return y
"""
FOLDED = """
def f(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                s = s * 0.5 + x[i, j, k]
        y[i] = s
    return y
"""
CARRIED = """
def f(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = y[i - 1] * x[i] if i > 0 else x[i]
    return y
"""
TWO_FILTERS = """
def f(x, u, w):
    n = x.shape[2]
    t = allocate(x.shape, x.dtype)
    for b in range(x.shape[0]):
        for c in range(x.shape[1]):
            for i in range(n):
                total = 0.0
                for p in range(u.shape[1]):
                    if 0 <= i + p - 1 and i + p - 1 < n:
                        total += x[b, c, i + p - 1] * u[c, p]
                t[b, c, i] = total
    y = output_tensor((x.shape[0], w.shape[0], n), x.dtype)
    for b in range(x.shape[0]):
        for o in range(w.shape[0]):
            for i in range(n):
                total = 0.0
                for c in range(x.shape[1]):
                    for p in range(w.shape[2]):
                        if 0 <= i + p - 1 and i + p - 1 < n:
                            total += t[b, c, i + p - 1] * w[o, c, p]
                y[b, o, i] = total
    return y
"""
CASES = {
    "one long row": (ROW, (3, 3), "loop b: where it is short, threads share the lanes of loop i, too"),
    "groups": (GROUPS, (3, 2), "loop i: tiled in registers with loop o, operands packed"),
    "stores with steps": (STEPS, (3, 4), "loop j: tiled in registers with loop o"),
    "a short window": (POOL, (2,), "loop j: vector lanes"),
    "a recurrence in two loops": (FOLDED, (3,), "loop i: vector lanes"),
    "a recurrence in a line": (CARRIED, (1,), "loop i: in order: line 5 both writes and reads y"),
}


def typed(text, ranks, generate):
    return parse(generate.function_of(text), [("float32", rank) for rank in ranks], {})


@pytest.mark.parametrize("name", CASES)
def test_what_loops_become(name, generate):
    text, ranks, expected = CASES[name]
    found = [note.text for note in schedule(typed(text, ranks, generate)).notes]
    assert any(note.startswith(expected) for note in found), found


def test_a_loop_in_order_is_not_split_at_its_borders(generate):
    notes = schedule(typed(CARRIED, (1,), generate)).notes
    assert "index_set_splitting" not in {note.kind for note in notes}


def test_each_gradient_of_two_filters_has_a_nest_of_its_own(generate):
    kernel = adjoint(typed(TWO_FILTERS, (3, 2, 3), generate), [True]).kernel
    written = [stored_by((node,)) & {"d_x", "d_u", "d_w"} for node in kernel.body]
    assert sorted(name for names in written for name in names) == ["d_u", "d_w", "d_x"]
    assert max(map(len, written)) == 1


FILTER = """
def f(x, w):
    y = output_tensor((w.shape[0], x.shape[1] - w.shape[2] + 1, x.shape[2] - w.shape[3] + 1), x.dtype)
    for o in range(w.shape[0]):
        for i in range(y.shape[1]):
            for j in range(y.shape[2]):
                for c in range(w.shape[1]):
                    for p in range(w.shape[2]):
                        for q in range(w.shape[3]):
                            y[o, i, j] += x[c, i + p, j + q] * w[o, c, p, q]
    return y
"""


def test_the_gradient_of_a_filter_goes_row_by_row(generate):
    gradient = adjoint(typed(FILTER, (3, 4), generate), [True]).kernel
    program = schedule(gradient)
    (nest,) = (node for node in program.kernel.body if "d_w" in stored_by((node,)))
    row, *others = [loop.var for loop in perfect(nest)]
    assert program.plan.private[row] == (("d_w", "+"),)
    assert {program.plan.tiles[var].row for var in others if var in program.plan.tiles} <= {*others}
    assert any(var in program.plan.tiles for var in others)
