"""Rows in which each element depends on the one before: the loops that keep it in a scalar mean the same."""

import numpy as np
import pytest

from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.pipeline import schedule

DTYPES = ("float64", "float32", "int64", "int32", "int8", "uint8", "uint16", "complex64")
KEPT = {
    "sum": "range(1, n): y[j] = y[j - 1] + x[j]",
    "last": "range(n): y[j] = y[j - 1] + x[j]",  # y[-1] is the last element
    "twice": "range(1, n): y[j] = y[j - 1] * y[j - 1] + x[j]",
    "two": "range(1, n): y[j] = y[j - 1] + z[j]; z[j] = z[j - 1] - x[j]",
    "down": "range(n - 2, -1, -1): y[j] = y[j + 1] + x[j]",
    "two steps": "range(2, n, 2): y[j] = y[j - 2] + x[j]",
    "read first": "range(n): z[j] = y[j - 1]; y[j] = x[j]",
    "of every second": "range(1, n // 2): y[2 * j] = y[2 * j - 2] - x[j]",
    "halves": "range(1, n): y[j // 2] = y[(j - 1) // 2] + x[j]",
    "remainders": "range(n): y[j % 3] = y[(j - 1) % 3] + x[j]",
}
LOADED = {
    "halves are read": "range(n): y[j // 2] = x[j]; z[j] = y[(j - 1) // 2]",
    "remainders are read": "range(n): y[j % m] = x[j]; z[j] = y[(j - 1) % m]",
    "clamped": "range(1, n): y[min(j, 2)] = x[j]; z[j] = y[min(j - 1, 2)]",
    "last is read": "range(n): y[j] = x[j]; z[j] = y[j - 1]",  # in a row of one it is this element
    "two before": "range(2, n): y[j] = y[j - 1] + y[j - 2]",
    "after": "range(n - 1): y[j] = y[j - 1] + y[j + 1]",
    "chosen": "range(n): y[j] = y[j - 1] if x[j] > 0 else x[j]",
    "stored twice": "range(n): y[j] = y[j - 1] + x[j]; y[j] = y[j - 1] * 2",
}
SIZES = (0, 1, 2, 3, 4, 5, 8, 17)


def kernel_of(text, dtype, generate):
    """Return the kernel ``f(x, y, z)`` of one loop, and its loops after all passes."""
    head, body = text.split(": ", 1)
    lines = ["n = x.shape[0]", "m = max(1, n // 3)", f"for j in {head}:"]
    lines += [f"    {one}" for one in body.split("; ")]
    source = "\n".join(["def f(x, y, z):", *(f"    {line}" for line in lines), "    return y, z", ""])
    kernel = parse(generate.function_of(source), [(dtype, 1)] * 3, {})
    return kernel, schedule(kernel)


def kept(program):
    """Return the tensors whose elements are kept in scalars."""
    return [note.text.split(":")[0] for note in program.notes if note.kind == "predictive_commoning"]


@pytest.mark.parametrize("name", [*KEPT, *LOADED])
def test_loops_mean_the_same(name, generate):
    kernel, program = kernel_of({**KEPT, **LOADED}[name], "int32", generate)
    assert bool(kept(program)) == (name in KEPT)
    for size in SIZES:
        draw = np.random.default_rng(size)
        arrays = [draw.integers(-3, 4, size).astype("int32") for _ in range(3)]
        try:
            expected = interpret(kernel, arrays)
        except IndexError:
            with pytest.raises(IndexError):
                interpret(program.kernel, arrays)
            continue
        for one, other in zip(interpret(program.kernel, arrays), expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"{size}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars_have_the_dtype_of_their_tensor(dtype, generate):
    kernel, program = kernel_of(KEPT["twice"], dtype, generate)
    assert kept(program) == ([] if dtype == "complex64" else ["y"])  # two numbers are an element
    arrays = [np.arange(k, k + 9).astype(dtype) for k in (1, 5, 2)]
    np.testing.assert_array_equal(interpret(program.kernel, arrays)[0], interpret(kernel, arrays)[0])
