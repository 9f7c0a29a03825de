"""Derived gradients in PyTorch: against its own differences, once and twice, compiled and repeated."""

# ruff: noqa: F821 - the words of the language

import pytest
import torch

import polyop
from derive_samples import kernels
from polyop import Custom

OPERATORS = kernels.OPERATORS
NAMES = [row[0].__name__ for row in OPERATORS]


def tensors(shapes, below, dtype=torch.float64):
    """Return inputs, the last one an index where it is below something."""
    random = torch.Generator().manual_seed(0)
    results = [torch.randn(s, generator=random, dtype=dtype).requires_grad_() for s in shapes]
    if below:
        results[-1] = torch.randint(below, shapes[-1], generator=random)
    return results


@pytest.mark.slow(1)
@pytest.mark.parametrize("row", OPERATORS, ids=NAMES)
def test_gradcheck_and_gradgradcheck(row):
    function, shapes, below = row
    op = polyop.Custom(function, func_type="hybrid")
    inputs = tensors(shapes, below)
    assert torch.autograd.gradcheck(op, inputs)
    assert torch.autograd.gradgradcheck(op, inputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["layernorm", "gather"])
def test_inside_torch_compile(name):
    function, shapes, below = OPERATORS[NAMES.index(name)]
    op = polyop.Custom(function, func_type="hybrid")

    def loss(*inputs):
        return (op(*inputs) * 2).sin().sum()

    plain, compiled = tensors(shapes, below), tensors(shapes, below)
    loss(*plain).backward()
    torch.compile(loss, fullgraph=True)(*compiled).backward()
    for one, other in zip(plain, compiled, strict=True):
        if one.requires_grad:
            torch.testing.assert_close(one.grad, other.grad)


@pytest.mark.parametrize(("name", "factor"), [("index_add", 60), ("gather", 60), ("rms_norm", 60)])
def test_the_same_bits_every_time(name, factor):
    function, shapes, below = OPERATORS[NAMES.index(name)]
    op = polyop.Custom(function, func_type="hybrid")
    larger = [(shape[0] * factor, *shape[1:]) if len(shape) > 1 or below else shape for shape in shapes]
    gradients = []
    before = polyop.get_num_threads()
    try:
        polyop.set_num_threads(3)
        for _ in range(3):
            inputs = tensors(larger, below * factor, torch.float32)
            op(*inputs).square().sum().backward()
            gradients.append([x.grad for x in inputs if x.requires_grad])
    finally:
        polyop.set_num_threads(before)
    for other in gradients[1:]:
        assert all(torch.equal(a, b) for a, b in zip(gradients[0], other, strict=True))


@pytest.mark.parametrize("sizes", [(0, 5), (1, 1), (5, 0), (7, 17)])
def test_sizes_of_a_scan(sizes):
    op = polyop.Custom(kernels.gated_scan, func_type="hybrid")
    inputs = tensors((sizes, sizes), 0)
    op(*inputs).sum().backward()
    for x in inputs:
        assert x.grad.shape == x.shape
    if 0 not in sizes:
        assert torch.autograd.gradcheck(op, inputs)


def squares_and_products(x, w):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
        z[i] = w[i] * x[i]
    return y, z


def test_a_second_derivative_where_an_output_does_not_reach_the_input():
    op = Custom(squares_and_products, func_type="hybrid")
    x = torch.linspace(1, 2, 4, dtype=torch.float64)
    w = torch.linspace(-1, 1, 4, dtype=torch.float64, requires_grad=True)

    def second(outputs):
        loss = sum(out.sin().sum() for out in outputs)
        (first,) = torch.autograd.grad(loss, w, create_graph=True)
        return torch.autograd.grad(first.sum(), w)[0]

    torch.testing.assert_close(second(op(x, w)), second((x * x, w * x)))


def floored(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = w[i] + floor(x[i])
    return y


def test_an_input_alone_whose_gradient_is_zero():
    x = torch.rand(4, requires_grad=True)
    Custom(floored, func_type="hybrid")(x, torch.rand(4)).sum().backward()
    assert x.grad.tolist() == [0, 0, 0, 0]


def scaled_rows(x, p):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        shift = p * p
        squares = 0.0
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] / sqrt(squares + shift)
    return y


def test_attributes_of_another_type_hand_over_other_temporaries():
    op = polyop.operator(
        "derived::scaled_rows(Tensor x, *, Scalar p=2) -> Tensor", polyop.kernel(scaled_rows)
    )
    x = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
    for p in (2, 2.5, 3):
        assert torch.autograd.gradcheck(lambda value, p=p: op(value, p=p), x)
