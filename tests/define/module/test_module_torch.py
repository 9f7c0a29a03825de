"""Functions of C++ modules under PyTorch's transforms: derivatives of any order, compile, export, dtypes, layouts."""

import pathlib
import threading

import ml_dtypes
import numpy as np
import pytest

from polyop.define.module.builder import CustomOpBuilder

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

SOURCES = pathlib.Path(__file__).parents[2] / "sources"
LOOP_WARNING = "ignore:.*vmap runs one call per sample"


@pytest.fixture(scope="session")
def ops():
    return CustomOpBuilder("module_gradients", [str(SOURCES / "module_gradients.cpp")]).load()


@pytest.fixture(scope="session")
def functions():
    return CustomOpBuilder("module_functions", [str(SOURCES / "module_functions.cpp")]).load()


def graph(function, **options):
    torch.compiler.reset()
    return torch.compile(function, fullgraph=True, **options)


def randn(*shape, dtype=torch.float64):
    torch.manual_seed(len(shape))
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def first_derivative(function, x):
    return torch.autograd.grad(function(x).sum(), x, create_graph=True)[0]


def second_derivative(function, x):
    return torch.autograd.grad(first_derivative(function, x).sum(), x)


# -- derivatives of higher order

SMOOTH = {
    "sigmoid": (lambda ops, x: ops.sigmoid(x), torch.sigmoid),
    "exp_times": (lambda ops, x: ops.exp_times(x), lambda x: x.exp() * x),
    "both": (lambda ops, x: ops.both(x, x)[0] * ops.both(x, x)[1], lambda x: x * x * 2 * x),
    "sum_list": (lambda ops, x: ops.sum_list([x, x]) * x, lambda x: 2 * x * x),
}


@pytest.fixture(params=SMOOTH)
def pair(request, ops):
    call, formula = SMOOTH[request.param]
    return (lambda x: call(ops, x)), formula


def test_gradcheck(pair):
    assert gradcheck(pair[0], (randn(2, 3),))
    assert gradgradcheck(pair[0], (randn(2, 3),))


def test_gradcheck_of_own_loops(ops):
    assert gradcheck(ops.square, (randn(2, 3),))
    assert gradcheck(lambda x: ops.exp_times(x, by_loop=True), (randn(2, 3),))
    assert gradcheck(lambda x: ops.exp_times(x, keep_input=False), (randn(2, 3),))


def test_a_first_derivative_with_create_graph(ops):
    x = randn(3)
    torch.testing.assert_close(first_derivative(ops.square, x), 2 * x)


SAVES = "exp_times: a tensor that its Forward computes and saves"
REFUSALS = {
    "second derivative through a kernel": (
        lambda ops: second_derivative(ops.square, randn(3)),
        "square: its Backward has no gradient: it runs square_grad, a kernel of",
    ),
    "second derivative through what a kernel wrote and an operator changed in place": (
        lambda ops: second_derivative(ops.square_in_place, randn(3)),
        "square_in_place: its Backward has no gradient: it runs own_product, a kernel of",
    ),
    "create_graph through a saved tensor of a kernel": (
        lambda ops: first_derivative(lambda x: ops.exp_times(x, by_loop=True), randn(3)),
        f"{SAVES} .*it runs own_exp, a kernel of its own",
    ),
    "create_graph through a tensor that is not saved": (
        lambda ops: first_derivative(lambda x: ops.exp_times(x, keep_input=False), randn(3)),
        f"{SAVES} .*it is computed from tensor 0 of the arguments, which is not saved",
    ),
    "create_graph where Forward reads data": (
        lambda ops: first_derivative(ops.by_maximum, randn(2, dtype=torch.float32)),
        "by_maximum: its Backward has no gradient: its Forward depends on data",
    ),
    "forward mode through a kernel": (
        lambda ops: torch.func.jvp(ops.square, (randn(3).detach(),), (randn(3).detach(),)),
        "it runs square_grad, a kernel of its own",
    ),
    "shapes that depend on data, without an infer rule": (
        lambda ops: graph(lambda a: ops.by_maximum(a), backend="aot_eager")(randn(3, dtype=torch.float32)),
        r"(?s)by_maximum.*reads data before the shape.*load\(infer=\{\.\.\.\}\)",
    ),
}
"""Call -> words of its ``RuntimeError``."""


@pytest.mark.parametrize(("call", "message"), REFUSALS.values(), ids=REFUSALS)
def test_what_cannot_be_derived_is_refused_with_its_reason(ops, call, message):
    with pytest.raises(RuntimeError, match=message):
        call(ops)


@pytest.mark.filterwarnings(LOOP_WARNING)
def test_functional_transforms(pair):
    function, formula = pair
    x = randn(4).detach()
    for name in ("grad", "hessian"):
        transform = getattr(torch.func, name)
        result = transform(lambda y: function(y).sum())(x)
        torch.testing.assert_close(result, transform(lambda y: formula(y).sum())(x))
    torch.testing.assert_close(torch.func.jacrev(function)(x), torch.func.jacrev(formula)(x))


def test_forward_mode(pair):
    function, formula = pair
    x, tangent = randn(4).detach(), torch.arange(4.0, dtype=torch.float64)
    result = torch.func.jvp(function, (x,), (tangent,))
    for one, expected in zip(result, torch.func.jvp(formula, (x,), (tangent,)), strict=True):
        torch.testing.assert_close(one, expected)


@pytest.mark.filterwarnings(LOOP_WARNING)
def test_vmap(ops, functions, pair):
    function, formula = pair
    x = randn(3, 4).detach()
    torch.testing.assert_close(torch.vmap(function)(x), formula(x))
    torch.testing.assert_close(torch.vmap(function, in_dims=1)(x), formula(x).t())
    grad = torch.vmap(torch.func.grad(lambda y: function(y).sum()))(x)
    expected = torch.vmap(torch.func.grad(lambda y: formula(y).sum()))(x)
    torch.testing.assert_close(grad, expected)
    y = randn(4).detach()
    torch.testing.assert_close(torch.vmap(functions.mul, in_dims=(0, None))(x, y), x * y)
    torch.testing.assert_close(torch.vmap(ops.square)(x), x * x)


# -- compile and export


@pytest.mark.slow
def test_compiled_by_the_inductor(functions, ops):
    x, y = randn(4, 3, dtype=torch.float32), randn(3, dtype=torch.float32)
    run = graph(lambda a, b: (functions.chain(a, b).relu() + ops.sigmoid(a)).sum())
    expected = torch.autograd.grad(((x * y * y).relu() + x.sigmoid()).sum(), [x, y])
    torch.testing.assert_close(torch.autograd.grad(run(x, y), [x, y]), expected)


@pytest.mark.slow
def test_compiled_for_sizes_that_change(functions):
    run = graph(lambda a, b: functions.mul(a, b) * 2, backend="aot_eager", dynamic=True)
    for size in (2, 3, 7):
        x, y = randn(size, 3), randn(3)
        out = run(x, y)
        expected = torch.autograd.grad((2 * x * y).sum(), [x, y])
        torch.testing.assert_close(torch.autograd.grad(out.sum(), [x, y]), expected)


def test_exported(functions, tmp_path):
    class Net(torch.nn.Module):
        def forward(self, x, y):
            return functions.mul(x, y) + 1

    x, y = randn(4, 3).detach(), randn(3).detach()
    program = torch.export.export(Net(), (x, y))
    assert "module_functions.mul" in str(program.graph)
    torch.testing.assert_close(program.module()(x, y), x * y + 1)
    torch.export.save(program, tmp_path / "net.pt2")
    torch.testing.assert_close(torch.export.load(tmp_path / "net.pt2").module()(x, y), x * y + 1)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_opcheck(functions, ops):
    x, y = randn(4, 3), randn(3)
    for operator, arguments in [
        (functions.mul, (x, y)),
        (functions.chain, (x, y)),
        (functions.plain, (x.detach(), y.detach())),
        (ops.square, (x,)),
        (ops.exp_times, (x,)),
        (ops.both, (x, x)),
        (ops.state, (x, 3, [2, 5], 'a "label" é')),
        (ops.sum_list, ([x, x],)),
    ]:
        result = torch.library.opcheck(operator.torch, arguments)
        assert set(result.values()) == {"SUCCESS"}, (operator, result)


@pytest.mark.slow
def test_an_infer_rule_makes_it_compile(tmp_path):
    source = SOURCES / "module_gradients.cpp"
    builder = CustomOpBuilder("module_gradients_inferred", [str(source)])
    ops = builder.load(infer={"by_maximum": lambda x: x})
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    run = graph(lambda a: ops.by_maximum(a) * 1, backend="aot_eager")
    out = run(x)
    np.testing.assert_array_equal(out.detach(), [4, 16])
    out.sum().backward()
    np.testing.assert_array_equal(x.grad, [4, 4])
    y = torch.tensor([1.0, 5.0], requires_grad=True)
    out = run(y)
    out.sum().backward()
    np.testing.assert_array_equal(y.grad, [5, 5])
    assert builder.load(infer={"by_maximum": ops.by_maximum.author_infer}) is ops
    with pytest.raises(ValueError, match="must name its functions: square, .*but got nothing_such"):
        builder.load(infer={"nothing_such": "x"})


# -- tensors of every kind

LAYOUTS = {
    "transposed": lambda x: x.t(),
    "steps": lambda x: x[:, ::2],
    "expanded": lambda x: x[0].expand(3, 6),
    "reversed": lambda x: x.flip(0)[:, 1:],
    "empty": lambda x: x[:0],
    "scalar": lambda x: x[1, 1],
    "offset": lambda x: x[2],
}


@pytest.mark.parametrize("view", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts(functions, ops, view):
    x, y = randn(4, 6), randn(4, 6)
    for function, formula in [
        (functions.mul, lambda a, b: a * b),
        (functions.chain, lambda a, b: a * b * b),
        (lambda a, b: ops.square(a) + ops.sigmoid(b), lambda a, b: a * a + b.sigmoid()),
    ]:
        out, expected = function(view(x), view(y)), formula(view(x), view(y))
        torch.testing.assert_close(out, expected)
        result = torch.autograd.grad(out.sum(), [x, y])  # the gradient has stride 0
        torch.testing.assert_close(result, torch.autograd.grad(expected.sum(), [x, y]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_floats(functions, dtype):
    x = torch.tensor([1.5, -2.0, 0.25], dtype=dtype, requires_grad=True)
    y = torch.tensor([4.0, 0.5, 8.0], dtype=dtype, requires_grad=True)
    out = functions.mul(x, y)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out.detach().float(), [6, -1, 2])
    out.backward(torch.tensor([1.0, 2.0, 4.0], dtype=dtype))
    assert x.grad.dtype == dtype
    np.testing.assert_array_equal(x.grad.float(), [4, 1, 32])
    np.testing.assert_array_equal(y.grad.float(), [1.5, -4, 1])


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.int32, np.int64, np.uint8])
def test_dtypes_on_numpy(functions, kind):
    x, y = np.array([[1, 2], [3, 4]], kind), np.array([5, 6], kind)
    out = functions.mul(x, y)
    assert out.dtype == kind
    np.testing.assert_array_equal(out.astype(np.float64), [[5, 12], [15, 24]])


def test_integers_have_no_gradient(functions):
    x = torch.tensor([2, 3])
    assert not functions.mul(x, x).requires_grad
    np.testing.assert_array_equal(functions.mul(x, x), [4, 9])


def test_complex_tensors(functions):
    x = torch.tensor([1 + 2j, -1j], dtype=torch.complex64)
    y = torch.tensor([3 - 1j, 2 + 0j], dtype=torch.complex64)
    torch.testing.assert_close(functions.mul(x, y), x * y)
    torch.testing.assert_close(functions.mul(x.conj(), y), x.conj() * y)
    torch.testing.assert_close(functions.mul(x.imag, y.real), x.imag * y.real)


@pytest.mark.parametrize("flags", [(True, False), (False, True)])
def test_a_gradient_of_one_input_only(functions, flags):
    x, y = (torch.tensor([2.0, 3.0 + k], requires_grad=flag) for k, flag in enumerate(flags))
    for run in (functions.chain, graph(lambda a, b: functions.chain(a, b), backend="aot_eager")):
        (result,) = torch.autograd.grad(run(x, y).sum(), x if flags[0] else y)
        torch.testing.assert_close(result, (y * y if flags[0] else 2 * x * y).detach())


def test_subclasses_and_parameters(functions):
    p = torch.nn.Parameter(torch.tensor([2.0]))
    functions.mul(p, torch.tensor([5.0])).backward()
    assert p.grad.item() == 5


def test_hooks_and_inference_mode(functions):
    x = torch.tensor([2.0], requires_grad=True)
    gradients = []
    out = functions.square(x)
    out.register_hook(lambda grad: gradients.append(grad.item()))
    (3 * out).backward()
    assert gradients == [3] and x.grad.item() == 12
    with torch.inference_mode():
        assert functions.square(torch.tensor([3.0])).item() == 9


def test_saved_tensors_pass_through_hooks(functions):
    x = torch.tensor([2.0], requires_grad=True)
    packed = []

    def pack(tensor):
        packed.append(tensor.shape)
        return tensor.detach().clone()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = functions.square(x)
    assert packed
    out.backward()
    assert x.grad.item() == 4


def test_checkpointing(functions, ops):
    from torch.utils.checkpoint import checkpoint

    x, y = randn(5), randn(5)
    out = checkpoint(lambda a, b: functions.chain(a, b) + ops.exp_times(a), x, y, use_reentrant=False)
    expected = torch.autograd.grad((x * y * y + x.exp() * x).sum(), [x, y])
    torch.testing.assert_close(torch.autograd.grad(out.sum(), [x, y]), expected)


def test_threads(functions, ops):
    problems = []

    def work(seed):
        try:
            generator = torch.Generator().manual_seed(seed)
            for size in range(1, 60):
                x = torch.randn(size, 8, generator=generator).requires_grad_()
                y = torch.randn(8, generator=generator).requires_grad_()
                out = functions.chain(x, y) + ops.square(x)
                result = torch.autograd.grad(out.sum(), [x, y])
                expected = torch.autograd.grad((x * y * y + x * x).sum(), [x, y])
                torch.testing.assert_close(result, expected)
        except BaseException as problem:  # raised again in the test's own thread
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[0]


def test_large_tensors(functions):
    x = torch.arange(200_000, dtype=torch.float32).requires_grad_()
    out = functions.square(x)
    torch.testing.assert_close(out.detach(), x.detach() ** 2)
    (result,) = torch.autograd.grad(out.sum(), x)
    torch.testing.assert_close(result, 2 * x.detach())
