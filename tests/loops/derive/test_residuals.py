"""What a framework keeps for a gradient, known without deriving the gradient."""

# ruff: noqa: F821 - the words of the language

import numpy as np
import pytest

import polyop
from entered import files_entered
from loop_samples import small
from loop_samples.programs import PROGRAMS
from polyop.loops.derive.dead_inputs import used_buffers
from polyop.loops.derive.forms import adjoint, saving
from polyop.loops.derive.residuals import residuals
from polyop.loops.frontend.parse import parse


def typed(program):
    tensors = [(dtype, len(axes)) for dtype, axes, _ in program.rows]
    return parse(program.function, tensors, dict(program.attributes))


def differentiable(program):
    kernel = typed(program)
    if any(buffer.role == "inplace" for buffer in kernel.buffers.values()):
        pytest.skip("not run: a kernel in place has no derived gradient")
    return kernel


each_program = pytest.mark.parametrize("sample", PROGRAMS, ids=lambda program: program.name)


def derived(kernel, present):
    """The kernel's inputs and outputs that its derived gradient reads."""
    return used_buffers(adjoint(kernel, present).kernel) & {*kernel.tensor_parameters, *kernel.outputs}


@pytest.mark.slow(6)
@each_program
def test_they_are_what_the_derived_gradient_reads(sample):
    kernel = differentiable(sample)
    assert residuals(kernel, len(kernel.outputs)) == derived(kernel, (True,) * len(kernel.outputs))


@pytest.mark.slow(14)
@each_program
def test_those_of_saved_temporaries_serve_the_second_derivative_too(sample):
    kernel = differentiable(sample)
    saves = saving(kernel, "auto")
    if saves is None:
        assert not [name for name in ("softmax", "layernorm") if name == kernel.name]
        return
    names = residuals(saves, len(kernel.outputs))
    present = [k < len(kernel.outputs) or name in names for k, name in enumerate(saves.outputs)]
    assert names == derived(saves, present)


def test_softmax_keeps_its_result_and_its_sums_only():
    kernel = saving(parse(small.softmax, [("float32", 2)], {}), "auto")
    assert residuals(kernel, 1) == {"y", "total"}


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


def sum_of_exponentials(x):
    s = output_tensor((1,), x.dtype)
    s[0] = 0
    for i in range(x.shape[0]):
        s[0] += exp(x[i])
    return s


@pytest.mark.parametrize(
    ("function", "tensors", "names"),
    [
        (product, 2, {"x", "z"}),
        (scaled_sum, 2, {"z"}),  # its size alone: the gradient of z has the shape of z
        (exponential, 1, {"y"}),
        (sum_of_exponentials, 1, {"x"}),
        (last_exponential, 1, {"x"}),  # iterations overwrite the result
    ],
)
def test_by_kernel(function, tensors, names):
    assert residuals(parse(function, [("float32", 1)] * tensors, {}), 1) == names


def test_the_first_calls_of_a_simple_kernel_enter_few_files():
    torch = pytest.importorskip("torch")
    multiply = polyop.operator("residuals::product(Tensor x, Tensor z) -> Tensor", polyop.kernel(product))
    x, z = (torch.rand(4, requires_grad=True) for _ in range(2))
    multiply(x.detach(), z.detach())
    y, forward = files_entered(lambda: multiply(x, z))
    assert not multiply.gradient.kernel.is_typed  # nothing is derived
    assert not [path for path in forward if path.startswith(("loops/analysis", "loops/passes", "loops/emit"))]
    _, backward = files_entered(lambda: torch.autograd.backward(y, torch.ones(4)))
    assert multiply.gradient.kernel.is_typed
    through_torch_ops = {"hosts/torch/register.py", "hosts/torch/autograd_function.py"}
    assert not through_torch_ops & (forward | backward)
    np.testing.assert_array_equal(x.grad.numpy(), z.detach().numpy())


@pytest.mark.slow
def test_the_second_derivative_of_a_softmax_that_does_not_keep_its_input():
    torch = pytest.importorskip("torch")
    softmax = polyop.operator("residuals::softmax(Tensor x) -> Tensor", polyop.kernel(small.softmax))
    x = torch.rand(3, 5, requires_grad=True)

    def second_derivative(function):
        (first,) = torch.autograd.grad((function(x) ** 2).sum(), x, create_graph=True)
        return torch.autograd.grad((first * torch.arange(5.0)).sum(), x)[0]

    expected = second_derivative(lambda x: torch.softmax(x, 1))
    torch.testing.assert_close(second_derivative(softmax), expected, rtol=1e-4, atol=1e-6)


def test_results_that_the_gradient_reads_are_kept_and_the_input_is_not():
    torch = pytest.importorskip("torch")
    exponent = polyop.operator("residuals::exponential(Tensor x) -> Tensor", polyop.kernel(exponential))
    x = torch.rand(4, requires_grad=True)
    y = exponent(x)
    with torch.no_grad():
        x.zero_()  # autograd would refuse to go on if x were kept
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())
