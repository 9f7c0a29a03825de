"""``dims=`` of libraries: the shapes, the checks and ``vmap``, for operators in Python."""

import pathlib
import warnings

import jax
import numpy as np
import pytest

import polyop
from polyop.call.explain import explain
from polyop.core.errors import FallbackWarning, InferError, SchemaError
from polyop.testing import check

x, w = np.ones((2, 3), np.float32), np.full((3, 4), 2.0, np.float32)
LINEAR = {"dims": "b i, i o -> b o", "parallel": "b o", "sum": "i"}


@pytest.fixture
def compiled(torch):
    """Return a function that compiles for symbolic sizes; each test has PyTorch's cache to itself."""
    torch.compiler.reset()
    yield lambda function: torch.compile(function, dynamic=True, fullgraph=True, backend="eager")
    torch.compiler.reset()


def linear(name, **more):
    """Return a library with an operator ``linear`` in index notation."""
    lib = polyop.Library(name)
    lib.define("linear(Tensor x, Tensor w) -> Tensor", **(LINEAR | more))(lambda x, w: x @ w)
    return lib


@pytest.fixture(scope="session")
def shared():
    return linear("dims_shared")


@pytest.mark.parametrize("host", ["numpy", "torch", "jax"])
def test_shapes_and_refusals_in_every_host(torch, shared, host):
    to = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jax.numpy.asarray}[host]
    np.testing.assert_array_equal(np.asarray(shared.linear(to(x), to(w))), np.full((2, 4), 6.0))
    with pytest.raises(InferError) as excinfo:
        shared.linear(to(x), to(x))
    text = str(excinfo.value)
    assert "dims_shared::linear: dimension i is 2 in argument w and 3 in argument x" in text
    assert f"defined at {__file__}:" in text


def test_vmap_is_one_call(torch, shared):
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        y = torch.vmap(shared.linear, in_dims=(0, None))(torch.ones(5, 2, 3), torch.as_tensor(w))
        z = jax.vmap(shared.linear, in_axes=(None, 0))(jax.numpy.asarray(x), jax.numpy.ones((5, 3, 4)))
    assert y.shape == z.shape == (5, 2, 4)
    assert "derived: one call where '...' or a parallel dimension" in explain(shared.linear)


def test_compiled_once_for_all_sizes(torch, compiled, shared):
    step = compiled(shared.linear)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for b, i, o in [(2, 3, 4), (5, 6, 7)]:
            a, c = torch.rand(b, i), torch.rand(i, o)
            torch.testing.assert_close(step(a, c), a @ c)


FAKES = {
    "a dtype": ("float64", "float64"),
    "an argument": ("w", "float32"),
    "a function": (lambda x, w: polyop.Spec((x.shape[0], w.shape[1]), "float64"), "float64"),
}


@pytest.mark.parametrize(("fake", "expected"), FAKES.values(), ids=FAKES)
def test_fake_gives_the_dtype_beside_dims(torch, compiled, fake, expected):
    lib = polyop.Library(f"dims_fake_{list(FAKES.values()).index((fake, expected))}")
    lib.fake("linear", fake)
    product = lib.define("linear(Tensor x, Tensor w) -> Tensor", **LINEAR)
    product(lambda x, w: (x @ w).astype(expected))
    assert lib.linear(x, w).dtype == expected
    assert str(compiled(lib.linear)(torch.as_tensor(x), torch.as_tensor(w)).dtype) == f"torch.{expected}"
    with pytest.raises(InferError, match="dimension i is 2 in argument w and 3 in argument x"):
        lib.linear(x, x)


def test_a_fake_function_that_gives_other_shapes_is_refused():
    lib = linear("dims_disagree")
    lib.fake("linear", lambda x, w: polyop.Spec((x.shape[0], 4), x.dtype))
    assert lib.linear(x, w).shape == (2, 4)
    message = r"dims_disagree::linear: dims= gives output 0 the shape \(2, 3\), and fake \(2, 4\)"
    with pytest.raises(InferError, match=message) as excinfo:
        lib.linear(x, w[:, :3])
    assert f"defined at {__file__}:" in str(excinfo.value)


def test_kernels_registered_later_keep_dims(shared):
    lib = polyop.Library("dims_later")
    lib.define("double(Tensor x) -> Tensor", dims="... n -> ... n")
    assert str(lib.double.operator.dims) == 'dims="... n -> ... n"'
    lib.impl("double", lambda x: 2 * x)
    np.testing.assert_array_equal(lib.double(x), 2 * x)
    assert 'dimensions  dims="... n -> ... n"' in explain(lib.double)


def test_what_contradicts_is_refused():
    lib = polyop.Library("dims_refused")
    with pytest.raises(SchemaError, match="has the size 'k', which no argument gives"):
        lib.define("f(Tensor x) -> Tensor", dims="n -> k")
    with pytest.raises(SchemaError, match="parallel= is about dimensions, and the operator has no dims="):
        lib.define("f(Tensor x) -> Tensor", parallel="n")
    with pytest.raises(TypeError, match=r"define\(\) got an unexpected keyword argument 'mean'"):
        lib.define("f(Tensor x) -> Tensor", dims="n -> n", mean="n")
    lib.define("f(Tensor x) -> Tensor", dims="n -> n")  # a refused definition left nothing behind
    lib.batch("f", "elementwise")
    with pytest.raises(SchemaError, match='batch="elementwise" repeats what dims= says of shapes'):
        lib.complete()


def test_check_tries_the_claims(shared):
    report = check(shared.linear, hosts=["numpy"])
    rows = {row[0]: row[2] for row in report.rows if row[0].startswith("dims")}
    assert rows["dims, refusals"] == rows["dims, parallel"] == rows["dims, reductions"] == "passed"
    lib = polyop.Library("dims_false")
    lib.define("running(Tensor x) -> Tensor", dims="n -> n", parallel="n")(
        lambda x: np.cumsum(x, dtype=x.dtype)
    )
    report = check(lib.running, hosts=["numpy"], raise_on_failure=False)
    assert 'parallel="n" is false' in str(report)


# -- C++ libraries

FILE = pathlib.Path(__file__).parents[3] / "examples" / "11_operator_library" / "ops.cpp"
OPERATORS = {"my_op": {"dims": "n, n -> n", "parallel": "n"}, "myops_dims::soften": "... -> ..."}


@pytest.fixture
def cpp():
    """Return the C++ library of the example under a name of its own, with dimensions."""
    return polyop.load_library(FILE, namespaces={"myops": "myops_dims"}, dims=OPERATORS)


def test_a_cpp_library_has_checks_symbols_and_vmap(torch, compiled, cpp):
    with pytest.raises(InferError, match="myops_dims::my_op: dimension n is 3 in argument other and 2 in"):
        cpp.my_op(np.ones(2), np.ones(3))
    step = compiled(cpp.my_op)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for n in (2, 5):
            torch.testing.assert_close(step(torch.ones(n), torch.ones(n)), torch.full((n,), 2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        y = torch.vmap(cpp.my_op)(torch.ones(4, 3), torch.ones(4, 3))
        assert torch.vmap(cpp.soften)(torch.ones(4, 3)).shape == (4, 3)
    torch.testing.assert_close(y, torch.full((4, 3), 2.0))
    t = torch.ones(4, 3, requires_grad=True)
    torch.vmap(cpp.my_op)(t, t).sum().backward()
    torch.testing.assert_close(t.grad, torch.full((4, 3), 2.0))


def test_a_later_load_changes_dimensions_and_one_without_keeps_them(cpp):
    other = {"namespaces": {"myops": "myops_dims"}}
    assert polyop.load_library(FILE, **other) is cpp
    assert str(cpp.my_op.operator.dims) == 'dims="n, n -> n", parallel="n"'
    polyop.load_library(FILE, **other, dims={"soften": "n -> n"})
    with pytest.raises(InferError, match="but its entry 'n' has 1"):
        cpp.soften(x)


FALSE = {
    "a shape": (
        "n -> n+1",
        r"dims= gives output 0 the shape \(4,\), and myops_dims::soften of ops.so \(3,\)",
    ),
    "a dtype": (
        {"dims": "n -> n", "infer": "int32"},
        "the dtype int32, and myops_dims::soften of ops.so float64",
    ),
}


@pytest.mark.parametrize(("dims", "message"), FALSE.values(), ids=FALSE)
def test_dims_that_contradict_the_cpp_function_are_refused(dims, message):
    ops = polyop.load_library(FILE, namespaces={"myops": "myops_dims"}, dims={"soften": dims})
    with pytest.raises(InferError, match=message) as excinfo:
        ops.soften(np.ones(3))
    assert f"defined at {__file__}:" in str(excinfo.value)


def test_an_unknown_operator_is_refused_and_nothing_is_changed(cpp):
    wrong = {"my_op": "m, m -> m", "softened": "n -> n"}
    with pytest.raises(SchemaError, match="must name functions over tensors: my_op, .*but got 'softened'"):
        polyop.load_library(FILE, namespaces={"myops": "myops_dims"}, dims=wrong)
    assert str(cpp.my_op.operator.dims) == 'dims="n, n -> n", parallel="n"'


def test_check_of_a_cpp_library_has_rows_of_dims(cpp):
    report = check(cpp.my_op, np.ones(3), np.ones(3), hosts=["numpy"])
    rows = {row[0]: row[2] for row in report.rows}
    for name in ("refusals", "shapes", "parallel", "gradient"):
        assert rows[f"dims, {name}"] == "passed"
