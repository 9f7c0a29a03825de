"""What a framework keeps for a gradient, known without deriving the gradient."""

# ruff: noqa: F821 - the words of the language

import numpy as np
import pytest

import polyop
from loop_samples import small
from loop_samples.programs import PROGRAMS
from polyop.kernels.loop.kernel import tensors_of
from polyop.loops.derive.adjoint import adjoint
from polyop.loops.derive.dead_inputs import taken
from polyop.loops.derive.residuals import residuals
from polyop.loops.frontend.parse import parse


def typed(program):
    tensors = [(dtype, len(axes)) for dtype, axes, _ in program.rows]
    return parse(program.function, tensors, dict(program.attributes))


SIMPLE = [program for program in PROGRAMS if residuals(typed(program)) is not None]


def test_many_programs_are_simple():
    assert len(SIMPLE) > 40


@pytest.mark.parametrize("simple", SIMPLE, ids=lambda program: program.name)
def test_they_are_what_the_derived_gradient_reads(simple):
    kernel = typed(simple)
    names = residuals(kernel)
    derived = adjoint(kernel, (True,) * len(kernel.outputs)).kernel
    assert names == taken(derived) & {*tensors_of(kernel), *kernel.outputs}


def product(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * z[i]
    return y


def scaled_sum(x, z):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + 2 * z[i]
    return y


def exponential(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
    return y


def last_exponential(x):
    y = output_tensor((1,), x.dtype)
    for i in range(x.shape[0]):
        y[0] = exp(x[i])
    return y


@pytest.mark.parametrize(
    ("function", "tensors", "names"),
    [
        (product, 2, {"x", "z"}),
        (scaled_sum, 2, {"z"}),  # its size alone: the gradient of z has the shape of z
        (exponential, 1, {"y"}),
        (last_exponential, 1, None),  # iterations overwrite the result: x is needed
        (small.softmax, 1, None),
    ],
)
def test_by_kernel(function, tensors, names):
    rank = 2 if function is small.softmax else 1
    assert residuals(parse(function, [("float32", rank)] * tensors, {})) == names


def test_a_forward_call_of_a_simple_kernel_derives_nothing():
    torch = pytest.importorskip("torch")
    multiply = polyop.operator("residuals::product(Tensor x, Tensor z) -> Tensor", polyop.kernel(product))
    x, z = (torch.rand(4, requires_grad=True) for _ in range(2))
    y = multiply(x, z)
    assert not multiply.gradient.kernel.is_typed
    y.sum().backward()
    assert multiply.gradient.kernel.is_typed
    np.testing.assert_array_equal(x.grad.numpy(), z.detach().numpy())


def test_results_that_the_gradient_reads_are_kept_and_the_input_is_not():
    torch = pytest.importorskip("torch")
    exponent = polyop.operator("residuals::exponential(Tensor x) -> Tensor", polyop.kernel(exponential))
    x = torch.rand(4, requires_grad=True)
    y = exponent(x)
    with torch.no_grad():
        x.zero_()  # autograd would refuse to go on if x were kept
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())
