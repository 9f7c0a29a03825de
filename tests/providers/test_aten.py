"""PyTorch's operators by name: names, schemas, inference, gradients as operators, PyTorch's own modes."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import polyop  # noqa: E402
from polyop.call.explain import explain  # noqa: E402
from polyop.core.errors import (  # noqa: E402
    ArgumentTypeError,
    ArgumentValueError,
    GradientError,
    InferError,
    KernelError,
    UnsupportedError,
)
from polyop.providers.aten import aten, listing  # noqa: E402
from polyop.testing import check  # noqa: E402

X = np.linspace(-1.0, 1.5, 6).reshape(2, 3)


def spec(*shape, dtype="float32"):
    return polyop.Spec(shape, dtype)


@pytest.fixture(scope="module")
def foreign():
    """Operators that another library registered, complete and incomplete ones."""
    library = torch.library.Library("foreign", "DEF")
    library.define("halve(Tensor x, int times=1) -> Tensor")
    library.impl("halve", lambda x, times=1: x / 2**times, "CompositeImplicitAutograd")
    library.define("opaque(Tensor x) -> Tensor")  # only a CPU kernel, which PyTorch cannot trace
    library.impl("opaque", lambda x: torch.from_numpy(x.detach().numpy() * 2), "CPU")
    library.define("pair.left(Tensor x) -> Tensor")
    library.define("pair.right(Tensor x, Tensor y) -> Tensor")

    @torch.library.custom_op("foreign::shifted", mutates_args=())
    def shifted(x: torch.Tensor, by: float = 1.0) -> torch.Tensor:
        return x + by

    shifted.register_fake(lambda x, by=1.0: torch.empty_like(x))
    yield library
    library._destroy()


# names


def test_one_operator_has_one_object():
    leaky = aten("leaky_relu")
    assert leaky.name == "aten::leaky_relu"
    same = ("aten::leaky_relu", "leaky_relu.default", torch.ops.aten.leaky_relu, leaky.torch)
    assert all(aten(name) is leaky for name in same)
    assert aten("add") is aten("add.Tensor") is not aten("add.Scalar")
    assert copy.deepcopy(leaky) is leaky
    assert leaky.torch is torch.ops.aten.leaky_relu.default
    assert polyop.call.registry.find("aten::leaky_relu") is leaky


@pytest.mark.slow
def test_an_operator_is_pickled_as_its_name():
    code = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read()))"
    dumped = pickle.dumps(aten("leaky_relu"))
    done = subprocess.run([sys.executable, "-c", code], input=dumped, capture_output=True, check=True)
    assert b"aten::leaky_relu(Tensor self" in done.stdout
    assert pickle.loads(dumped) is aten("leaky_relu")


def test_an_operator_of_polyop_is_found_as_itself():
    mine = polyop.operator("aten_tests::mine(Tensor x) -> Tensor", lambda x: x, infer="x")
    assert aten("aten_tests::mine") is mine


def test_a_library_that_is_registered_again_is_a_new_operator():
    for factor in (2, 3):
        library = torch.library.Library("foreign_again", "FRAGMENT")
        library.define("scale(Tensor x) -> Tensor")
        library.impl("scale", lambda x, factor=factor: x * factor, "CompositeImplicitAutograd")
        op = aten("foreign_again::scale")
        assert op(np.ones(1)).tolist() == [factor]
        assert op.vjp(np.ones(1))[1](np.ones(1))[0].tolist() == [factor]
        library._destroy()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "leakyrelu",
            r"aten\('leakyrelu'\): PyTorch has no operator of this name\n.*leaky_relu, leaky_relu_",
        ),
        ("aten::name", "PyTorch has no operator of this name"),  # an attribute of torch.ops.aten itself
        ("nowhere::nms", "nothing is registered under nowhere:: .import the package that does it first"),
        ("add.tensor", r"has no overload 'tensor'\n  the overloads are\n    add.Tensor\(Tensor self"),
        ("add.t", "has no overload 't'"),  # TorchScript's, on lists
        ("pow", r"has several overloads, and one must be named\n(.*\n)*    pow.Tensor_Scalar\(Tensor self"),
        ("a b", r"must be of the form name, name.overload or namespace::name.overload"),
    ],
)
def test_wrong_names(name, message):
    with pytest.raises(ArgumentValueError, match=message):
        aten(name)


def test_a_function_is_not_a_name():
    with pytest.raises(
        ArgumentTypeError, match="must be the name of an operator, or an operator of torch.ops"
    ):
        aten(torch.relu)


# schemas


def test_the_schema_is_pytorchs_with_views_as_new_tensors():
    schemas = {
        "add": "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "add_.Tensor": "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        "view": "aten::view(Tensor self, SymInt[] size) -> Tensor",
        "split": "aten::split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
        "max.dim": "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
        "random_.from": "aten::random_.from(Tensor(a!) self, int from_, int? to, *, Generator? generator=None) "
        "-> Tensor(a!)",
    }
    for name, text in schemas.items():
        assert str(aten(name).schema) == text
    defaults = {a.name: a.default for a in aten("max_pool2d").schema.arguments[2:5]}
    assert defaults == {"stride": (), "padding": (0, 0), "dilation": (1, 1)}
    assert aten("contiguous").schema.arguments[1].default == "contiguous_format"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("set_.source_Storage", "has a schema that does not know the type 'Storage'"),
        ("qscheme", r"returns QScheme, which only PyTorch has\n  call torch.ops.aten.qscheme on PyTorch's"),
    ],
)
def test_operators_that_no_other_framework_can_express(name, message):
    with pytest.raises(UnsupportedError, match=message):
        aten(name)


def test_nearly_every_operator_of_pytorch_is_listed_and_taken():
    rows = listing()
    assert len(rows) == len([n for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::")])
    refused = [schema for schema, problem in rows if problem]
    assert len(refused) < 0.05 * len(rows)
    result = dict(listing("leaky_relu"))
    assert result["aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor"] == ""
    assert all("leaky_relu" in schema for schema in result)


# inference


def test_specs_come_from_meta_tensors():
    infer = aten("matmul").operator.infer
    assert infer((spec(2, 3), spec(3, 4))) == (spec(2, 4),)
    cuda = polyop.Spec((2,), "float32", "cuda")
    assert aten("to.dtype").operator.infer((cuda, "float16", False, False, None))[0].device == "cuda"
    assert aten("split").operator.infer((spec(5, 2), 2, 0)) == (spec(2, 2), spec(2, 2), spec(1, 2))
    assert aten("add_.Tensor").operator.infer((spec(2), spec(2), 1)) == ()
    assert aten("zeros_like").operator.infer((spec(2), "int8", None, "cpu", None, None)) == (
        spec(2, dtype="int8"),
    )


def test_specs_that_pytorch_cannot_know(foreign):
    with pytest.raises(InferError, match="aten::nonzero: the shapes of its outputs depend on the data"):
        aten("nonzero").operator.infer((spec(3),))
    with pytest.raises(InferError, match=r"foreign::opaque: PyTorch does not know(.|\n)*register_fake"):
        aten("foreign::opaque").operator.infer((spec(3),))
    with pytest.raises(InferError, match="aten::mm: PyTorch raised RuntimeError: .*reduction dim"):
        aten("mm").operator.infer((spec(2, 3), spec(2, 3)))


def test_another_hosts_outputs_are_compared_with_what_was_inferred():
    op = aten("abs")
    kernel = op.operator.kernels[0]
    assert kernel.call(op.schema, (X,), (spec(2, 3, dtype="float64"),), {})[0].tolist() == np.abs(X).tolist()
    with pytest.raises(KernelError, match=r"must give float32\[2\], as PyTorch said .* got float64\[2, 3\]"):
        kernel.call(op.schema, (X,), (spec(2),), {})


# gradients


def test_the_rule_calls_an_operator_with_a_gradient_of_its_own():
    rule = aten("tanh").operator.gradient
    first = rule.operator
    assert str(first.schema) == (
        "polyop_aten::tanh_backward_of(Tensor?[] grads, Tensor self, *, bool[]? wanted=None) -> Tensor"
    )
    assert first.operator.infer(((spec(2),), spec(2), None)) == (spec(2),)
    (dx,) = rule(X, np.tanh(X), np.ones_like(X))
    np.testing.assert_allclose(dx, 1 - np.tanh(X) ** 2, rtol=1e-12)
    _, pull = first.vjp((np.ones_like(X),), X)
    (dg,), second, _ = pull(np.ones_like(X))
    np.testing.assert_allclose(dg, dx, rtol=1e-12)
    np.testing.assert_allclose(second, -2 * np.tanh(X) * dx, rtol=1e-12)
    third = first.operator.gradient.operator.vjp((np.ones_like(X),), (np.ones_like(X),), X, wanted=None)[1]
    got = third([np.zeros_like(X), np.ones_like(X)])[2]
    np.testing.assert_allclose(got, dx * (6 * np.tanh(X) ** 2 - 2), rtol=1e-9, atol=1e-14)


def test_the_rule_serves_tensors_of_pytorch_too():
    x = torch.tensor(X, requires_grad=True)
    (dx,) = aten("tanh").operator.gradient(x, None, torch.ones_like(x))
    (ddx,) = torch.autograd.grad(dx.sum(), x)
    torch.testing.assert_close(ddx, -2 * torch.tanh(x) * (1 - torch.tanh(x) ** 2))


def test_operators_without_gradient_in_pytorch(foreign):
    with pytest.raises(GradientError, match="aten::argmax: PyTorch cannot differentiate it: no output has"):
        aten("argmax").vjp(X)[1](np.array(1))
    with pytest.raises(
        GradientError, match="aten::add.Tensor: has no floating-point tensor among its inputs"
    ):
        aten("add").vjp(np.ones(2, int), np.ones(2, int))[1](np.ones(2, int))
    with pytest.raises(
        GradientError,
        match="foreign::opaque: has no gradient: its author registers none in PyTorch\n.*register_autograd",
    ):
        aten("foreign::opaque").vjp(X)[1](X)
    with pytest.raises(GradientError, match="foreign::shifted: .*no autograd formula was registered"):
        aten("foreign::shifted").vjp(X)[1](X)
    x = X.copy()
    with pytest.raises(GradientError, match="aten::abs_: writes an argument in place, and so has no vjp"):
        aten("abs_").vjp(x)
    np.testing.assert_array_equal(x, X)
    with pytest.raises(
        GradientError, match="aten::dropout: draws random numbers, and its gradient would draw"
    ):
        aten("dropout").vjp(X, 0.5, True)


def test_gradients_that_are_given_wrongly():
    for x in (X, torch.tensor(X)):
        _, pull = aten("max.dim").vjp(x, 1)
        with pytest.raises(GradientError, match=r"gradient of output 0: must have the output's shape \(2,\)"):
            pull((x, None))
    with pytest.raises(ArgumentValueError, match="vjp needs 2 output gradients, but got 1"):
        pull((X,))


# PyTorch's own modes


def test_pytorch_gets_its_own_operator():
    x = torch.tensor(X, requires_grad=True)
    y = aten("leaky_relu")(x, negative_slope=0.5)
    assert type(y.grad_fn).__name__ == "LeakyReluBackward0"
    view = aten("view")(x, [3, 2])
    assert view._base is x
    assert aten("abs_")(view.detach()).data_ptr() == x.data_ptr()
    assert isinstance(aten("split")(x, 1), (list, tuple))
    assert aten("sum")(x, dtype="float32").dtype == aten("sum")(x, dtype=np.float32).dtype == torch.float32
    generator = torch.Generator().manual_seed(1)
    assert aten("bernoulli")(torch.ones(2), generator=generator).tolist() == [1, 1]
    assert aten("resize_")(torch.ones(2), [3]).shape == (3,)


def test_the_vjp_of_tensors_is_pytorchs():
    x = torch.tensor(X)
    out, pull = aten("leaky_relu").vjp(x, negative_slope=0.5)
    assert not out.requires_grad
    dx, none = pull(torch.ones_like(x))
    assert none is None
    torch.testing.assert_close(dx, torch.where(x > 0, 1.0, 0.5).double())
    _, pull = aten("split").vjp(x, 1)
    assert pull([torch.ones(1, 3), None])[0].tolist() == [[1] * 3, [0] * 3]
    x.requires_grad_()
    dx = aten("tanh").vjp(x)[1](torch.ones_like(x))[0]
    (ddx,) = torch.autograd.grad(dx.sum(), x)
    torch.testing.assert_close(ddx, -2 * torch.tanh(x) * (1 - torch.tanh(x) ** 2))
    dropped, pull = aten("dropout").vjp(torch.ones(100), 0.5, True)
    torch.testing.assert_close(pull(torch.ones(100))[0], dropped)


@pytest.mark.slow
def test_compile_export_and_transforms():
    leaky, total, split = aten("leaky_relu"), aten("sum.dim_IntList"), aten("split")

    def function(x):
        return total(split(leaky(x, negative_slope=0.5), 1)[0] * 2, [1], dtype="float64")

    x = torch.tensor(X, dtype=torch.float32)
    want = function(x)
    for dynamic in (False, True):
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager", dynamic=dynamic)
        torch.testing.assert_close(compiled(x), want)
    numpy_dtype = torch.compile(lambda x: total(x, 1, dtype=np.float64), fullgraph=True, backend="eager")
    assert numpy_dtype(x).dtype == torch.float64

    class Module(torch.nn.Module):
        def forward(self, x):
            return leaky(x)

    graph = torch.export.export(Module(), (x,)).graph
    assert torch.ops.aten.leaky_relu.default in [node.target for node in graph.nodes]
    rows = torch.vmap(torch.func.grad(lambda row: leaky(row, 0.5).sum()))(x)
    torch.testing.assert_close(rows, torch.where(x > 0, 1.0, 0.5))
    hessian = torch.func.hessian(lambda x: aten("tanh")(x).sum())(torch.zeros(2))
    assert hessian.tolist() == [[0, 0], [0, 0]]
    in_place = torch.compile(lambda x: aten_add_(x.clone(), x), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(in_place(x), 2 * x)


aten_add_ = aten("add_.Tensor")


def test_operators_of_other_libraries(foreign):
    halve = aten("foreign::halve")
    assert halve(X, 2).tolist() == (X / 4).tolist()
    assert halve.vjp(X, 2)[1](np.ones_like(X))[0].tolist() == [[0.25] * 3] * 2
    assert aten(torch.ops.foreign.halve) is halve
    assert aten("foreign::opaque")(X).tolist() == (2 * X).tolist()
    shifted = aten("foreign::shifted")
    assert shifted(X, by=0.5).tolist() == (X + 0.5).tolist()
    assert shifted.operator.infer((spec(3), 1.0)) == (spec(3),)
    with pytest.raises(ArgumentValueError, match=r"several overloads(.|\n)*pair.left\(Tensor x\)"):
        aten("foreign::pair")


# the tools


@pytest.mark.slow
def test_check_passes():
    assert check(aten("leaky_relu")).ok
    assert check(aten("max.dim"), X, 1).ok


def test_explain_names_the_kernel():
    text = explain(aten("leaky_relu"), (spec(2),))
    assert "outputs     float32[2]" in text
    assert "kernel      PyTorch's aten::leaky_relu" in text


def test_without_pytorch_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from polyop.providers.aten import aten\n"
        "try: aten('abs')\n"
        "except Exception as problem: print(type(problem).__name__, problem)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("HostError aten('abs'): needs PyTorch, which cannot be imported")
    assert "pip install torch" in done.stdout


def test_search_and_help(foreign):
    import pydoc

    assert polyop.aten.search("Foreign::hal") == ["foreign::halve"]
    names = polyop.aten.search("roll")
    assert {"aten::roll", "aten::roll.out"} <= set(names)
    assert all("roll" in name and aten(name).name == name for name in names)
    assert polyop.aten.search("no such operator") == []
    assert "aten::allclose" in polyop.aten.search("allclose")
    assert polyop.aten.search("qscheme") == []  # refused
    text = pydoc.render_doc(aten("max.dim"))
    assert (
        "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)" in text
    )


def test_a_batch_rule():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    op = aten("tanh", batch="elementwise")
    assert op is not aten("tanh")
    assert op.name == "aten::tanh"
    x = jax.numpy.asarray(X, "float32")
    np.testing.assert_allclose(jax.vmap(op)(x), np.tanh(X), rtol=1e-6)  # without a FallbackWarning
    np.testing.assert_allclose(jax.jit(jax.vmap(pickle.loads(pickle.dumps(op))))(x), np.tanh(X), rtol=1e-6)
    flip = aten("flip")
    own = aten("flip", batch=lambda in_dims, inputs: (flip(inputs[0], [1]), 0))
    np.testing.assert_array_equal(jax.vmap(lambda row: own(row, [0]))(x), x[:, ::-1])
    with pytest.raises(ArgumentTypeError, match="aten::tanh: batch must be 'elementwise' or a function"):
        aten("tanh", batch=3)


def test_the_gradient_of_pytorch_is_not_called_the_authors():
    relu = aten("relu")
    assert "gradient PyTorch's, if it has one; batching by torch.vmap;" in repr(relu)
    assert "gradient    PyTorch's, if it has one" in explain(relu, (spec(2),))
