# ruff: noqa: F821 - kernels, whose words are no names here
"""Statements under a condition on lanes, where the machine has few instructions for vectors."""

import subprocess

import pytest

from polyop.loops.derive.forms import adjoint
from polyop.loops.derive.functional import functional
from polyop.loops.frontend.parse import parse
from polyop.loops.pipeline import schedule


def smallest_under_if(x, bound, steps):
    y = output_tensor((x.shape[2], steps.shape[1]), x.dtype)
    for i in range(steps.shape[2] - 1, -1, -1):
        s = steps[0, 0, i]
        for k in range(x.shape[2]):
            for j in range(x.shape[1]):
                if bound[j] > x[0, (j + j) // 2, k]:
                    y[k, j] = min(y[k, j], max(s, x[i, j, k] + x[i, j, k % 3]))
    return y


@pytest.mark.slow(1)
@pytest.mark.parametrize("optimised", ["-O1", "-O2", "-O3"])
def test_the_compiler_survives_masks_that_branches_share(batch, optimised):
    """gcc 12 crashed on such masks without SSE4.1, which the baseline of portable libraries is."""
    kernel = functional(parse(smallest_under_if, [("float64", 3), ("float64", 1), ("float64", 3)], {}))
    gradient = adjoint(kernel, [True]).kernel
    source = batch.text([schedule(gradient)], "baseline")
    command = [*batch.COMPILER, optimised, "-x", "c", "-", "-S", "-o", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    assert "loops_0" in done.stdout
