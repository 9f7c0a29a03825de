# ruff: noqa: F821 - kernels, whose words are no names here
"""``polyop.testing.check`` on arrays of PyOpenCL: values beside NumPy's or the reference's, and gradients."""

import numpy as np
import pytest

import polyop
from polyop.testing.check import check

CODE = """
__kernel void f(__global const float *x, const float a, __global float *out) {
  out[get_global_id(0)] = a * x[get_global_id(0)];
}
"""
THERE = ("numpy", "pyopencl")


def on_a_device(name, factor=1.0, **more):
    """Return an operator whose only kernel multiplies by an attribute and has a gradient times ``factor``."""
    op = polyop.operator(
        f"opencl_tests::{name}(Tensor x, float a=2.0) -> Tensor",
        polyop.source(code=CODE, function="f", language="opencl"),
        dims="n m -> n m",
        grid=lambda meta: (meta["n"] * meta["m"],),
        gradient=lambda x, a, out, dout: (op(dout, a * factor), None),
        **more,
    )
    return op


def rows(report):
    return {row.check: (row.status, row.detail) for row in report.results if row.host == "pyopencl"}


def test_a_loop_kernel(new_context):
    @polyop.kernel(name="opencl_tests::row_norm")
    def row_norm(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            total = 0.0
            for j in range(x.shape[1]):
                total += x[i, j] * x[i, j]
            for j in range(x.shape[1]):
                y[i, j] = x[i, j] / sqrt(total + 1)
        return y

    found = rows(check(row_norm, hosts=THERE))
    assert {name: status for name, (status, _) in found.items()} == {
        "values, across hosts": "passed",
        "gradient": "passed",
    }
    assert rows(check(row_norm, hosts=["numpy"])) == {}  # each kernel would be compiled once more


def test_a_kernel_that_only_the_device_has_is_compared_with_the_reference(new_context):
    op = on_a_device("doubled_there", reference=lambda x, a: x * np.float32(a))
    found = rows(check(op, hosts=THERE))
    assert found["values, across hosts"][0] == found["gradient"][0] == "passed"
    other = check(op, hosts=THERE, reference=lambda x, a: x + np.float32(a), raise_on_failure=False)
    status, detail = rows(other)["values, across hosts"]
    assert status == "failed" and "the reference" in detail


def test_a_wrong_gradient_on_the_device_is_found(new_context):
    op = on_a_device("doubled_wrongly", 1.5, reference=lambda x, a: x * np.float32(a))
    status, detail = rows(check(op, hosts=THERE, raise_on_failure=False))["gradient"]
    assert status == "failed" and "x: its gradient" in detail


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: on_a_device("without_reference"), "no kernel runs on the CPU, and there is no reference"),
        (
            lambda: polyop.operator("opencl_tests::here(Tensor x) -> Tensor", lambda x: x + 1, infer="x"),
            "no kernel runs on opencl",
        ),
    ],
)
def test_what_cannot_be_compared_is_not_run(make, why, new_context):
    assert rows(check(make(), hosts=THERE))["values, across hosts"] == ("not run", why)
