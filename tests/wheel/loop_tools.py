"""Shared by the tests of the loop wheel example: its index, and programs that use it."""

from wheel_tools import run

from polyop.loops.targets import isa

INDEX = "loopops/__polyop__/kernels.json"
ISAS = ", ".join(isa.family())
CALLS = """
import sys, numpy as np, loopops
for dtype in (np.float32, np.float64):
    x = np.random.default_rng(0).normal(size=(7, 33)).astype(dtype)
    e = np.exp(x - x.max(1, keepdims=True))
    y = loopops.softmax(x)
    assert y.dtype == dtype
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(loopops.scale(x[0]), 2 * x[0])
    np.testing.assert_array_equal(loopops.scale(x[::2, 3], factor=0.5), x[::2, 3] / 2)
    dy = x[::-1]
    dx = loopops.softmax.vjp(x)[1](dy)[0]
    np.testing.assert_allclose(dx, y * (dy - (dy * y).sum(1, keepdims=True)), rtol=1e-4, atol=1e-6)
"""
FLOAT32 = "import numpy as np, loopops; print(loopops.scale(np.ones(2, np.float32)))"


def use(folder, program, check=True, **environment):
    """Run a program where the wheel is installed in a folder."""
    return run("-c", program, PYTHONPATH=str(folder), check=check, **environment)
