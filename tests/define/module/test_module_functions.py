"""MindSpore's own scenarios for modules with gradients (F1 to F9), and several calls of Apply in one function."""

import pathlib

import numpy as np
import pytest

from polyop.define.module.builder import CustomOpBuilder

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
SOURCE = pathlib.Path(__file__).parents[2] / "sources" / "module_functions.cpp"


@pytest.fixture(scope="session")
def ops():
    return CustomOpBuilder("module_functions", [str(SOURCE)], backend="CPU").load()


def graph(function):
    torch.compiler.reset()  # many small functions: none may meet the recompile limit
    return torch.compile(function, fullgraph=True, backend="aot_eager")


@pytest.fixture(params=[lambda f: f, graph], ids=["eager", "compiled"])
def mode(request):
    return request.param


def leaf(*values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


@pytest.mark.slow
def test_f1_add_with_a_weight(ops, mode):
    x, y, p = leaf(2.0), leaf(3.0), leaf(2.0)
    out = mode(lambda a, b, c: ops.add(ops.add(a, b), c))(x, y, p)
    assert out.item() == 7
    out.backward()
    assert (x.grad.item(), y.grad.item(), p.grad.item()) == (1, 1, 1)


def test_f3_broadcast_to_a_tuple(ops, mode):
    x = leaf(1.0, 2.0, 3.0)
    out = mode(lambda a: ops.broadcast_to(a, (2, 3)))(x)
    np.testing.assert_array_equal(out.detach(), [[1, 2, 3], [1, 2, 3]])
    (out * torch.tensor([[1.0], [10.0]])).sum().backward()
    np.testing.assert_array_equal(x.grad, [11, 11, 11])


@pytest.mark.parametrize("name", ["mul", "macro_mul"])
def test_f4_and_f9_mul_with_a_weight(ops, mode, name):
    mul = getattr(ops, name)
    x, y, p = leaf(2.0), leaf(3.0), leaf(2.0)
    out = mode(lambda a, b, c: mul(mul(a, b), c))(x, y, p)
    assert out.item() == 12
    out.backward()
    assert (x.grad.item(), y.grad.item(), p.grad.item()) == (6, 4, 6)


@pytest.mark.parametrize("name", ["mul", "macro_mul"])
def test_f4_on_numpy(ops, name):
    x, y = np.array([2, 5], np.float32), np.array([[3], [7]], np.float32)
    out, pull = getattr(ops, name).vjp(x, y)
    np.testing.assert_array_equal(out, [[6, 15], [14, 35]])
    grads = pull(np.array([[1, 1], [10, 10]], np.float32))
    np.testing.assert_array_equal(grads[0], [73, 73])
    np.testing.assert_array_equal(grads[1], [[7], [70]])
    np.testing.assert_array_equal(pull(np.ones((2, 2), np.float32))[1], [[7], [7]])  # again


def test_f7_in_place_on_a_leaf(ops):
    with pytest.raises(
        RuntimeError, match="A leaf tensor that need grad is being used in an inplace operator"
    ):
        ops.inplace_mul(leaf(2.0), torch.tensor([3.0]))
    with torch.no_grad():
        x = leaf(2.0)
        assert ops.inplace_mul(x, torch.tensor([3.0])) is x
    assert x.item() == 6


def test_in_place_on_a_result(ops):
    ops.inplace_mul(torch.ones(2), torch.ones(2))  # the first call marks the argument in the schema
    assert "(a!)" in str(ops.inplace_mul)
    x, y = leaf(2.0, 3.0), torch.tensor([5.0, 7.0])
    inner = x * 2
    before = inner._version
    out = ops.inplace_mul(inner, y)
    assert out is inner and inner._version > before
    np.testing.assert_array_equal(inner.detach(), [20, 42])
    (out * torch.tensor([1.0, 10.0])).sum().backward()
    np.testing.assert_array_equal(x.grad, [10, 140])


def test_in_place_on_a_strided_result(ops):
    x, y = leaf(1.0, 2.0, 3.0, 4.0), torch.tensor([5.0, 7.0])
    inner = x * 2
    part = inner[::2]
    out = ops.inplace_mul(part, y)
    assert out is part
    np.testing.assert_array_equal(inner.detach(), [10, 4, 42, 8])
    (inner * torch.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
    np.testing.assert_array_equal(x.grad, [10, 20, 1400, 2000])


@pytest.mark.slow
def test_in_place_before_the_schema_is_marked(sources, tmp_path):
    fresh = CustomOpBuilder("module_functions_new", [str(SOURCE)]).load()
    x, y = leaf(2.0, 3.0), torch.tensor([5.0, 7.0])
    inner = x * 2
    out = fresh.inplace_mul(inner, y)
    out.sum().backward()
    np.testing.assert_array_equal(x.grad, [10, 14])
    np.testing.assert_array_equal(out.detach(), [20, 42])


def test_in_place_spoils_what_others_saved(ops):
    x = leaf(2.0, 3.0)
    inner = x * 2
    squared = inner**2  # saves inner
    ops.inplace_mul(inner, torch.tensor([5.0, 7.0]))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squared.sum().backward()


def test_in_place_compiled_without_a_gradient(ops):
    ops.inplace_mul(torch.ones(2), torch.ones(2))

    def function(x, y):
        shifted = x + 1
        ops.inplace_mul(shifted, y)
        return shifted

    out = graph(function)(torch.tensor([1.0, 2.0]), torch.tensor([5.0, 7.0]))
    np.testing.assert_array_equal(out, [10, 21])


def test_a_saved_tensor_changed_afterwards(ops):
    x, y = leaf(2.0), torch.tensor([3.0])
    out = ops.mul(x, y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


CHAINS = [
    ("chain", lambda x, y: x * y * y),
    ("polynomial", lambda x, y: x * y + x * x),
    ("mul_dense", lambda x, y: x * y),
    ("mul", lambda x, y: x * y),
    ("macro_mul", lambda x, y: x * y),
]


@pytest.mark.slow(2)
@pytest.mark.parametrize(("name", "formula"), CHAINS, ids=[row[0] for row in CHAINS])
def test_several_calls_are_one_gradient(ops, mode, name, formula):
    torch.manual_seed(0)
    x, y = (torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    weight = torch.randn(3, 4, dtype=torch.float64)
    out = mode(getattr(ops, name))(x, y)
    torch.testing.assert_close(out, formula(x, y))
    expected = torch.autograd.grad((formula(x, y) * weight).sum(), [x, y])
    torch.testing.assert_close(torch.autograd.grad((out * weight).sum(), [x, y]), expected)


@pytest.mark.parametrize(("name", "formula"), CHAINS, ids=[row[0] for row in CHAINS])
def test_gradcheck(ops, name, formula):
    del formula
    x, y = (torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(getattr(ops, name), (x, y))
    assert torch.autograd.gradgradcheck(getattr(ops, name), (x, y))


def test_one_tensor_used_twice(ops, mode):
    x = leaf(3.0, -2.0)
    out = mode(lambda a: ops.square(a))(x)
    (out * torch.tensor([1.0, 10.0])).sum().backward()
    np.testing.assert_array_equal(x.grad, [6, -40])
    _, pull = ops.square.vjp(np.float32([3, -2]))
    np.testing.assert_array_equal(pull(np.float32([1, 10]))[0], [6, -40])
    y = leaf(3.0)
    ops.mul(y, y).backward()
    assert y.grad.item() == 6


def test_apply_on_a_cast_of_an_input(ops, mode):
    x, y = leaf(1.5, 2.0), leaf(3.0, 5.0, dtype=torch.float64)
    out = mode(lambda a, b: ops.mul_cast(a, b))(x, y)
    assert out.dtype == torch.float64
    out.sum().backward()
    assert x.grad.dtype == torch.float32 and y.grad.dtype == torch.float64
    np.testing.assert_array_equal(x.grad, [3, 5])
    np.testing.assert_array_equal(y.grad, [1.5, 2])


def test_apply_on_a_dense_copy_of_an_input(ops, mode):
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = torch.arange(6.0, 12.0).reshape(3, 2).requires_grad_()
    mode(lambda a, b: ops.mul_dense(a.t(), b))(x, y).sum().backward()
    np.testing.assert_array_equal(x.grad, y.detach().t())
    np.testing.assert_array_equal(y.grad, x.detach().t())


def test_apply_on_a_reshape_of_an_input(ops, mode):
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = torch.arange(6.0, 12.0).requires_grad_()
    out = mode(lambda a, b: ops.mul_reshaped(a, b))(x, y)
    assert out.shape == (6,)
    out.sum().backward()
    np.testing.assert_array_equal(x.grad, y.detach().reshape(2, 3))
    np.testing.assert_array_equal(y.grad, x.detach().reshape(6))


def test_a_cast_after_apply(ops, mode):
    x, y = torch.arange(4.0).reshape(2, 2).requires_grad_(), torch.full((2, 2), 3.0)
    out = mode(lambda a, b: ops.mul_then_cast(a, b))(x, y)
    assert out.dtype == torch.float64 and out.shape == (4,)
    out.sum().backward()
    assert x.grad.dtype == torch.float32
    np.testing.assert_array_equal(x.grad, [[3, 3], [3, 3]])


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    "name", ["plain", "plain_by_macro", "plain_before", "plain_after", "macro_before", "macro_after"]
)
def test_a_launch_that_is_not_recorded_has_no_gradient(ops, mode, name):
    x, y = leaf(2.0), torch.tensor([3.0])
    function = mode(lambda a, b: getattr(ops, name)(a, b))
    with torch.no_grad():
        assert function(x, y).item() in (6, 18)
    with pytest.raises(RuntimeError, match="outside of the Apply of a Function"):
        function(x, y).sum().backward()
    _, pull = getattr(ops, name).vjp(np.float32([2]), np.float32([3]))
    with pytest.raises(RuntimeError, match="outside of the Apply of a Function"):
        pull(np.ones(1, np.float32))


@pytest.mark.slow
def test_beside_a_launch_that_is_not_recorded(ops):
    x, y = leaf(2.0), torch.tensor([3.0])
    good, _ = ops.plain_beside(x, y)
    good.sum().backward()
    assert x.grad.item() == 3
    for both in (ops.plain_beside, graph(lambda a, b: ops.plain_beside(a, b))):
        _, bad = both(x, y)
        with pytest.raises(RuntimeError, match="output 1 is not known.*outside of the Apply of a Function"):
            bad.sum().backward()


def test_gradients_that_are_not_requested_are_not_computed(ops):
    count = ops.count_multiplications
    for flags, expected in [((True, True), 2), ((True, False), 1), ((False, True), 1)]:
        x, y = (torch.ones(2, requires_grad=flag) for flag in flags)
        out = ops.mul(x, y)
        before = count()
        out.sum().backward()
        assert count() - before == expected
        assert ((x.grad is not None), (y.grad is not None)) == flags


@pytest.mark.parametrize(
    ("first", "second"),
    [((3,), (2, 3)), ((2, 1), (1, 3)), ((), (2, 2)), ((1, 3), (2, 3)), ((0, 3), (3,)), ((2, 1, 3), (4, 1))],
    ids=str,
)
def test_gradients_are_summed_to_a_broadcast_inputs_shape(ops, first, second):
    torch.manual_seed(0)
    x, y = torch.randn(first, requires_grad=True), torch.randn(second, requires_grad=True)
    out = ops.mul(x, y)
    weight = torch.randn(out.shape)
    expected = torch.autograd.grad((x * y * weight).sum(), [x, y])
    torch.testing.assert_close(torch.autograd.grad((out * weight).sum(), [x, y]), expected)
    _, pull = ops.mul.vjp(x.detach().numpy(), y.detach().numpy())
    for gradient, grad in zip(pull(weight.numpy()), expected, strict=True):
        np.testing.assert_allclose(gradient, grad, rtol=1e-5, atol=1e-6)
