"""Loop kernels in MindSpore-style scripts: both modes, cells, gradients and messages."""

import numpy as np
import pytest
import torch

import polyop
import polyop.mindspore as ms
from polyop.mindspore import Parameter, Tensor, nn, ops

# ruff: noqa: F821 - the words of the language

# PyTorch's own, of its tracing of an autograd.Function
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")

A = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -2.0]], np.float32)
B = np.array([[2.0, 4.0, -1.0], [1.0, 0.5, 4.0]], np.float32)


@pytest.fixture(params=["PYNATIVE_MODE", "GRAPH_MODE"], autouse=True)
def mode(request):
    torch._dynamo.reset()
    ms.set_context(mode=getattr(ms, request.param))
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


@ops.kernel
def sum_and_product(x, y):
    s = output_tensor(x.shape, x.dtype)
    p = output_tensor(x.shape, x.dtype)
    for i in parallel(x.shape[0]):
        for j in vectorize(x.shape[1]):
            s[i, j] = x[i, j] + y[i, j]
            p[i, j] = x[i, j] * y[i, j]
    return s, p


def scaled(x, factor, shift=0):
    y = output_tensor(x.shape, x.dtype)
    for i, j in grid(x.shape):
        y[i, j] = x[i, j] * factor + shift
    return y


def product(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def row_times_column(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = 0.0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[j, k]
    return c


def column_times_row(a, b):
    c = output_tensor((a.shape[1], b.shape[1]), a.dtype)
    for i in range(a.shape[1]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in range(a.shape[0]):
                c[i, j] += a[k, i] * b[k, j]
    return c


def incremented(x):
    for i, j in grid(x.shape):
        x[i, j] = x[i, j] + 1.0
    return x


class Net(nn.Cell):
    """One operator."""

    def __init__(self, op, *fixed):
        super().__init__()
        self.op, self.fixed = op, fixed

    def construct(self, *tensors):
        """Return what the operator returns."""
        return self.op(*tensors, *self.fixed)


@pytest.mark.slow
def test_k4_two_outputs_in_a_net_and_their_gradients():
    def bprop(x, y, out, dout):
        return dout[0] + dout[1] * y, dout[0] + dout[1] * x

    class TwoOutputs(nn.Cell):
        def __init__(self):
            super().__init__()
            self.op = ops.Custom(sum_and_product, lambda x, y: (x, x), lambda x, y: (x, x), "akg", bprop)

        def construct(self, x, y):
            total, times = self.op(x, y)
            return times + total * y

    net = TwoOutputs()
    np.testing.assert_allclose(net(Tensor(A), Tensor(B)).asnumpy(), A * B + (A + B) * B)
    dx, dy = ms.grad(net, (0, 1))(Tensor(A), Tensor(B))
    np.testing.assert_allclose(dx.asnumpy(), 2 * B)
    np.testing.assert_allclose(dy.asnumpy(), 2 * A + 2 * B)


@pytest.mark.slow
def test_k2_a_gradient_made_of_loop_kernels():
    times_b = ops.Custom(row_times_column, func_type="akg")
    times_a = ops.Custom(column_times_row, func_type="akg")

    def bprop(a, b, out, dout):
        return times_b(dout, b), times_a(a, dout)

    net = Net(ops.Custom(product, lambda a, b: [a[0], b[1]], lambda a, b: a, "akg", bprop))
    a, b = Tensor(A), Tensor(B.T)
    np.testing.assert_allclose(net(a, b).asnumpy(), A @ B.T, rtol=1e-6)
    da, db = ms.grad(net, (0, 1))(a, b)
    ones = np.ones((2, 2), np.float32)
    np.testing.assert_allclose(da.asnumpy(), ones @ B, rtol=1e-6)
    np.testing.assert_allclose(db.asnumpy(), A.T @ ones, rtol=1e-6)


@pytest.mark.slow
def test_a_kernel_trained_as_a_part_of_a_network():
    class Layer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(B), name="w")
            self.op = ops.Custom(
                sum_and_product,
                func_type="hybrid",
                bprop=lambda x, y, out, dout: (dout[0] + dout[1] * y, dout[0] + dout[1] * x),
            )

        def construct(self, x):
            return self.op(x, self.w)[1].sum()

    layer = Layer()
    step = ms.value_and_grad(layer, None, layer.trainable_params())
    value, (gradient,) = step(Tensor(A))
    np.testing.assert_allclose(float(value), (A * B).sum(), rtol=1e-6)
    np.testing.assert_allclose(gradient.asnumpy(), A)


def information():
    result = ops.CustomRegOp().input(0, "x").output(0, "y").attr("factor", "required", "float")
    result.attr("shift", "optional", "int", default_value="3")
    return result.dtype_format(ops.DataType.F32_Default, ops.DataType.F32_Default).target("CPU").get_op_info()


@pytest.mark.slow(1)
def test_attributes():
    def bprop(x, factor, shift, out, dout):
        return dout * factor, None, None

    op = ops.Custom(scaled, func_type="hybrid", bprop=bprop, reg_info=information())
    np.testing.assert_allclose(Net(op, 2.0, 5)(Tensor(A)).asnumpy(), A * 2 + 5)
    np.testing.assert_allclose(Net(op, 2.0)(Tensor(A)).asnumpy(), A * 2 + 3)
    np.testing.assert_allclose(ms.grad(Net(op, 2.0, 5))(Tensor(A)).asnumpy(), np.full_like(A, 2))


def test_half_precision():
    op = ops.Custom(sum_and_product, func_type="hybrid")
    result = Net(op)(Tensor(A, ms.float16), Tensor(B, ms.float16))
    assert [x.dtype for x in result] == [ms.float16, ms.float16]
    np.testing.assert_array_equal(result[1].asnumpy(), A.astype(np.float16) * B.astype(np.float16))


@pytest.mark.slow(1)
def test_in_place():
    x = Tensor(A)

    class Twice(nn.Cell):
        def __init__(self):
            super().__init__()
            self.op = ops.Custom(incremented, func_type="hybrid")

        def construct(self, x):
            return self.op(x) * 2

    np.testing.assert_allclose(Twice()(x).asnumpy(), (A + 1) * 2)
    np.testing.assert_allclose(x.asnumpy(), A + 1)


def test_without_bprop_the_gradient_is_derived(mode):
    del mode
    op = ops.Custom(scaled, func_type="hybrid", reg_info=information())
    inputs = ms.grad(Net(op, 2.0, 1))(Tensor(A)).asnumpy()
    moved = [(op(Tensor(A + step), 2.0, 1).asnumpy() * 1.0) for step in (0.5, -0.5)]
    np.testing.assert_allclose(inputs, moved[0] - moved[1], rtol=1e-5)


def test_the_decorated_function_is_python_on_arrays():
    total, times = sum_and_product(A, B)
    assert type(total) is np.ndarray
    np.testing.assert_array_equal(total, A + B)
    np.testing.assert_array_equal(times, A * B)


def test_errors_name_the_line():
    def running(x):
        y = output_tensor(x.shape, x.dtype)
        i = 0
        while True:
            y[i] = x[i]
            i += 1
        return y

    with pytest.raises(polyop.PolyopError, match="while True without break or return never ends") as caught:
        ops.Custom(running, func_type="hybrid")
    assert "while True:" in str(caught.value)
