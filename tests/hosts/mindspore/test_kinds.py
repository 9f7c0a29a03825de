"""Every kind of kernel, in both modes: values, and gradients by MindSpore."""

import functools
import pathlib

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

import polyop

X, Y = np.array([0.5, -1.25, 2.0], np.float32), np.array([3.0, 4.0, -5.0], np.float32)


def gradient(x, y, out, dout):
    return dout * 2, dout * 3


def loop_add(x, y):
    out = output_tensor(x.shape, x.dtype)  # noqa: F821 - the words of the language
    for i in range(x.shape[0]):
        out[i] = x[i] + y[i]
    return out


def numpy_add(x, y):
    return x + y


def prebuilt(library_file):
    return polyop.Custom(f"{library_file}:CustomAdd", lambda x, _: x, lambda x, _: x, "aot", bprop=gradient)


def compiled(library_file):
    path = pathlib.Path(__file__).parents[2] / "sources" / "add.cc"
    return polyop.Custom(f"{path}:CustomAdd", func_type="aot", bprop=gradient)


def loops(library_file):
    return polyop.Custom(polyop.kernel(loop_add), func_type="hybrid", bprop=gradient)


def pyfunc(library_file):
    return polyop.Custom(numpy_add, lambda x, _: x, lambda x, _: x, "pyfunc", bprop=gradient)


@functools.cache
def operator(library_file):
    return polyop.operator(
        "ms_kinds::add(Tensor x, Tensor y) -> Tensor", numpy_add, infer="x", gradient=gradient
    )


def by_name(library_file):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    return polyop.aten("add.Tensor")


KINDS = {
    "prebuilt": prebuilt,
    "compiled": compiled,
    "loops": loops,
    "pyfunc": pyfunc,
    "operator": operator,
    "aten": by_name,
}


@pytest.fixture(params=KINDS, scope="session")
def add(request, library_file):
    return KINDS[request.param](library_file)


@pytest.fixture(params=[name for name in KINDS if name != "aten"], scope="session")
def ruled(request, library_file):
    return KINDS[request.param](library_file)


def test_value(add, mode):
    @mode
    def call(x, y):
        return add(x, y) * 2

    out = call(Tensor(X), Tensor(Y))
    assert isinstance(out, Tensor) and out.dtype == ms.float32
    np.testing.assert_allclose(out.asnumpy(), (X + Y) * 2, rtol=1e-6)


def test_gradient_of_the_rule(ruled, mode):
    @mode
    def call(x, y):
        return (ruled(x, y) * y).sum()

    value, (dx, dy) = ms.value_and_grad(call, (0, 1))(Tensor(X), Tensor(Y))
    np.testing.assert_allclose(value.asnumpy(), ((X + Y) * Y).sum(), rtol=1e-6)
    np.testing.assert_allclose(dx.asnumpy(), 2 * Y, rtol=1e-6)
    np.testing.assert_allclose(dy.asnumpy(), 3 * Y + X + Y, rtol=1e-6)


def test_in_a_network(ruled, context):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.op = ruled
            self.weight = ms.Parameter(Tensor(Y), name="weight")

        def construct(self, x):
            return self.op(x, self.weight).sum()

    net = Net()
    forward = ms.value_and_grad(net, None, net.trainable_params())
    loss, (dw,) = forward(Tensor(X))
    np.testing.assert_allclose(loss.asnumpy(), (X + Y).sum(), rtol=1e-6)
    np.testing.assert_allclose(dw.asnumpy(), np.full(3, 3.0), rtol=1e-6)


def test_a_kernel_marked_by_mindspore_itself(mode):
    """Its attributes are registered by MindSpore's own words, and its options are kept as JSON."""
    info = (
        ms.ops.CustomRegOp()
        .input(0, "x")
        .output(0, "y")
        .attr("factor", "required", "float")
        .dtype_format(ms.ops.DataType.F32_Default, ms.ops.DataType.F32_Default)
        .target("CPU")
        .get_op_info()
    )

    def loop_exp(x, factor):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821 - the words of the language
        for i in range(x.shape[0]):
            y[i] = exp(x[i]) * factor  # noqa: F821 - same
        return y

    marked = ms.ops.kernel(
        loop_exp, reg_info=info, compile_attrs={"precise": True, "enable_polytops": "never"}
    )
    op = polyop.Custom(marked, func_type="hybrid")
    ours, fast = (
        polyop.Custom(polyop.kernel(loop_exp, info, {"precise": precise}), func_type="hybrid")
        for precise in (True, False)
    )

    @mode
    def call(x):
        return op(x, 2.5)

    np.testing.assert_allclose(call(Tensor(X)).asnumpy(), np.exp(X) * 2.5, rtol=1e-6)
    for other in (ours, fast):
        np.testing.assert_allclose(other(X, factor=2.5), np.exp(X) * 2.5, rtol=1e-6)
    assert op.source() == ours.source() != fast.source()


def test_aclnn_by_name(mode):
    mul = polyop.Custom("aclnnMul", lambda x, _: x, lambda x, _: x, "aot")

    @mode
    def call(x, y):
        return mul(x, y)

    np.testing.assert_allclose(call(Tensor(X), Tensor(Y)).asnumpy(), X * Y, rtol=1e-6)


def test_aten_has_a_gradient_of_its_own(mode):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    leaky = polyop.aten("leaky_relu")

    @mode
    def call(x):
        return leaky(x, 0.25).sum()

    dx = ms.grad(call)(Tensor(X))
    np.testing.assert_allclose(dx.asnumpy(), np.where(X > 0, 1, 0.25), rtol=1e-6)


MODULE = [
    # call, formula, derivative
    ("square", lambda x: x * x, lambda x: 2 * x),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2),
    ("wide_gradient", lambda x: 4 * x, lambda x: np.full_like(x, 4)),
]


@pytest.mark.parametrize(("name", "formula", "derivative"), MODULE, ids=[row[0] for row in MODULE])
def test_a_cpp_module(module, mode, name, formula, derivative):
    op = getattr(module, name)

    @mode
    def call(x):
        return op(x)

    def total(x):
        return call(x).sum()

    np.testing.assert_allclose(call(Tensor(X)).asnumpy(), formula(X), rtol=1e-6)
    np.testing.assert_allclose(ms.grad(total)(Tensor(X)).asnumpy(), derivative(X), rtol=1e-5)


def test_a_module_is_reached_through_its_attribute(module, mode):
    @mode
    def call(x):
        return module.square(x)

    np.testing.assert_allclose(call(Tensor(X)).asnumpy(), X * X, rtol=1e-6)


def test_a_module_with_lists_attributes_and_optional_tensors(module, mode):
    sum_list, bias, state = module.sum_list, module.bias, module.state

    @mode
    def call(x):
        return sum_list([x, x * x, x]).sum() + bias(x).sum() + state(x, 3, [2, 5], 'a "label" é').sum()

    dx = ms.grad(call)(Tensor(X))
    np.testing.assert_allclose(dx.asnumpy(), 2 + 2 * X + 1 + 30, rtol=1e-5)
