"""Kernels in OpenCL C: their parameters, grids, constants and errors, and the binaries in the build cache."""

import math
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import polyop
from polyop.build.cache import Cache
from polyop.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BuildError,
    KernelError,
    NoKernelError,
    SchemaError,
)

cl = pytest.importorskip("pyopencl")
cl_array = pytest.importorskip("pyopencl.array")
HERE = pathlib.Path(__file__).parent
COPY = (
    "__kernel void f(__global const {type} *x, __global {type} *out) {{ out[get_global_id(0)] = {value}; }}"
)


@pytest.fixture(scope="module")
def scale():
    grad = polyop.operator(
        "opencl_tests::scale_grad(Tensor dout, float a) -> Tensor",
        f"{HERE / 'scale.cl'}:scale_grad",
        dims="b n -> b n",
        grid=lambda meta: (meta["b"] * meta["n"],),
    )
    return polyop.operator(
        "opencl_tests::scale(Tensor x, float a) -> Tensor",
        f"{HERE / 'scale.cl'}:scale",
        dims="b n -> b n",
        grid=lambda meta: (meta["n"], meta["b"]),
        gradient=lambda x, a, out, dout: (grad(dout, a), None),
    )


def of_text(name, code, schema="Tensor x", **more):
    """Return an operator of one text; the kernel is called f."""
    kernel = polyop.source(code=code, function="f", language="opencl")
    more = {"infer": "x", "grid": (1,), **more}
    return polyop.operator(f"opencl_tests::{name}({schema}) -> Tensor", kernel, **more)


def test_a_kernel_of_a_file_and_its_gradient(scale, x):
    out, pull = scale.vjp(x[:, 1:], 3.0)
    np.testing.assert_array_equal(out.get(), 3 * x.get()[:, 1:])
    np.testing.assert_array_equal(pull(out)[0].get(), 9 * x.get()[:, 1:])


def test_no_work_items(scale, x):
    assert scale(cl_array.zeros(x.queue, (0, 4), np.float32), 3.0).shape == (0, 4)


@pytest.mark.parametrize("kind", ["int8", "uint16", "int64", "complex64"])
def test_elements_of_other_types(context, kind):
    types = {"int8": "char", "uint16": "unsigned short", "int64": "long", "complex64": "float2"}
    op = of_text(f"of_{kind}", COPY.format(type=types[kind], value="-x[get_global_id(0)]"), grid=(3,))
    values = np.array([1, 2, 3], kind)
    np.testing.assert_array_equal(op(cl_array.to_device(cl.CommandQueue(context), values)).get(), -values)


def test_a_pointer_of_another_dtype_is_refused(scale, x):
    with pytest.raises(
        NoKernelError, match=r"its parameter __global const float \*x takes float32, not float64"
    ):
        scale(x.astype(np.float64), 3.0)


def test_constants_are_macros_and_the_size_of_a_group(context):
    code = COPY.format(type="float", value="get_local_size(0) * FACTOR + x[get_global_id(0)]")
    constants = {"FACTOR": lambda meta: meta["n"], "local_size": (2,)}
    op = of_text(
        "constants", code, dims="n -> n", infer=None, grid=lambda meta: (meta["n"],), constants=constants
    )
    x = cl_array.to_device(cl.CommandQueue(context), np.zeros(4, np.float32))
    np.testing.assert_array_equal(op(x).get(), [8, 8, 8, 8])


def test_a_number_that_its_parameter_cannot_hold(context):
    code = "__kernel void f(__global const float *x, char a, __global float *out) { out[0] = a; }"
    op = of_text("too_large", code, "Tensor x, int a", grid=(1,))
    x = cl_array.to_device(cl.CommandQueue(context), np.zeros(1, np.float32))
    np.testing.assert_array_equal(op(x, -128).get(), [-128])
    with pytest.raises(
        KernelError, match=r"code:f: the parameter char a holds no such number, but got 128\n"
    ):
        op(x, 128)


CHANGES = [
    ("int", 2.0, False),
    ("float", None, False),
    ("float", 1e300, False),
    ("float", 2**24 + 1, False),
    ("half", 0.1, True),
]


@pytest.mark.parametrize(("kind", "value", "fits"), [*CHANGES, ("float", 7, True), ("float", math.inf, True)])
def test_a_number_that_would_change_is_refused(kind, value, fits):
    code = f"kernel void f(global float *x, {kind} a, global float *out) {{}}"
    kernel = polyop.source(code=code, function="f", language="opencl")
    if fits:
        np.testing.assert_allclose(kernel._passed(kernel.parameters[1], value), value, rtol=1e-3)
    else:
        with pytest.raises(KernelError, match=f"the parameter {kind} a holds no such number"):
            kernel._passed(kernel.parameters[1], value)


@pytest.mark.parametrize(
    ("name", "given", "rule"),
    [
        ("below", {"grid": (-1,)}, r"grid= must give .* three integers of 0 or more, but got \(-1,\)"),
        ("computed", {"grid": lambda meta: (4, meta["n"] - 5)}, r"grid= .* of 0 or more, but got \(4, -1\)"),
        ("empty", {"constants": {"local_size": (0,)}}, r"local_size .* of 1 or more, but got \(0,\)"),
        ("group", {"constants": {"local_size": (2, -2)}}, r"local_size .* of 1 or more, but got \(2, -2\)"),
    ],
)
def test_sizes_that_no_launch_has(context, name, given, rule):
    code = COPY.format(type="float", value="0")
    op = of_text(name, code, dims="n -> n", infer=None, **given)
    x = cl_array.to_device(cl.CommandQueue(context), np.zeros(4, np.float32))
    with pytest.raises(
        KernelError, match=rf"opencl_tests::{name}: code:f: {rule}\n.*{__file__}:\d+\n  as in"
    ):
        op(x)


def test_a_group_that_does_not_divide_the_grid(context):
    op = of_text("odd", COPY.format(type="float", value="0"), grid=(3,), constants={"local_size": (2,)})
    x = cl_array.to_device(cl.CommandQueue(context), np.zeros(3, np.float32))
    with pytest.raises(KernelError, match="opencl_tests::odd: OpenCL refuses the launch: .*WORK_GROUP_SIZE"):
        op(x)


def test_the_error_of_a_driver_has_the_line_of_the_file(context, tmp_path):
    file = tmp_path / "wrong.cl"
    file.write_text("__kernel void f(__global float *x,\n  __global float *out) {\n  out[0] = y;\n}\n")
    op = polyop.operator("opencl_tests::wrong(Tensor x) -> Tensor", f"{file}:f", infer="x", grid=(1,))
    x = cl_array.to_device(cl.CommandQueue(context), np.zeros(1, np.float32))
    with pytest.raises(BuildError, match=rf"wrong.cl:f: cannot be compiled for .*\n[^$]*{file}:3:.*'y'"):
        op(x)


REFUSED = {
    "kernel void g(global float *x) {}": "must define one kernel void f.*but got the kernels g",
    "void f(global float *x) {}": "must define one kernel void f.*but got the kernels none",
    "kernel void f(local float *x) {}": "the parameter x is local memory: declare it in the kernel",
    "kernel void f(image2d_t x) {}": "the parameter x must be a number of OpenCL C, and is image2d_t",
    "kernel void f(float *x) {}": "the parameter x must be a number, or a pointer to global",
}


@pytest.mark.parametrize("code", REFUSED)
def test_parameters_that_no_call_can_pass(code):
    with pytest.raises(ArgumentTypeError, match=f"code:f: .*{REFUSED[code]}"):
        polyop.source(code=code, function="f", language="opencl")


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("kernel void f(global float *x) {}", "remain for the values that no name matches, but got output 0"),
        ("kernel void f(float x, global float *y) {}", "the parameter x is a number, and would get a tensor"),
        (
            "kernel void f(global float *x, global float *n, global float *y) {}",
            "n is a pointer, .* a number",
        ),
    ],
)
def test_parameters_that_do_not_fit_the_schema(code, rule):
    with pytest.raises(SchemaError, match=f"opencl_tests::unfit: code:f: .*{rule}"):
        of_text("unfit", code, dims="n -> n", infer=None)


def test_a_kernel_needs_a_grid():
    code = COPY.format(type="float", value="0")
    with pytest.raises(ArgumentTypeError, match="code:f: needs grid=: how many work-items run the kernel"):
        of_text("no_grid", code, grid=None)
    library = polyop.Library("opencl_library")
    library.define("f(Tensor x) -> Tensor")
    library.fake("f", "x")
    library.impl("f", polyop.source(code=code, function="f", language="opencl"), device="opencl")
    with pytest.raises(ArgumentTypeError, match="code:f: needs grid="):
        library.f


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"device": "cpu"}, "OpenCL C runs on the device 'opencl'"),
        ({"link_flags": ["-lm"]}, "link_flags= is not for OpenCL C"),
    ],
)
def test_options_that_opencl_does_not_have(given, rule):
    with pytest.raises(ArgumentValueError, match=rule):
        polyop.source(code=COPY.format(type="int", value="0"), function="f", language="opencl", **given)


def test_a_file_outside_of_the_list_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYOP_LIBRARY_PATHS", str(tmp_path))
    with pytest.raises(ArgumentTypeError, match="the legal path for the file is"):
        polyop.source(HERE / "scale.cl", function="scale")
    file = tmp_path / "includes.cl"
    file.write_text('# /* a comment */ include "more.h"\n' + COPY.format(type="int", value="0"))
    with pytest.raises(ArgumentTypeError, match="must include no file, because POLYOP_LIBRARY_PATHS is set"):
        polyop.source(file, function="f")


def test_a_header_beside_the_file_is_read_again(context, tmp_path):
    file, header = tmp_path / "reads.cl", tmp_path / "more.h"
    file.write_text('#include "more.h"\n' + COPY.format(type="float", value="NUMBER"))
    x = cl_array.to_device(cl.CommandQueue(context), np.zeros(1, np.float32))
    for number in (1, 2):
        header.write_text(f"#define NUMBER {number}\n")
        op = polyop.operator(
            f"opencl_tests::reads{number}(Tensor x) -> Tensor", f"{file}:f", infer="x", grid=(1,)
        )
        assert op(x).get() == [number]
    assert Cache().find(request_of(op, x), "other") is None


def request_of(op, x):
    from polyop.hosts.pyopencl import programs

    (kernel,) = op.operator.kernels
    return programs._request(x.queue.device, kernel.text, kernel.options)


def test_a_binary_is_kept_in_the_build_cache_and_checked(context, monkeypatch):
    from polyop.hosts.pyopencl import programs

    op = of_text("kept", COPY.format(type="float", value="7"), grid=(2,))
    x = cl_array.to_device(cl.CommandQueue(context), np.zeros(2, np.float32))
    np.testing.assert_array_equal(op(x).get(), [7, 7])
    file = pathlib.Path(Cache().find(request_of(op, x), "other").path)
    monkeypatch.setattr(programs, "_kernels", programs.LruCache())  # as in another process
    with monkeypatch.context() as patch:
        patch.setattr(programs, "from_text", None)
        np.testing.assert_array_equal(op(x).get(), [7, 7])
    status, damaged = file.stat(), bytearray(file.read_bytes())
    damaged[-1] ^= 1
    file.write_bytes(damaged)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    monkeypatch.setattr(programs, "_kernels", programs.LruCache())
    np.testing.assert_array_equal(op(x).get(), [7, 7])
    assert file.read_bytes() != bytes(damaged)  # it was built again


def test_the_code_of_the_page_runs(context):
    done = subprocess.run(
        [sys.executable, "-W", "error", HERE / "page.py"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "True"
