"""Gradients of every program of the table and of every benchmark kernel, against differences."""

import sys
from pathlib import Path

import numpy as np
import pytest

from derive_samples import differences
from polyop.loops.frontend.parse import outline

BENCH = Path(__file__).parents[3] / "bench"
sys.path.insert(0, str(BENCH))

from loops.npbench import ROWS  # noqa: E402 - beside the benchmarks
from loops.polybench import PROGRAMS  # noqa: E402 - beside the benchmarks

EVERY = {**{f"polybench {name}": row for name, row in PROGRAMS.items()}, **ROWS}
TIED = {"polybench floyd-warshall"}  # of whole numbers, and zeros: paths of one length have no one derivative
SIZES = (0, 1, 2, 3, 7)


def sizes_of(program):
    """Return equal sizes, among them none and one, and two different ones for different axes."""
    axes = [a for _, own, below in program.rows for a in (*own, below) if a and not a.isdigit()]
    symbols = list(dict.fromkeys(axes))
    found = [dict.fromkeys(symbols, size) for size in SIZES]
    found += [{s: (5, 1, 4, 3)[(k + shift) % 4] for k, s in enumerate(symbols)} for shift in range(2)]
    few = [one for one in found if np.prod([one[s] for s in symbols], dtype=int) <= 60]
    return [one for one in few if min(one.values(), default=1) >= program.least]


@pytest.mark.slow(2)
def test_a_program(smooth, helpers):
    first = helpers.arrays(smooth, helpers.sizes(smooth))
    derived = differences.Derived(smooth.function, first, smooth.attributes)
    for seed, sizes in enumerate(sizes_of(smooth)):
        arrays = helpers.arrays(smooth, sizes, seed)
        differences.check_directions(derived, arrays, count=1)


@pytest.mark.slow(5)
@pytest.mark.parametrize("name", EVERY)
def test_a_benchmark(name):
    program = EVERY[name]
    arguments = program.arguments({k: min(v, 4) for k, v in program.small.items()}, "float64")
    arrays = [a for a in arguments if np.ndim(a) > 0]
    if name in TIED:
        arrays = [np.random.default_rng(0).uniform(1, 10, a.shape) for a in arrays]
    names = outline(program.kernel).parameters[len(arrays) :]
    derived = differences.Derived(
        program.kernel, arrays, dict(zip(names, arguments[len(arrays) :], strict=True))
    )
    differences.check_directions(derived, arrays, count=2, rough=1e-5)
