"""Windows that slide over rows which are packed once: widths around those of vectors and strips."""

import re

import numpy as np
import pytest

from polyop.loops.emit.printer import source as source_of
from polyop.loops.frontend.parse import parse
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa

WINDOWS = """
def f(x, w):
    y = output_tensor((w.shape[0], x.shape[1] - w.shape[2] + 1), x.dtype)
    for o in range(w.shape[0]):
        for i in range(y.shape[1]):
            total = {zero}
            for c in range(w.shape[1]):
                for p in range({first}w.shape[2]):
                    total += x[c, {index}] * w[o, c, p]
            y[o, i] = total
    return y
"""
PHASES = """
def f(x, w):
    y = output_tensor((w.shape[1], x.shape[1], 2 * x.shape[2] - 2 + w.shape[2]), x.dtype)
    for o in range(w.shape[1]):
        for i in range(x.shape[1]):
            for r in range(2):
                for j in range(y.shape[2] // 2):
                    for c in range(w.shape[0]):
                        for q in range(max(0, j - x.shape[2] + 1), min(j + 1, (w.shape[2] - r + 1) // 2)):
                            y[o, i, 2 * j + r] += x[c, i, j - q] * w[c, o, 2 * q + r]
    return y
"""
FORWARD, BACKWARD = "i + p", "i + w.shape[2] - 1 - p"
CASES = {
    "forward": ("float32", "0.0", "", FORWARD),
    "backward": ("float32", "0.0", "", BACKWARD),
    "without the first": ("float32", "0.0", "1, ", FORWARD),
    "backward without the first": ("float64", "0.0", "1, ", BACKWARD),
    "float64": ("float64", "0.0", "", FORWARD),
    "int32": ("int32", "0", "", FORWARD),
    "float16": ("float16", "0.0", "", BACKWARD),
}
SIZES = [  # outputs, channels, width of the window, elements of the result
    *((9, 2, width, 70) for width in (0, 1, 2, 15, 16, 17, 33, 64, 70)),
    *((3, 1, 5, lanes) for lanes in (0, 1, 15, 16, 17, 63, 64, 65, 130)),
    (17, 3, 3, 129),
    (1, 0, 3, 20),
    (0, 2, 3, 20),
]


def function(case, generate):
    _, zero, first, index = CASES[case]
    return generate.function_of(WINDOWS.format(zero=zero, first=first, index=index))


def typed(case, generate):
    return parse(function(case, generate), [(CASES[case][0], 2), (CASES[case][0], 3)], {})


def expected(x, w, case):
    """Return what the loops of a case compute, one element of the window after another."""
    _, _, first, index = CASES[case]
    lanes = x.shape[1] - w.shape[2] + 1
    y = np.zeros((w.shape[0], lanes))
    for p in range(1 if first else 0, w.shape[2]):
        start = p if index == FORWARD else w.shape[2] - 1 - p
        y += w[:, :, p].astype(float) @ x[:, start : start + lanes].astype(float)
    return y.astype(x.dtype)


@pytest.mark.parametrize("case", ["forward", "backward"])
def test_a_row_is_packed_once_and_not_at_all_for_an_empty_window(case, generate):
    text = source_of(schedule(typed(case, generate)), isa.available()[0], "f")
    names = set(re.findall(r"(\w+)_step = ", text))
    assert names
    for name in names:
        packed = re.findall(rf"\n( *)if \({name}_n > 0\) {{\n *(store|for)", text)
        assert packed, name
        assert len(re.findall(rf"store_\w+\({name} \+", text)) > len(packed)


@pytest.mark.parametrize("target", isa.available())
def test_loops_under_a_condition_are_packed_within_themselves(target, generate):
    """The range of ``q`` follows from ``r``, so that nothing is packed over it."""
    kernel = parse(generate.function_of(PHASES), [("float32", 3)] * 2, {})
    program = schedule(kernel)
    assert program.plan.tiles
    assert "store_" in source_of(program, target, "f")  # or a name is declared nowhere, an error


@pytest.mark.slow
@pytest.mark.parametrize("target", isa.available())
def test_compiled(target, generate, batch):
    path = batch.build(batch.text([typed(case, generate) for case in CASES], target), "-DPOLYOP_GRAIN=1")
    draw = np.random.default_rng(1)
    for place, (case, (dtype, *_)) in enumerate(CASES.items()):
        run = batch.bound(function(case, generate), [(dtype, 2), (dtype, 3)], {}, path, place)
        for outputs, channels, width, lanes in SIZES:
            x = draw.integers(-2, 3, (channels, max(0, lanes + width - 1))).astype(dtype)
            w = draw.integers(-2, 3, (outputs, channels, width)).astype(dtype)
            for threads in (1, 3):
                with batch.threads(threads):
                    np.testing.assert_array_equal(run(x, w)[0], expected(x, w, case))
