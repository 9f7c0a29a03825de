"""Kernels that the tests of reports show."""

# ruff: noqa: F821 - the words of the loop language

import pathlib
import runpy

import polyop

SEQUENCES = pathlib.Path(__file__).parents[2] / "examples" / "23_sequences" / "kernels.py"
attention = runpy.run_path(str(SEQUENCES))["attention"]


@polyop.kernel(name="report_tests::softmax")
def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(1, x.shape[1]):
            top = max(top, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - top)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / total
    return y


@polyop.kernel(name="report_tests::decay")
def decay(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
        if i > 0:
            y[i] += float32(0.9) * y[i - 1]
    return y


@polyop.kernel(name="report_tests::sweep")
def sweep(x):
    """A Gauss-Seidel sweep: each element needs the new values above and to the left of it."""
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j]
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = float32(0.5) * (y[i - 1, j] + y[i, j - 1])
    return y


doubled = polyop.operator("report_tests::doubled(Tensor x) -> Tensor", lambda x: x * 2, infer="x")
