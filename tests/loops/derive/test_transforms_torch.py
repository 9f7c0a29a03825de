"""PyTorch's transforms of loop kernels: forward mode, second derivatives, batches, all by derived kernels."""

import warnings

import numpy as np
import pytest

import polyop
from polyop.call.explain import explain

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

NAMES = ("matmul", "softmax", "layernorm", "stencil", "scan", "gather", "scatter")
PARTS = ("backward", "tangent", "batched")
STEP = 1e-6


@pytest.fixture(autouse=True)
def torch_jit():
    """PyTorch's forward mode compiles its own decompositions by TorchScript at its first use, and warns of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.autograd.forward_ad._maybe_load_decompositions()


class Calls(TorchDispatchMode):
    """The calls of polyop's operators: which part of the whole each is, "" for the operator itself."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace not in ("aten", "prim", "profiler"):
            derived = (part for part in func._schema.name.split("__") if part in PARTS)
            self.names.append("__".join(derived))
        return func(*args, **(kwargs or {}))


def _case(cases, name):
    function, real, whole = cases[name]
    op = polyop.Custom(function, func_type="hybrid")
    indices = [torch.tensor(x) for x in whole]
    return lambda *xs: op(*xs, *indices), tuple(torch.tensor(x) for x in real)


def _along(xs, seed=0):
    random = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(x.shape, generator=random, dtype=x.dtype) for x in xs)


def _number(function):
    return lambda *xs: (function(*xs) ** 2).sum()


def _difference(function, xs, along):
    high, low = ([x + by * t for x, t in zip(xs, along, strict=True)] for by in (STEP, -STEP))
    return (function(*high) - function(*low)) / (2 * STEP)


@pytest.mark.slow(2)
@pytest.mark.parametrize("name", NAMES)
def test_forward_mode_is_the_directional_derivative(cases, name):
    function, xs = _case(cases, name)
    along = _along(xs)
    with Calls() as calls:
        value, moved = torch.func.jvp(function, xs, along)
    assert calls.names == ["", "tangent"]
    torch.testing.assert_close(value, function(*xs))
    torch.testing.assert_close(moved, _difference(function, xs, along), rtol=1e-6, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_second_derivatives_are_one(cases, name):
    """Forward over reverse, reverse over forward, reverse over reverse, and differences of gradients."""
    function, xs = _case(cases, name)
    number, along, every = _number(function), _along(xs), tuple(range(len(xs)))
    gradient = torch.func.grad(number, every)
    forward_over_reverse = torch.func.jvp(gradient, xs, along)[1]
    reverse_over_forward = torch.func.grad(lambda *p: torch.func.jvp(number, p, along)[1], every)(*xs)
    pairs = lambda found: sum((g * t).sum() for g, t in zip(found, along, strict=True))  # noqa: E731
    reverse_over_reverse = torch.func.grad(lambda *p: pairs(gradient(*p)), every)(*xs)
    high, low = (gradient(*(x + by * t for x, t in zip(xs, along, strict=True))) for by in (STEP, -STEP))
    for k in every:
        expected = (high[k] - low[k]) / (2 * STEP)
        torch.testing.assert_close(forward_over_reverse[k], expected, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(reverse_over_forward[k], forward_over_reverse[k], rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(reverse_over_reverse[k], forward_over_reverse[k], rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["matmul", "softmax", "gather"])
def test_jacobians_and_hessians(cases, name):
    function, xs = _case(cases, name)
    forward, reverse = torch.func.jacfwd(function)(*xs), torch.func.jacrev(function)(*xs)
    torch.testing.assert_close(forward, reverse, rtol=1e-12, atol=1e-12)
    number, along = _number(function), _along(xs)
    hessian = torch.func.hessian(number)(*xs)
    still = (along[0], *(torch.zeros_like(x) for x in xs[1:]))
    moved = torch.func.jvp(torch.func.grad(number), xs, still)[1]
    torch.testing.assert_close(torch.tensordot(hessian, along[0], xs[0].ndim), moved, rtol=1e-9, atol=1e-9)


@pytest.mark.slow(1)
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_one_call(cases, name, axis):
    function, xs = _case(cases, name)
    rows = [[x + k for k in range(3)] for x in xs]
    stacked = [torch.stack(row, axis) for row in rows]
    with Calls() as calls:
        found = torch.vmap(function, in_dims=axis)(*stacked)
    assert calls.names == ["batched"]
    ones = [function(*row) for row in zip(*rows, strict=True)]
    torch.testing.assert_close(found, torch.stack(ones), rtol=0, atol=1e-14)


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_samples_are_two_calls(cases, name):
    function, xs = _case(cases, name)
    gradient = torch.func.grad(_number(function), tuple(range(len(xs))))
    rows = [[x + k for k in range(3)] for x in xs]
    stacked = [torch.stack(row) for row in rows]
    with Calls() as calls:
        found = torch.vmap(gradient)(*stacked)
    assert calls.names == ["batched", "backward__batched"]
    ones = [gradient(*row) for row in zip(*rows, strict=True)]
    for k, grads in enumerate(found):
        torch.testing.assert_close(grads, torch.stack([one[k] for one in ones]), rtol=1e-12, atol=1e-12)


def test_a_batch_has_a_gradient_and_may_be_nested(cases):
    function, (a, b) = _case(cases, "matmul")
    many = torch.stack([torch.stack([a, a + 1]), torch.stack([a * 2, a - 1]), torch.stack([a, a * 3])])
    many.requires_grad_()
    with Calls() as calls:
        found = torch.vmap(torch.vmap(function, in_dims=(0, None)), in_dims=(1, None), out_dims=1)(many, b)
        found.pow(2).sum().backward()
    assert calls.names == ["batched__batched", "batched__batched__backward"]
    expected = many.detach() @ b
    torch.testing.assert_close(found.detach(), expected)
    torch.testing.assert_close(many.grad, 2 * expected @ b.T)


def test_indices_may_be_the_samples():
    def taken(x, at):
        y = output_tensor(at.shape, x.dtype)  # noqa: F821
        for i in range(at.shape[0]):
            y[i] = x[at[i]]
        return y

    op = polyop.Custom(taken, func_type="hybrid")
    x, at = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([[0, 1], [2, 2], [1, 0]])
    assert torch.vmap(op, in_dims=(None, 0))(x, at).tolist() == [[1, 2], [4, 4], [2, 1]]
    grad = torch.vmap(torch.func.grad(lambda v, k: op(v, k).sum()), in_dims=(None, 0))(x, at)
    assert grad.tolist() == [[1, 1, 0], [0, 0, 2], [1, 1, 0]]


def test_no_samples(cases):
    function, (x,) = _case(cases, "softmax")
    assert torch.vmap(function)(x.new_empty(0, 2, 4)).shape == (0, 2, 4)


def test_a_given_rule_wins(cases):
    asked = []

    def by_rows(dims, inputs):
        asked.append(dims)
        (x,) = inputs
        moved = x.movedim(dims[0], 0)
        return torch.softmax(moved, -1), 0

    op = polyop.operator(
        "derive_torch::softmax(Tensor x) -> Tensor", polyop.kernel(cases["softmax"][0]), batch=by_rows
    )
    x = torch.tensor(np.stack([cases["softmax"][1][0]] * 2))
    torch.testing.assert_close(torch.vmap(op)(x), torch.softmax(x, -1))
    assert asked == [(0,)]


@pytest.mark.slow
def test_gradcheck_by_forward_mode_and_in_batches(cases):
    function, xs = _case(cases, "layernorm")
    for x in xs:
        x.requires_grad_()
    assert torch.autograd.gradcheck(
        function, xs, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True
    )
    assert torch.autograd.gradgradcheck(function, xs)


def test_explain(cases):
    op = polyop.Custom(cases["matmul"][0], func_type="hybrid")
    op(*cases["matmul"][1])
    text = explain(op)
    assert "forward     derived" in text
    assert "batching    derived: one call for all samples" in text
