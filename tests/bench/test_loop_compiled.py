"""Each benchmark kernel, compiled, equals NumPy in float64."""

import pathlib
import sys

import numpy as np
import pytest

BENCH = pathlib.Path(__file__).parents[2] / "bench"
sys.path.insert(0, str(BENCH))

from loops.npbench import ROWS  # noqa: E402 - beside the benchmarks
from loops.polybench import PROGRAMS  # noqa: E402 - beside the benchmarks
from tuning import operator  # noqa: E402 - beside the benchmarks

ALL_PROGRAMS = {**{f"polybench {name}": row for name, row in PROGRAMS.items()}, **ROWS}


@pytest.mark.slow(3)
@pytest.mark.parametrize("name", ALL_PROGRAMS)
@pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")  # PolyBench adds to zeros
def test_compiled_equals_numpy(name):
    program = ALL_PROGRAMS[name]
    ours, theirs = (program.arguments(program.small, "float64") for _ in range(2))
    results, expected = operator(name, program, ours)(*ours), program.numpy(*theirs)
    for one, other in zip(*(v if isinstance(v, tuple) else (v,) for v in (results, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
