"""Reductions of conditions, over rows of any length: the last lanes, which have no element, change nothing."""

import numpy as np
import pytest

import instruction_sets
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret

WHOLE = """
def f(x, z):
    y = output_tensor((1,), "int64")
    found = {start}
    for i in range(x.shape[0]):
        {update}
    y[0] = found + 0
    return y
"""
ROWS = """
def f(x, z):
    y = output_tensor(z.shape, "bool")
    for i in range(z.shape[0]):
        y[i] = {start}
    for {outer} in range({outer}_size.shape[0]):
        for {inner} in range({inner}_size.shape[0]):
            {update}
    return y
"""
UPDATES = {
    "found = min(found, x[i] > 0)": True,
    "found = max(found, x[i] > 0)": False,
    "found = found and x[i] > 0": True,
    "found = found or x[i] > 0": False,
    "found *= x[i] > 0": True,
    "found += x[i] > 0": False,
    "found ^= x[i] > 0": False,
}
OF_ROWS = ("min", "max", "and", "*", "+")
"""The updates that are tried for each row of a tensor too."""


def sources():
    found = [WHOLE.format(start=start, update=update) for update, start in UPDATES.items()]
    found.append(WHOLE.format(start="0", update="found += x[i] > 0"))
    for update, start in UPDATES.items():
        if any(word in update for word in OF_ROWS):
            of_row = update.replace("found", "y[i]").replace("x[i] > 0", "x[j] > z[i]")
            for outer, inner in ("ij", "ji"):
                rows = ROWS.format(start=start, update=of_row, outer=outer, inner=inner)
                found.append(rows.replace("i_size", "z").replace("j_size", "x"))
    return found


@pytest.fixture(scope="session", params=instruction_sets.EACH)
def compiled(request, batch, generate):
    """Return the kernels of the sources in float32, and functions that call them compiled."""
    functions, types = [generate.function_of(text) for text in sources()], [("float32", 1)] * 2
    kernels = [parse(function, types, {}) for function in functions]
    path = batch.build(batch.text(kernels, request.param), "-DPOLYOP_GRAIN=1")
    calls = [batch.bound(function, types, {}, path, place) for place, function in enumerate(functions)]
    return [*zip(kernels, calls, strict=True)]


@pytest.mark.slow(5)
@pytest.mark.parametrize("length", range(41))
def test_values(length, compiled, batch):
    rows = [np.ones(length), -np.ones(length), np.random.default_rng(length).integers(-3, 4, length)]
    rows += [np.where(np.arange(length) == place, -1, 1) for place in (0, length - 1)]
    z = np.zeros(length % 7 + 1, "float32")
    for (kernel, call), x in ((pair, row.astype("float32")) for pair in compiled for row in rows):
        (expected,) = interpret(kernel, [x, z])
        for threads in (1, 3):
            with batch.threads(threads):
                np.testing.assert_array_equal(call(x, z)[0], expected)
