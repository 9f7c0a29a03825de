"""PyTorch's ATen operator LeakyReLU, compiled by polyop and called from MindSpore."""

import pathlib

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

import polyop

pytest.importorskip("torch", reason="PyTorch is not installed")
SOURCE = pathlib.Path(__file__).parents[3] / "examples" / "05_aten" / "leaky_relu.cpp"
X = np.array([[0.0, -0.1], [-0.2, 1.0]], np.float32)
EXPECTED = np.array([[0.0, -0.001], [-0.002, 1.0]], np.float32)


@pytest.fixture(scope="session")
def leaky_relu(tmp_path_factory):
    from polyop.build import build

    return build([str(SOURCE)], output=tmp_path_factory.mktemp("aten") / "leaky_relu_cpu.so")


@pytest.fixture(params=[polyop.Custom, ops.Custom], ids=["polyop", "mindspore"])
def network(request, leaky_relu):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.leaky_relu = request.param(
                f"{leaky_relu}:LeakyRelu", out_shape=lambda x: x, out_dtype=lambda x: x, func_type="aot"
            )

        def construct(self, x):
            return self.leaky_relu(x)

    return Net()


def test_the_program_of_the_seeds(network, context):
    out = network(Tensor(X))
    np.testing.assert_allclose(out.asnumpy(), EXPECTED, rtol=1e-6)


def bprop(x, out, dout):
    return (ops.select(x > 0, dout, 0.01 * dout),)


def test_with_a_gradient(leaky_relu, context):
    op = polyop.Custom(f"{leaky_relu}:LeakyRelu", lambda x: x, lambda x: x, func_type="aot", bprop=bprop)

    class Net(nn.Cell):
        def construct(self, x):
            return op(x).sum()

    dx = ms.grad(Net())(Tensor(X))
    np.testing.assert_allclose(dx.asnumpy(), np.where(X > 0, 1, 0.01), rtol=1e-6)


def test_by_name(context):
    op = polyop.aten("leaky_relu")

    class Net(nn.Cell):
        def construct(self, x):
            return op(x, 0.01)

    np.testing.assert_allclose(Net()(Tensor(X)).asnumpy(), EXPECTED, rtol=1e-6)
