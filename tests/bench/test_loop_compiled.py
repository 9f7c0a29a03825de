"""Each benchmark kernel, compiled, equals NumPy in float64."""

import pathlib
import re
import sys

import numpy as np
import pytest

BENCH = pathlib.Path(__file__).parents[2] / "bench"
sys.path.insert(0, str(BENCH))

from loops.npbench import ROWS  # noqa: E402 - beside the benchmarks
from loops.polybench import PROGRAMS  # noqa: E402 - beside the benchmarks

import polyop  # noqa: E402 - after the path
from polyop.kernels.loop.kernel import LoopKernel  # noqa: E402 - after the path
from polyop.loops.frontend.parse import outline  # noqa: E402 - after the path

ALL_PROGRAMS = {**{f"polybench {name}": row for name, row in PROGRAMS.items()}, **ROWS}


def operator(name, program, arguments):
    """Return the program as an operator, with a schema made from its arguments."""
    parsed = outline(program.kernel)
    tensors = sum(isinstance(a, np.ndarray) for a in arguments)
    letters = {parameter: chr(97 + k) for k, (_, parameter) in enumerate(parsed.inplace)}
    inplace = dict(parsed.inplace)

    def kind(parameter):
        return f"Tensor({letters[parameter]}!)" if parameter in letters else "Tensor"

    arguments_text = [f"{kind(k)} {n}" for k, n in enumerate(parsed.parameters[:tensors])]
    numbers = zip(parsed.parameters[tensors:], arguments[tensors:], strict=True)
    arguments_text += [f"{type(value).__name__} {n}" for n, value in numbers]
    returned = [kind(inplace[k]) if k in inplace else "Tensor" for k in range(len(parsed.outputs))]
    result = returned[0] if len(returned) == 1 else f"({', '.join(returned)})"
    clean = "of_" + re.sub(r"\W", "_", name)
    kernel = LoopKernel(program.kernel, parsed.parameters[tensors:])
    return polyop.operator(f"benchmark::{clean}({', '.join(arguments_text)}) -> {result}", kernel)


@pytest.mark.parametrize("name", ALL_PROGRAMS)
@pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")  # PolyBench adds to zeros
def test_compiled_equals_numpy(name):
    program = ALL_PROGRAMS[name]
    ours, theirs = (program.arguments(program.small, "float64") for _ in range(2))
    results, expected = operator(name, program, ours)(*ours), program.numpy(*theirs)
    for one, other in zip(*(v if isinstance(v, tuple) else (v,) for v in (results, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
