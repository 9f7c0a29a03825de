"""``dims=`` of functions of C++ modules and libraries: checks at the call, shapes of symbols, and ``vmap``."""

import pathlib
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from jax import export

import polyop
from polyop.call.explain import explain
from polyop.core.errors import ArgumentTypeError, FallbackWarning, InferError, SchemaError
from polyop.define.module.builder import CustomOpBuilder
from polyop.testing import check

SOURCES = pathlib.Path(__file__).parents[2] / "sources"
FILE = [str(SOURCES / "module_dims.cpp")]
HOSTS = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jnp.asarray}
DIMS = {
    "linear": {"dims": "b i, i o -> b o", "parallel": "b o", "sum": "i"},
    "square": {"dims": "n -> n", "parallel": "n"},
    "running_product": {"dims": "n -> n", "parallel": "n"},
    "scale_": "n -> n",
    "first": "n -> count",
    "shorter": {"dims": "n -> n-1", "infer": "float64"},
}


@pytest.fixture(scope="session")
def ops():
    return CustomOpBuilder("module_dims", FILE).load(dims=DIMS)


def ones(*shape):
    return np.ones(shape, np.float32)


@pytest.mark.parametrize("to", HOSTS.values(), ids=HOSTS)
def test_sizes_are_checked_at_the_call_in_every_host(ops, to):
    np.testing.assert_array_equal(
        np.asarray(ops.linear(to(ones(2, 3)), to(ones(3, 4)))), np.full((2, 4), 3.0)
    )
    with pytest.raises(InferError) as excinfo:
        ops.linear(to(ones(2, 3)), to(ones(5, 4)))
    text = str(excinfo.value)
    assert "module_dims::linear: dimension i is 5 in argument w and 3 in argument x" in text
    assert 'dims="b i, i o -> b o"' in text
    assert f"defined at {__file__}:" in text


def test_sizes_are_checked_where_a_gradient_is_wanted(ops):
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, 4)
    ops.linear(x, w).sum().backward()
    torch.testing.assert_close(x.grad, torch.full((2, 3), 4.0))
    with pytest.raises(InferError, match="dimension i is 4 in argument w and 3 in argument x"):
        ops.linear(x, w.T)


def test_a_function_that_reads_data_has_the_shape_of_dims(ops):
    x = torch.arange(1.0, 5.0)
    torch.testing.assert_close(ops.first(x, 2), x[:2])
    torch.compiler.reset()
    step = torch.compile(lambda x: ops.first(x, 3), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(step(x), x[:3])


def test_dtypes_beside_dims(ops):
    assert ops.shorter(ones(3)).dtype == np.float64
    torch.compiler.reset()
    step = torch.compile(ops.shorter, dynamic=True, fullgraph=True, backend="eager")
    assert step(torch.ones(3)).dtype == torch.float64


def test_an_argument_that_is_written_is_no_output(ops):
    y = torch.ones(3)
    assert ops.scale_(y, 2.0) is y
    torch.testing.assert_close(y, torch.full((3,), 2.0))
    assert str(ops.scale_.operator.dims) == 'dims="n ->"'
    with pytest.raises(
        InferError, match=re.escape("argument x has 2 dimensions (3, 1), but its entry 'n' has 1")
    ):
        ops.scale_(torch.ones(3, 1), 2.0)


WRONG = {
    "another size": (
        {"linear": "b i, i o -> b o+1"},
        r"dims= gives output 0 the shape \(2, 4\), and C\+\+ .*\(2, 3\)",
    ),
    "another number of dimensions": (
        {"linear": "b i, i o -> b"},
        r"dims= gives output 0 the shape \(2,\), and C\+\+",
    ),
    "another dtype": (
        {"linear": {"dims": "b i, i o -> b o", "infer": "int32"}},
        "the dtype int32, and .* float32",
    ),
}


@pytest.mark.parametrize(("dims", "message"), WRONG.values(), ids=WRONG)
def test_dims_that_contradict_the_function_are_refused_at_the_call(dims, message):
    wrong = CustomOpBuilder("module_dims_other", FILE).load(dims=dims)
    with pytest.raises(InferError, match=message) as excinfo:
        wrong.linear(ones(2, 3), ones(3, 3))
    assert f"defined at {__file__}:" in str(excinfo.value)


REFUSED = {
    "an unknown function": ({"lineal": "n -> n"}, SchemaError, "must name functions over tensors: linear"),
    "a function without tensors": ({"call_count": "->"}, SchemaError, "got .*call_count"),
    "no mapping": ("n -> n", ArgumentTypeError, "must be a mapping from functions to their dimensions"),
    "no text": ({"square": {"parallel": "n"}}, SchemaError, "square: dims: needs the text of the dimensions"),
    "a number": ({"square": 3}, ArgumentTypeError, "must be a text, or a mapping with dims"),
    "an unknown keyword": ({"square": {"dims": "n -> n", "mean": "n"}}, TypeError, "keyword argument 'mean'"),
    "an unknown dimension": ({"square": "n -> m"}, SchemaError, "has the size 'm', which no argument gives"),
    "a list of outputs": ({"halves": "n -> n"}, SchemaError, r"cannot give an output of type Tensor\[\]"),
    "a function of specs": (
        {"square": {"dims": "n -> n", "infer": lambda x: x}},
        InferError,
        "infer= gives the dtype of the output alone",
    ),
}


@pytest.mark.parametrize(("dims", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_what_contradicts_is_refused_when_the_module_is_loaded(dims, error, message):
    with pytest.raises(error, match=message):
        CustomOpBuilder("module_dims_other", FILE).load(dims=dims)


def test_a_rule_in_infer_and_one_in_dims_are_refused():
    with pytest.raises(SchemaError, match="has a rule in infer= and one in dims="):
        CustomOpBuilder("module_dims_other", FILE).load(dims={"square": "n -> n"}, infer={"square": "x"})


def test_an_entry_of_a_result_that_is_an_argument_has_to_be_its_own():
    wrong = CustomOpBuilder("module_dims_other", FILE).load(dims={"scale_": "n -> 2*n"})
    with pytest.raises(
        InferError, match=r"gives output 0 the entry '2\*n', and it is argument x, which has 'n'"
    ):
        wrong.scale_(ones(3), 2.0)


def test_other_dims_replace_the_operators():
    builder = CustomOpBuilder("module_dims_other", FILE)
    first = builder.load(dims={"square": "n -> n"})
    assert builder.load(dims={"square": "n -> n"}) is first
    again = builder.load(dims={"square": "... -> ..."})
    assert again is not first
    assert again.square(ones(2, 2)).shape == (2, 2)


# -- vmap

MAPS = {
    "torch": (torch, torch.func, lambda f, dims: torch.vmap(f, in_dims=dims)),
    "jax": (jnp, jax, lambda f, dims: jax.vmap(f, in_axes=dims)),
}


@pytest.fixture(params=MAPS)
def host(request):
    return MAPS[request.param]


@pytest.fixture
def no_fallback():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        yield


def calls(ops, function, *arguments):
    """Return how often loops over data ran in a call, and its result as an array."""
    before = ops.call_count()
    result = np.asarray(function(*arguments))
    return ops.call_count() - before, result


@pytest.mark.usefixtures("no_fallback")
def test_vmap_is_one_call(ops, host):
    xp, _, vmap = host
    x, w = xp.ones((5, 2, 3)), xp.ones((3, 4))
    count, y = calls(ops, vmap(ops.linear, (0, None)), x, w)
    assert count == 1
    np.testing.assert_array_equal(y, np.full((5, 2, 4), 3.0))
    count, y = calls(ops, vmap(vmap(ops.square, (0,)), (0,)), xp.ones((5, 2, 3)) * 2)
    assert count == 1
    np.testing.assert_array_equal(y, np.full((5, 2, 3), 4.0))
    assert "derived: one call where '...' or a parallel dimension" in explain(ops.square)


@pytest.mark.usefixtures("no_fallback")
def test_the_gradient_of_vmap_is_one_call_each_way(ops, host):
    xp, transforms, vmap = host
    x = xp.ones((2, 3)) * 3
    gradient = transforms.grad(lambda x: vmap(ops.square, (0,))(x).sum())
    count, result = calls(ops, gradient, x)
    assert count == 2
    np.testing.assert_array_equal(result, np.full((2, 3), 6.0))


SAMPLES = np.array([[1.0, 2.0, 3.0], [2.0, 0.5, 4.0]], np.float32)


@pytest.mark.filterwarnings("ignore:.*vmap runs one call per sample")
@pytest.mark.parametrize("name", ["square", "running_product"])
def test_vmap_of_the_gradient_is_that_of_each_sample(ops, host, name):
    """running_product keeps a tensor of its own, of which joined samples would have other elements."""
    xp, transforms, vmap = host
    function = getattr(ops, name)
    gradient = transforms.grad(lambda x: function(x).sum())
    result = vmap(gradient, (0,))(xp.asarray(SAMPLES))
    np.testing.assert_allclose(np.asarray(result), [np.asarray(gradient(xp.asarray(x))) for x in SAMPLES])


def test_forward_of_vmap_of_the_gradient_is_one_call_where_it_saves_arguments_alone(ops, host):
    xp, transforms, vmap = host
    per_call = {}
    for name in ("square", "running_product"):
        function = getattr(ops, name)
        gradient = vmap(transforms.grad(lambda x, function=function: function(x).sum()), (0,))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            per_call[name], _ = calls(ops, gradient, xp.asarray(SAMPLES))
    assert per_call == {"square": 1 + 2, "running_product": 2 * 2 + 2}  # Forward, then Backward per sample


def test_the_warning_says_what_does_better(host):
    """Nothing, where dims= are there; a module has no batch=."""
    xp, transforms, vmap = host
    with_dims = CustomOpBuilder("module_dims_other", FILE).load(dims={"square": "n -> n"})
    with pytest.warns(FallbackWarning, match="other::square: vmap runs one call per sample$"):
        vmap(with_dims.square, (0,))(xp.ones((2, 3)))
    with pytest.warns(
        FallbackWarning, match="running_product: vmap runs one call per sample; give dims= where it"
    ):
        vmap(with_dims.running_product, (0,))(xp.ones((2, 3)))
    with pytest.warns(FallbackWarning, match="the gradient of .*square: vmap runs one call per sample$"):
        vmap(transforms.grad(lambda x: with_dims.square(x).sum()), (0,))(xp.ones((2, 3)))


# -- sizes that are symbols


def test_compiled_once_for_all_sizes(ops):
    torch.compiler.reset()
    step = torch.compile(ops.linear, dynamic=True, fullgraph=True, backend="aot_eager")
    with torch._dynamo.config.patch(error_on_recompile=True):
        for b, i, o in [(2, 3, 4), (5, 6, 7)]:
            x, w = torch.rand(b, i), torch.rand(i, o)
            torch.testing.assert_close(step(x, w), x @ w)
    torch.compiler.reset()


@pytest.mark.slow
def test_compiled_with_a_gradient_for_each_size(ops):
    torch.compiler.reset()
    step = torch.compile(ops.linear, dynamic=True, fullgraph=True, backend="aot_eager")
    for b in (2, 5):
        x, w = torch.rand(b, 3, requires_grad=True), torch.rand(3, 4)
        step(x, w).sum().backward()
        torch.testing.assert_close(x.grad, w.sum(1).expand(b, 3))
    torch.compiler.reset()


def test_exported_with_symbolic_sizes(ops, tmp_path):
    b, i, o = export.symbolic_shape("b, i, o")
    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((b, i), (i, o))]
    exported = export.export(jax.jit(ops.linear), disabled_checks=polyop.jax_export_checks())(*shapes)
    assert [str(size) for size in exported.out_avals[0].shape] == ["b", "o"]
    np.testing.assert_array_equal(exported.call(ones(2, 3), ones(3, 4)), np.full((2, 4), 3.0))
    sizes = {"x": {0: torch.export.Dim("b")}, "w": None}

    class Network(torch.nn.Module):
        def forward(self, x, w):
            return ops.linear(x, w)

    program = torch.export.export(Network(), (torch.ones(2, 3), torch.ones(3, 4)), dynamic_shapes=sizes)
    torch.testing.assert_close(program.module()(torch.ones(7, 3), torch.ones(3, 4)), torch.full((7, 4), 3.0))


# -- check


def test_check_tries_the_claims(ops):
    report = check(ops.linear, ones(2, 3), ones(3, 4), hosts=["numpy", "torch"])
    rows = {row[:2]: row[2] for row in report.rows}
    for name in ("refusals", "shapes", "parallel", "reductions", "gradient"):
        assert rows[f"dims, {name}", "numpy"] == "passed"
    assert rows["symbolic sizes", "torch"] == "passed"


FALSE = {
    "a constant size": (
        {"shorter": {"dims": "n -> 4", "infer": "float64"}},
        "dims= gives output 0 the shape (4,)",
    ),
    "a size of data": ({"first": "n -> n"}, "output 0: the infer rule gives float32[3]"),
    "a gradient": ({"running_product": DIMS["running_product"]}, "does not hold for the gradient"),
}


@pytest.mark.parametrize(("dims", "message"), FALSE.values(), ids=FALSE)
def test_check_reports_dims_that_are_false(dims, message):
    (name,) = dims
    wrong = CustomOpBuilder("module_dims_other", FILE).load(dims=dims)
    samples = {"shorter": (ones(5),), "first": (ones(3), 2), "running_product": (ones(3),)}[name]
    report = check(getattr(wrong, name), *samples, hosts=["numpy"], raise_on_failure=False)
    assert not report.ok
    assert message in str(report)
