"""Threads that share the lanes of a tile: any number of them computes the same, for any number of lanes."""

import numpy as np
import pytest

from polyop.loops.frontend.parse import parse
from polyop.loops.pipeline import schedule
from polyop.loops.targets import isa

PRODUCTS = """
def f(x, w):
    y = output_tensor((x.shape[0], x.shape[1], w.shape[2]), x.dtype)
    for n in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range({lanes}):
                for k in range(x.shape[2]):
                    y[n, i, j] += x[n, i, k] * w[n, k, j]
    return y
"""
LANES = {
    "whole": "w.shape[2]",
    "upper": "i, w.shape[2]",
    "lower": "min(i + 1, w.shape[2])",
    "band": "max(0, i - 3), min(w.shape[2], i + 70)",
}
NAMED = """
def f(trips, q):
    parts = output_tensor((trips.shape[0], trips.shape[1], q.shape[2]), trips.dtype)
    for lo in range(trips.shape[0]):
        for hi in range(trips.shape[1]):
            for q_2 in range(q.shape[2]):
                for q_3 in range(trips.shape[2]):
                    parts[lo, hi, q_2] += trips[lo, hi, q_3] * q[lo, q_3, q_2]
    return parts
"""
KERNELS = {name: PRODUCTS.format(lanes=lanes) for name, lanes in LANES.items()} | {"names": NAMED}
SIZES = [  # batch, rows, terms, lanes
    *((1, 9, 5, lanes) for lanes in (0, 1, 15, 16, 17, 63, 64, 65, 200, 257, 1000)),
    *((batch, 17, 3, 130) for batch in (0, 2, 3, 40)),
    (1, 0, 3, 130),
    (1, 3, 0, 130),
    (1, 300, 2, 100),
]


def typed(name, generate, dtype="float32"):
    return parse(generate.function_of(KERNELS[name]), [(dtype, 3)] * 2, {})


@pytest.mark.parametrize("name", ["whole", "names"])
def test_lanes_are_shared(name, generate):
    plan = schedule(typed(name, generate)).plan
    assert list(plan.blocks.values()) == [*plan.tiles]


@pytest.mark.slow
@pytest.mark.parametrize("target", isa.available())
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled(dtype, target, generate, batch):
    kernels = [typed(name, generate, dtype) for name in KERNELS]
    path = batch.build(batch.text(kernels, target), "-DPOLYOP_GRAIN=1")
    draw = np.random.default_rng(2)
    for place, (name, source) in enumerate(KERNELS.items()):
        run = batch.bound(generate.function_of(source), [(dtype, 3)] * 2, {}, path, place)
        for samples, rows, terms, lanes in SIZES:
            x = draw.uniform(-1, 1, (samples, rows, terms)).astype(dtype)
            w = draw.uniform(-1, 1, (samples, terms, lanes)).astype(dtype)
            i, j = np.arange(rows)[:, None], np.arange(lanes)
            kept = {"upper": j >= i, "lower": j <= i, "band": (j >= i - 3) & (j < i + 70)}.get(name, i >= 0)
            with batch.threads(1):
                alone = run(x, w)[0]
            np.testing.assert_allclose(alone, np.where(kept, x @ w, 0), rtol=1e-4, atol=1e-5)
            for threads in (2, 3, 7):
                with batch.threads(threads):
                    np.testing.assert_array_equal(run(x, w)[0], alone)
