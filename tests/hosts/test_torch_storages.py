"""PyTorch's storages after a call: they can still be resized, which FSDP2 does to free parameters."""

import gc
import pathlib

import numpy as np
import pytest

import polyop

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

DTYPES = (
    "bool uint8 int16 int64 uint16 float16 bfloat16 float32 float64 complex64 complex128 float8_e4m3fn "
    "float8_e5m2"
)


def resizable(*tensors):
    return [tensor.untyped_storage().resizable() for tensor in tensors]


@pytest.fixture(scope="session")
def double():
    """Twice x, by a Python function; so is its gradient."""
    return polyop.operator(
        "storages::double(Tensor x) -> Tensor",
        lambda x: x * 2,
        infer="x",
        gradient=lambda x, out, dout: (double_grad(dout),),
        batch="elementwise",
    )


double_grad = polyop.operator(
    "storages::double_grad(Tensor x) -> Tensor", lambda x: x * 2, infer="x", batch="elementwise"
)


@pytest.mark.parametrize("way", ["object", "torch.ops", "compiled", "vmap", "provider", "transposed"])
def test_storages_stay_resizable_forwards_and_backwards(double, way):
    calls = {
        "object": double,
        "torch.ops": double.torch,
        "compiled": torch.compile(double, fullgraph=True, backend="aot_eager"),
        "vmap": torch.vmap(double),
        "provider": polyop.Custom("aclnnNeg", lambda x: x, lambda x: x, "aot", bprop=lambda x, out, dout: (double_grad(dout),)),
        "transposed": lambda x: double(x.t()),
    }  # fmt: skip
    x = torch.ones(3, 2, requires_grad=True)
    out = calls[way](x)
    grad = torch.ones_like(out)
    (x_grad,) = torch.autograd.grad(out, x, grad)
    torch.testing.assert_close(x_grad, torch.full((3, 2), 2.0))
    assert resizable(x, out, grad, x_grad) == [True] * 4
    x.untyped_storage().resize_(0)
    assert x.untyped_storage().size() == 0


@polyop.kernel
def squared(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the loop language
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * x[i, j]
    return y


@pytest.fixture(scope="session")
def kinds(cube):
    """Operators whose kernels are no Python functions."""
    smooth = pathlib.Path(__file__).parents[2] / "examples" / "08_cpp_module" / "smooth.cpp"
    module = polyop.CustomOpBuilder("storages_smooth", [smooth], backend="CPU").load()
    return {
        "c": cube,
        "loops": squared,
        "aten by name": polyop.aten("tanh"),
        "module of loops": lambda x: module.smooth_abs(x, 0.5),
        "module of aclnn": lambda x: module.mul(x, x),
    }


@pytest.mark.slow(4)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("kind", ["c", "loops", "aten by name", "module of loops", "module of aclnn"])
def test_storages_stay_resizable_for_other_kinds_of_kernel(kinds, kind, compiled):
    compiler = torch.compile(fullgraph=True, backend="aot_eager") if compiled else lambda function: function
    op = kinds[kind]
    for function in (op, lambda x: op(x[:, ::2])):
        x = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
        out = compiler(function)(x)
        grad = torch.ones_like(out)
        (x_grad,) = torch.autograd.grad(out, x, grad)
        assert resizable(x, out, grad, x_grad) == [True] * 4


@pytest.mark.parametrize("name", DTYPES.split())
def test_every_dtype_and_size_goes_through_a_python_function(name):
    op = polyop.operator(f"storages::same_{name}(Tensor x) -> Tensor", lambda x: x[...], infer="x")
    values = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(torch, name))
    for x in (values, values[:0], values[0, 0], values[:, 1:], values.t()):
        out = op(x)
        assert out.dtype == x.dtype and out.shape == x.shape
        assert torch.equal(out.to(torch.complex64), x.to(torch.complex64))
        assert resizable(x, out) == [True, True]


def test_an_array_that_the_function_keeps_keeps_its_memory():
    kept = []
    op = polyop.operator("storages::keep(Tensor x) -> Tensor", lambda x: kept.append(x[1:]) or x, infer="x")
    x = torch.arange(100_000.0)
    op(x)
    assert resizable(x) == [False]
    with pytest.raises(RuntimeError, match="not resizable"):
        x.untyped_storage().resize_(0)
    del x
    gc.collect()
    np.testing.assert_array_equal(kept[0], np.arange(1, 100_000.0, dtype=np.float32))


def test_only_what_the_schema_writes_can_be_written():
    def write(x, y):
        y[...] = 1
        y += x
        assert not x.flags.writeable

    op = polyop.operator("storages::write(Tensor x, Tensor(a!) y) -> ()", write)
    x, y, apart = torch.ones(3), torch.zeros(3), torch.zeros(3, 2)
    op(x, y)
    op(x, apart[:, 1])
    assert y.tolist() == [2, 2, 2] and apart.tolist() == [[0, 2]] * 3
    assert resizable(x, y, apart) == [True] * 3


def test_tensors_of_scripts_in_minds_style_are_resizable():
    from polyop.mindspore import Parameter, Tensor, ops

    x = Tensor(np.arange(6.0).reshape(2, 3).T)
    weight = Parameter(Tensor([1.0, 2.0]))
    both = Tensor([x, x])
    assert both.shape == (2, 3, 2)
    assert resizable(x, weight, both, ops.exp(x)) == [True] * 4
