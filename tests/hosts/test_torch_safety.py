"""What fast interfaces drop, and this one keeps: each case was silently wrong, or a crash, without its guard."""

import gc
import weakref

import numpy as np
import pytest

import polyop

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(params=["object", "torch.ops"])
def square_op(request, square):
    return square if request.param == "object" else square.torch


def f32(*shape):
    torch.manual_seed(0)
    return torch.randn(*shape)


@pytest.mark.parametrize("make", [
    lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[:, 1:2], lambda x: x[0].expand(5, 4), lambda x: x[1:], lambda x: x[:0],
    lambda x: x[:, :0], lambda x: x[0, 0], lambda x: torch._neg_view(x), lambda x: x.to(torch.complex64).conj().imag,
    lambda x: torch.complex(x, x).conj().real, lambda x: torch.nn.Parameter(x, requires_grad=False), lambda x: x.detach(),
], ids=["transposed", "strided", "column", "expanded", "offset", "no rows", "no columns", "0-d", "negative", "conj imag", "conj real", "parameter", "detached"])  # fmt: skip
def test_every_layout_and_view(square_op, make):
    x = make(f32(3, 4))
    out = square_op(x)
    assert out.shape == x.shape and out.is_contiguous()
    torch.testing.assert_close(out, x * x)


def test_conjugate_bits_are_resolved(kernels):
    op = polyop.operator("torch_tests::copy(Tensor x) -> Tensor", kernels("copy"), infer="x")
    x = torch.tensor([1 + 2j, 3 - 4j]).conj()
    assert torch.equal(op(x), x.resolve_conj()) and torch.equal(op.torch(x), x.resolve_conj())


@pytest.mark.parametrize(
    "name",
    [
        "bool",
        "uint8",
        "int16",
        "int64",
        "float16",
        "bfloat16",
        "float64",
        "complex64",
        "float8_e4m3fn",
        "float8_e5m2",
        "uint16",
    ],
)
def test_dtypes(kernels, name):
    op = polyop.operator(f"torch_tests::copy_{name}(Tensor x) -> Tensor", kernels("copy"), infer="x")
    x = torch.tensor([0, 1, 1, 0]).to(getattr(torch, name))
    for call in (op, op.torch):
        assert call(x).dtype == x.dtype and torch.equal(call(x).view(torch.uint8), x.view(torch.uint8))


def test_fake_and_meta_tensors_never_reach_the_kernel(square_op):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        out = square_op(mode.from_tensor(f32(3, 4)))
        assert type(out).__name__ == "FakeTensor" and out.shape == (3, 4)
    out = square_op(torch.empty(3, 4, device="meta"))
    assert out.device.type == "meta" and out.shape == (3, 4)


def test_subclasses_and_modes_are_seen(square_op):
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    with Mode():
        square_op(f32(2))
    assert "host_tests.square.default" in seen


def test_dual_numbers_are_recognised(square):
    from torch.autograd import forward_ad

    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="forward mode needs jvp="):
        square(forward_ad.make_dual(f32(3), torch.ones(3)))


def test_a_missing_gradient_is_an_error_where_it_is_asked_for(plain):
    x = f32(3).requires_grad_()
    for call in (plain, plain.torch):
        out = call(x)
        assert out.requires_grad
        with pytest.raises(RuntimeError, match="host_tests::plain: has no gradient rule"):
            out.sum().backward()
    with torch.no_grad():
        assert not plain(x).requires_grad


def test_second_order_without_a_rule_is_an_error(square):
    x = f32(3).requires_grad_()
    (g,) = torch.autograd.grad(square(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="square_grad: has no gradient rule"):
        g.sum().backward()


def test_versions_move_and_autograd_notices(scale_):
    x = f32(4)
    version = x._version
    scale_(x, 2.0)
    assert x._version > version
    a = f32(4).requires_grad_()
    saved = a.exp()
    scale_(saved.detach(), 2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.sum().backward()
    with pytest.raises(
        RuntimeError, match="writes an argument in place, and such an operator has no gradient"
    ):
        scale_(a, 2.0)


def test_written_views_and_compiled_mutation(scale_):
    x = f32(3, 4)
    expected = x.clone()
    scale_(x.t()[1:], 3.0)
    expected[:, 1:] *= 3
    torch.testing.assert_close(x, expected)
    torch._dynamo.reset()

    def f(t):
        y = t.clone()
        scale_(y, 2.0)
        return y + 1

    torch.testing.assert_close(torch.compile(f, fullgraph=True, backend="aot_eager")(x), 2 * x + 1)
    assert set(torch.library.opcheck(scale_.torch, (f32(3), 2.0)).values()) == {"SUCCESS"}


def test_vmap_of_a_written_argument(scale_):
    x, expected = f32(3, 4), f32(3, 4) * 2
    with pytest.warns(polyop.FallbackWarning, match="one call per sample"):
        torch.vmap(lambda t: scale_(t, 2.0), out_dims=None)(x)
    torch.testing.assert_close(x, expected)


def test_lists_keep_their_gradients(kernels):
    op = polyop.operator(
        "torch_tests::add_all(Tensor[] xs) -> Tensor", kernels("add_all"), infer=lambda xs: xs[0],
        gradient=lambda xs, out, dout: ([dout * (i + 1) for i in range(len(xs))],),
    )  # fmt: skip
    xs = [f32(3).requires_grad_() for _ in range(3)]
    op(xs).sum().backward()
    assert [x.grad[0].item() for x in xs] == [1, 2, 3]
    assert torch.func.grad(lambda x: op([x, x]).sum())(f32(2)).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="must be a list of 2 gradients"):
        bad = polyop.operator(
            "torch_tests::bad_all(Tensor[] xs) -> Tensor",
            kernels("add_all"),
            infer=lambda xs: xs[0],
            gradient=lambda xs, out, d: ([d],),
        )
        bad(xs[:2]).sum().backward()


def test_optional_tensors_and_several_outputs(kernels):
    maybe = polyop.operator(
        "torch_tests::maybe(Tensor x, Tensor? y=None) -> Tensor", kernels("add_optional"), infer="x",
        gradient=lambda x, y, out, d: (d, None if y is None else d),
    )  # fmt: skip
    x, y = f32(3).requires_grad_(), f32(3).requires_grad_()
    maybe(x).sum().backward()
    maybe(x, y).sum().backward()
    assert x.grad.tolist() == [2, 2, 2] and y.grad.tolist() == [1, 1, 1]
    both = polyop.operator(
        "torch_tests::both(Tensor x, Tensor y) -> (Tensor, Tensor)", kernels("sum_and_difference"), infer="x",
        gradient=lambda x, y, out, d: (d[0] + d[1], d[0] - d[1]),
    )  # fmt: skip
    for call in (both, both.torch):
        x = f32(3).requires_grad_()
        call(x, f32(3))[1].sum().backward()  # the gradient of the unused output is zeros
        assert x.grad.tolist() == [1, 1, 1]
    assert torch.autograd.functional.jvp(lambda t: both(t, t)[0], f32(3), torch.ones(3))[1].tolist() == [
        2,
        2,
        2,
    ]


def test_vmap_without_a_rule_loops_and_says_so_once(square):
    x = f32(3, 4)
    with pytest.warns(polyop.FallbackWarning, match="host_tests::square: vmap runs one call per sample"):
        out = torch.vmap(square, in_dims=1)(x)
    torch.testing.assert_close(out, (x * x).t())
    assert torch.vmap(square)(x[:0]).shape == (0, 4)


def test_a_batch_rule_is_used(kernels):
    calls = []

    def rule(dims, args):
        calls.append(dims)
        return op(args[0].movedim(dims[0], 0)), 0

    op = polyop.operator("torch_tests::ruled(Tensor x) -> Tensor", kernels("square"), infer="x", batch=rule)
    torch.testing.assert_close(torch.vmap(op, in_dims=1)(f32(3, 4)), (f32(3, 4) ** 2).t())
    assert calls == [(1,)]


def test_autocast_where_declared(kernels):
    op = polyop.operator(
        "torch_tests::cast(Tensor x) -> Tensor", kernels("copy"), infer="x", autocast="bfloat16"
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert op(f32(3)).dtype == torch.bfloat16
    assert op(f32(3)).dtype == torch.float32


def test_the_profiler_sees_calls(square):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        square(f32(3))
    assert "host_tests::square" in {event.name for event in profile.events()}


def test_hooks_and_accumulation(square):
    x, seen = f32(3).requires_grad_(), []
    x.register_hook(seen.append)
    square(x).sum().backward()
    square(x).sum().backward()
    assert len(seen) == 2
    torch.testing.assert_close(x.grad, 4 * x.detach())


def test_mixed_frameworks_and_devices(kernels, square):
    both = polyop.operator(
        "torch_tests::mixed(Tensor x, Tensor y) -> (Tensor, Tensor)", kernels("sum_and_difference"), infer="x"
    )
    with pytest.raises(RuntimeError, match="y is a tensor of torch, and x one of numpy"):
        both(np.zeros(2, np.float32), f32(2))
    with pytest.raises(TypeError, match="strided tensor"):
        square(f32(3, 3).to_sparse())
    for devices in (("cpu", "meta"), ("meta", "cpu")):  # the outputs were memory that nobody had written
        x, y = (torch.ones(2, device=device) for device in devices)
        for call in (both, torch.ops.torch_tests.mixed):
            with pytest.raises(
                TypeError, match=f"argument y: must be on {devices[0]}, .* but got {devices[1]}"
            ):
                call(x, y)


@pytest.mark.slow
def test_inputs_that_the_rule_does_not_read_are_not_kept(kernels):
    op = polyop.operator(
        "torch_tests::lean(Tensor x) -> Tensor",
        kernels("square"),
        infer="x",
        gradient=lambda x, out, d: (d * 2,),
    )
    x = f32(3).requires_grad_() * 1
    alive = weakref.ref(x)
    out = op(x)
    del x
    gc.collect()
    assert alive() is None or out.grad_fn.saved_tensors == ()


@pytest.mark.slow
def test_an_operator_defined_before_torch_is_imported_compiles():
    import subprocess
    import sys

    program = (
        "import polyop\n"
        "op = polyop.operator('late::f(Tensor x) -> Tensor', lambda x: x + 1, infer='x')\n"
        "import torch\n"
        "print(torch.compile(lambda t: op(t) * 2, fullgraph=True, backend='aot_eager')(torch.ones(2)).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[4.0, 4.0]", done.stderr[-800:]
