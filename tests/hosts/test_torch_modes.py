"""Every PyTorch transform of an operator equals that of the same formula in PyTorch's own operators."""

import pytest

import polyop

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import func  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402

A = 2.0


def reference(x, a=1.0):
    return a * x**3


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(4, dtype=torch.float64)


@pytest.fixture
def batch():
    torch.manual_seed(1)
    return torch.randn(3, 4, dtype=torch.float64)


@pytest.fixture(params=["object", "torch.ops"])
def cube_op(request, cube):
    return cube if request.param == "object" else cube.torch


def leaf(x):
    return x.clone().requires_grad_()


def reverse(f, x, batch):
    return torch.autograd.grad(f(y := leaf(x), A).sum(), y)[0]


def double(f, x, batch):
    y = leaf(x)
    (g,) = torch.autograd.grad(f(y, A).sum(), y, create_graph=True)
    return torch.autograd.grad(g.sum(), y)[0]


def dual(f, x, batch):
    with forward_ad.dual_level():
        out = f(forward_ad.make_dual(x, torch.ones_like(x)), A)
        return forward_ad.unpack_dual(out).tangent


def forward_over_reverse(f, x, batch):
    with forward_ad.dual_level():
        y = forward_ad.make_dual(leaf(x), torch.ones_like(x))
        (g,) = torch.autograd.grad(f(y, A).sum(), y, create_graph=True)
        return forward_ad.unpack_dual(g).tangent


def reverse_of_vmap(f, x, batch):
    y = leaf(batch)
    return torch.autograd.grad(func.vmap(lambda t: f(t, A))(y).sum(), y)[0]


def stride_0_gradient(f, x, batch):
    y = leaf(x)
    f(y, A).backward(torch.ones(1, dtype=x.dtype).expand(4))
    return y.grad


CASES = {
    "call": lambda f, x, b: f(x, A),
    "reverse": reverse,
    "double": double,
    "dual numbers": dual,
    "forward over reverse": forward_over_reverse,
    "stride-0 gradient": stride_0_gradient,
    "func.grad": lambda f, x, b: func.grad(lambda t: f(t, A).sum())(x),
    "grad of grad": lambda f, x, b: func.grad(lambda t: func.grad(lambda s: f(s, A).sum())(t).sum())(x),
    "jvp": lambda f, x, b: func.jvp(lambda t: f(t, A), (x,), (torch.ones_like(x),))[1],
    "vjp": lambda f, x, b: func.vjp(lambda t: f(t, A), x)[1](torch.ones_like(x))[0],
    "vmap": lambda f, x, b: func.vmap(lambda t: f(t, A))(b),
    "vmap over columns": lambda f, x, b: func.vmap(lambda t: f(t, A), in_dims=1)(b),
    "vmap of vmap": lambda f, x, b: func.vmap(func.vmap(lambda t: f(t, A)))(b),
    "vmap of grad": lambda f, x, b: func.vmap(func.grad(lambda t: f(t, A).sum()))(b),
    "grad of vmap": lambda f, x, b: func.grad(lambda t: func.vmap(lambda s: f(s, A))(t).sum())(b),
    "reverse of vmap": reverse_of_vmap,
    "jacrev": lambda f, x, b: func.jacrev(lambda t: f(t, A))(x),
    "jacfwd": lambda f, x, b: func.jacfwd(lambda t: f(t, A))(x),
    "hessian": lambda f, x, b: func.hessian(lambda t: f(t, A).sum())(x),
    "inference mode": lambda f, x, b: torch.inference_mode()(f)(x, A).clone(),
    "no grad": lambda f, x, b: torch.no_grad()(f)(leaf(x), A),
    "parameter": lambda f, x, b: f(torch.nn.Parameter(x), A).detach(),
}


@pytest.mark.parametrize("name", CASES)
def test_eager(name, cube_op, x, batch):
    torch.testing.assert_close(CASES[name](cube_op, x, batch), CASES[name](reference, x, batch))


def compiled(f, *args, dynamic=None):
    torch._dynamo.reset()
    return torch.compile(f, fullgraph=True, backend="aot_eager", dynamic=dynamic)(*args)


COMPILED = {
    "call": lambda f, x, b: compiled(lambda t: f(t, A) + 1, x),
    "keyword": lambda f, x, b: compiled(lambda t: f(t, a=A) + 1, x),
    "default": lambda f, x, b: compiled(lambda t: f(t) + 1, x),
    "dynamic": lambda f, x, b: compiled(lambda t: f(t, A) + 1, x, dynamic=True),
    "grad": lambda f, x, b: compiled(lambda t: func.grad(lambda s: f(s, A).sum())(t), x),
    "vmap": lambda f, x, b: compiled(lambda t: func.vmap(lambda s: f(s, A))(t), b),
    "jvp": lambda f, x, b: compiled(lambda t: func.jvp(lambda s: f(s, A), (t,), (torch.ones_like(t),))[1], x),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name, cube_op, x, batch):
    torch.testing.assert_close(COMPILED[name](cube_op, x, batch), COMPILED[name](reference, x, batch))


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_backward(cube_op, x, dynamic):
    y = leaf(x)
    compiled(lambda t: (cube_op(t * 1.0, A) + 0).sum(), y, dynamic=dynamic).backward()
    torch.testing.assert_close(y.grad, reverse(reference, x, None))


def test_dynamic_sizes_do_not_recompile(cube):
    torch._dynamo.reset()
    counter = pytest.importorskip("torch._dynamo.testing").CompileCounter()
    f = torch.compile(lambda t: cube(t) + 1, fullgraph=True, backend=counter, dynamic=True)
    for n in (3, 5, 9):
        f(torch.ones(n, dtype=torch.float64))
    assert counter.frame_count == 1


def test_gradcheck_to_second_order(cube):
    y = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(cube, (y, 2.0), check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(cube, (y, 2.0))


def test_operators_that_are_each_others_gradient(x):
    import numpy as np

    sine = polyop.operator(
        "modes::sine(Tensor x) -> Tensor",
        np.sin,
        infer="x",
        gradient=lambda x, out, d: (cosine(x) * d,),
        batch="elementwise",
    )
    cosine = polyop.operator(
        "modes::cosine(Tensor x) -> Tensor",
        np.cos,
        infer="x",
        gradient=lambda x, out, d: (-sine(x) * d,),
        batch="elementwise",
    )
    for name in (
        "double",
        "dual numbers",
        "forward over reverse",
        "jvp",
        "hessian",
        "jacfwd",
        "grad of grad",
        "vmap of grad",
    ):
        torch.testing.assert_close(
            CASES[name](lambda t, a: sine(t), x, x.expand(3, 4)),
            CASES[name](lambda t, a: torch.sin(t), x, x.expand(3, 4)),
        )
    one = torch.tensor(0.5, dtype=torch.float64)
    for order in (
        (func.grad, func.jacfwd, func.grad),
        (func.grad, func.grad, func.jacfwd),
        (func.jacfwd, func.grad, func.grad),
    ):
        ours, theirs = sine, torch.sin
        for transform in order:
            ours, theirs = transform(ours), transform(theirs)
        torch.testing.assert_close(ours(one), theirs(one))


def test_forward_inside_forward_is_refused_where_pytorch_would_give_zero(cube):
    one = torch.tensor(0.5, dtype=torch.float64)
    for order in ((func.jacfwd, func.jacfwd), (func.jacfwd, func.grad, func.jacfwd)):
        f = cube
        for transform in order:
            f = transform(f)
        with pytest.raises(RuntimeError, match="forward mode inside forward mode loses the inner tangent"):
            f(one)


class Net(torch.nn.Module):
    def __init__(self, op):
        super().__init__()
        self.op = op

    def forward(self, x):
        return self.op(x, 2.0) + 1


@pytest.mark.parametrize("strict", [False, True])
def test_export(cube, x, strict):
    size = torch.export.Dim("n", min=2)
    program = torch.export.export(Net(cube), (x,), dynamic_shapes={"x": {0: size}}, strict=strict)
    assert "host_tests.cube" in program.graph_module.code
    longer = torch.randn(7, dtype=torch.float64)
    torch.testing.assert_close(program.module()(longer), reference(longer, 2.0) + 1)


def test_opcheck(cube, square, plain):
    for op, args in (
        (cube, (torch.randn(4, dtype=torch.float64, requires_grad=True), 2.0)),
        (square, (torch.randn(3, 4, requires_grad=True),)),
    ):
        found = torch.library.opcheck(op.torch, args)
        assert set(found.values()) == {"SUCCESS"}, found
    assert set(torch.library.opcheck(plain.torch, (torch.randn(4),)).values()) == {"SUCCESS"}


@pytest.mark.slow
def test_aot_inductor(cube, x, tmp_path):
    program = torch.export.export(Net(cube), (x,))
    package = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "net.pt2"))
    loaded = torch._inductor.aoti_load_package(package)
    torch.testing.assert_close(loaded(x), reference(x, 2.0) + 1)


@pytest.mark.slow
def test_inductor(cube, x):
    torch._dynamo.reset()
    y = leaf(x)
    torch.compile(lambda t: (cube(torch.sin(t), A) * 2).sum(), fullgraph=True)(y).backward()
    z = leaf(x)
    (reference(torch.sin(z), A) * 2).sum().backward()
    torch.testing.assert_close(y.grad, z.grad)
