"""Queues of one context, and operators whose kernel follows the contract for OpenCL by hand."""

import pathlib

import numpy as np
import pytest

import polyop

cl = pytest.importorskip("pyopencl", reason="pyopencl is not installed")
cl_array = pytest.importorskip("pyopencl.array")

collect_ignore = ["page.py"]
SOURCE = pathlib.Path(__file__).parents[2] / "sources" / "opencl_kernels.cc"
OUT_OF_ORDER = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE


@pytest.fixture(scope="session")
def new_context():
    """Return a function that makes a context with the first device, or skip the test."""
    try:
        devices = cl.get_platforms()[0].get_devices()[:1]
    except cl.Error as problem:
        pytest.skip(f"no device of OpenCL (apt-get install pocl-opencl-icd): {problem}")
    return lambda: cl.Context(devices)


@pytest.fixture(scope="session")
def context(new_context):
    return new_context()


@pytest.fixture(params=["in order", "out of order"])
def queue(request, context):
    return cl.CommandQueue(context, properties=OUT_OF_ORDER if request.param == "out of order" else 0)


@pytest.fixture(scope="session")
def kernels():
    """Return a function from a name in tests/sources/opencl_kernels.cc to its kernel."""
    return lambda name: polyop.source(SOURCE, function=name, device="opencl", link_flags=["-ldl"])


@pytest.fixture(scope="session")
def scaled(kernels):
    """a * x in float32; its gradient calls itself."""
    op = polyop.operator(
        "opencl_tests::scaled(Tensor x, float a=2.0) -> Tensor",
        kernels("scaled"),
        dtypes=["float32"],
        infer="x",
        gradient=lambda x, a, out, dout: (op(dout, a), None),
    )
    return op


@pytest.fixture(scope="session")
def scale_(kernels):
    """x *= a in place, float32."""
    return polyop.operator("opencl_tests::scale_(Tensor(a!) x, float a) -> ()", kernels("scale_in_place"))


@pytest.fixture(scope="session")
def given(kernels):
    """a * x in float32, if there is a y; else the kernel fails."""
    schema = "opencl_tests::given(Tensor x, Tensor? y=None, *, float a) -> Tensor"
    return polyop.operator(schema, kernels("copied_if_given"), infer="x")


@pytest.fixture(scope="session")
def on_cpu():
    return polyop.operator("opencl_tests::on_cpu(Tensor x) -> Tensor", lambda x: x + 1, infer="x")


@pytest.fixture(scope="session")
def squared():
    """x * x; its gradient is one of PyOpenCL's own functions."""
    code = """
    __kernel void f(__global const float *x, __global float *out) {
      const size_t i = get_global_id(0);
      out[i] = x[i] * x[i];
    }
    """
    return polyop.operator(
        "opencl_tests::squared(Tensor x) -> Tensor",
        polyop.source(code=code, function="f", language="opencl"),
        dims="n m -> n m",
        grid=lambda meta: (meta["n"] * meta["m"],),
        gradient=lambda x, out, dout: (2 * x * dout + 0 * out,),
    )


@pytest.fixture
def x(queue):
    """Six rows of four numbers, on the queue."""
    return cl_array.to_device(queue, np.arange(24, dtype=np.float32).reshape(6, 4))
