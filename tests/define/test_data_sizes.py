"""``dims="n -> k<=n"``: outputs whose size only the kernel knows, in every host."""

import pickle
import warnings

import dask.array as da
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import xarray as xr
from jax import export

import polyop
from polyop.call.explain import explain
from polyop.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    InferError,
    KernelError,
    PolyopError,
    SchemaError,
    UnsupportedError,
)
from polyop.core.spec import Spec
from polyop.graph.from_operator import prototype_of
from polyop.testing import check

HOSTS = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jnp.asarray}
X = np.array([1.0, -2.0, 3.0, 4.0], np.float32)
KEPT = {"some": X, "none": -abs(X), "all": abs(X), "empty": X[:0]}


def gradient_of_positive(x, out, dout):
    xp = polyop.array_namespace(x)
    if xp is jnp:
        return (xp.zeros_like(x).at[xp.nonzero(x > 0)].set(dout),)
    grad = xp.zeros_like(x)
    grad[x > 0] = dout
    return (grad,)


def define(name, kernel, dims, returns="Tensor", **more):
    return polyop.operator(f"data_sizes::{name}(Tensor x) -> {returns}", kernel, dims=dims, **more)


positive = define("positive", lambda x: x[x > 0], "n -> k<=n", gradient=gradient_of_positive)
both = define(
    "both",
    lambda x: (x[x > 0], np.flatnonzero(x > 0).astype(np.int32)),
    "n -> k<=n, k",
    "(Tensor, Tensor)",
    infer=("x", "int32"),
)
where = define("where", lambda x: np.argwhere(x > 0).astype(np.int32), "m n -> k<=m*n 2", infer="int32")
double = define("double", lambda x: np.concatenate([x, x]), "n -> k<=n")
unequal = define("unequal", lambda x: (x[x > 0], x[x < 0]), "n -> k<=n, k", "(Tensor, Tensor)")


@pytest.fixture(params=HOSTS)
def tensor(request):
    return HOSTS[request.param]


@pytest.mark.parametrize("values", KEPT.values(), ids=KEPT)
def test_an_output_has_the_real_size(tensor, values):
    np.testing.assert_array_equal(np.asarray(positive(tensor(values))), values[values > 0])


def test_outputs_share_a_size_and_the_bound_is_arithmetic(tensor):
    kept, places = both(tensor(X))
    np.testing.assert_array_equal(np.asarray(kept), X[X > 0])
    np.testing.assert_array_equal(np.asarray(places), np.flatnonzero(X > 0))
    grid = X.reshape(2, 2)
    np.testing.assert_array_equal(np.asarray(where(tensor(grid))), np.argwhere(grid > 0))


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        (double, ("data_sizes::double", "(k<=4,)", 'dims="n -> k<=n"', "(8,)")),
        (unequal, ("output 1", "the size k must be 3, as in output 0", "(1,)")),
    ],
)
def test_a_kernel_that_breaks_the_rule_is_an_error(tensor, operator, words):
    with pytest.raises(KernelError) as excinfo:
        operator(tensor(X))
    for word in words:
        assert word in str(excinfo.value)


@pytest.mark.parametrize("size", [0, 2, 3, 6])
def test_a_size_of_the_caller_cuts_or_fills(tensor, size):
    expected = np.full(size, 9, np.float32)
    count = min(size, 3)
    expected[:count] = X[X > 0][:count]
    np.testing.assert_array_equal(np.asarray(positive(tensor(X), size=size, fill_value=9)), expected)
    kept, places = both(tensor(X), size=size, fill_value=9)
    np.testing.assert_array_equal(np.asarray(kept), expected)
    assert np.asarray(places)[count:].tolist() == [0] * (size - count)


def test_jit_agrees_with_jnp_nonzero():
    places = jax.jit(lambda x: both(x, size=6)[1])(X)
    np.testing.assert_array_equal(places, jnp.nonzero(X > 0, size=6)[0])
    program = jax.jit(lambda x: positive(x, size=2))
    exported = export.export(program, disabled_checks=polyop.jax_export_checks())(X)
    np.testing.assert_array_equal(exported.call(X), X[X > 0][:2])


@pytest.mark.slow(1)
@pytest.mark.parametrize("dynamic", [False, True])
def test_torch_compile_has_a_symbol_for_the_size(dynamic):
    options = {"fullgraph": True, "backend": "aot_eager", "dynamic": dynamic}
    compiled = torch.compile(lambda x: both(x)[0] * 2 + both(x)[1], **options)
    for values in (X, -abs(X), abs(X)):
        kept = values[values > 0]
        np.testing.assert_array_equal(compiled(torch.tensor(values)), kept * 2 + np.flatnonzero(values > 0))
    padded = torch.compile(lambda x: positive(x, size=5) * 2, **options)
    assert padded(torch.tensor(X)).tolist() == [2, 6, 8, 0, 0]


def test_torch_export_has_no_number_for_the_size():
    class Network(torch.nn.Module):
        def forward(self, x):
            return positive(x) * 2

    program = torch.export.export(Network(), (torch.tensor(X),)).module()
    for values in (X, -X):
        np.testing.assert_array_equal(program(torch.tensor(values)), values[values > 0] * 2)


def test_gradients_get_the_real_sizes():
    weights = np.array([5.0, 6.0, 7.0], np.float32)
    expected = [5, 0, 6, 7]
    assert positive.vjp(X)[1](weights)[0].tolist() == expected
    for function in (positive, torch.compile(positive, fullgraph=True, backend="aot_eager")):
        x = torch.tensor(X, requires_grad=True)
        (function(x) * torch.tensor(weights)).sum().backward()
        assert x.grad.tolist() == expected
    assert jax.grad(lambda x: (positive(x) * weights).sum())(jnp.asarray(X)).tolist() == expected


ROWS = np.stack([X, -X])
REFUSED = {
    "jit": lambda: jax.jit(positive)(X),
    "jax.vmap": lambda: jax.vmap(positive)(jnp.asarray(ROWS)),
    "torch.vmap": lambda: torch.vmap(positive)(torch.tensor(ROWS)),
    "meta": lambda: positive(torch.empty(4, device="meta")),
    "dask": lambda: positive(da.from_array(X)),
    "xarray": lambda: positive(xr.DataArray(X, dims=["n"])),
    "mesh": lambda: positive.communication({"m": 2}, placements=[("m",)], shapes=[(4,)]),
    "deployment graph": lambda: prototype_of(positive),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_what_needs_the_size_before_is_refused(call):
    with pytest.raises(UnsupportedError) as excinfo:
        call()
    for word in ("data_sizes::positive", "size k depends on data", "pass size=", f"defined at {__file__}:"):
        assert word in str(excinfo.value)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: positive(X, size=-1), InferError, "-1"),
        (lambda: both(X, size=3, fill_value=1j), ArgumentTypeError, "must be Scalar"),
        (lambda: where(X[None], size=3, fill_value=0.5), ArgumentValueError, "must be a value of int32"),
        (lambda: positive.vjp(X, size=3), PolyopError, "has no gradient rule"),
    ],
)
def test_wrong_options_are_errors(call, error, words):
    with pytest.raises(error) as excinfo:
        call()
    assert words in str(excinfo.value)


@pytest.mark.parametrize(
    ("dims", "rule", "at"),
    [
        ("n -> 2*k<=n", "needs a name before '<='", "2*k"),
        ("n -> k<=", "needs a size after '<='", None),
        ("n -> k<=m", "has the size 'm', which no argument gives", "m"),
        ("n -> n<=n", "has 'n' before '<=', which an argument gives already", "n<="),
        ("n -> k<=n 2*k", "has 'k' in arithmetic, and it depends on data", "2*k"),
        ("n -> k<=n k<=n+1", "has two bounds of 'k'", "k<=n+1"),
        ("k<=n -> k", "needs a name, an integer, '_' or '...' here", "k<=n"),
    ],
)
def test_a_wrong_rule_is_shown_with_a_caret(dims, rule, at):
    with pytest.raises(SchemaError) as excinfo:
        define("wrong", lambda x: x, dims)
    _, text, caret = str(excinfo.value).splitlines()[:3]
    assert rule in str(excinfo.value)
    assert text.strip() == dims
    assert caret.index("^") - 2 == (len(dims) if at is None else dims.index(at))


@pytest.mark.parametrize(
    ("schema", "more", "error", "rule"),
    [
        ("(Tensor x) -> Tensor", {"dims": "n d -> k<=n d", "parallel": "d"}, SchemaError, "claims"),
        ("(Tensor x) -> Tensor", {"dims": "n -> k<=n", "sum": "n"}, SchemaError, "claims"),
        ("(Tensor x) -> Tensor", {"dims": "... n -> ... k<=n"}, SchemaError, "'...'"),
        ("(Tensor(a!) x) -> Tensor", {"dims": "n -> k<=n"}, SchemaError, "writes an argument in place"),
        ("(Tensor x, int size) -> Tensor", {"dims": "n -> k<=n"}, SchemaError, "has an argument size"),
        ("(Tensor x) -> Tensor", {"dims": "size -> k<=size"}, SchemaError, "has a dimension size"),
    ],
)
def test_a_definition_that_cannot_hold_is_refused(schema, more, error, rule):
    with pytest.raises(error) as excinfo:
        polyop.operator(f"data_sizes::refused{schema}", lambda *args: args[0], **more)
    assert rule in str(excinfo.value)
    assert "depend" in str(excinfo.value)


def test_other_kernels_and_front_ends_are_refused():
    @polyop.kernel
    def same(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the loop language
        for i in range(x.shape[0]):
            y[i] = x[i]
        return y

    with pytest.raises(UnsupportedError, match="only a kernel that is a Python function"):
        define("loops", same, "n -> k<=n")
    library = polyop.Library("data_sizes_library")
    with pytest.raises(UnsupportedError, match=r"which only polyop\.operator takes"):
        library.define("f(Tensor x) -> Tensor", dims="n -> k<=n")
        library.impl("f", lambda x: x)
        library.f(X)


def test_the_rule_is_printed_and_explained():
    assert str(both.operator.dims) == 'dims="n -> k<=n, k<=n"'
    text = explain(positive, (Spec(X.shape, "float32"),))
    assert "float32[k<=4]" in text
    assert "batching    refused: the size of an output depends on data" in text


def test_check_runs_what_applies():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = check(positive, X, reference=lambda x: x[x > 0], hosts=["numpy", "torch"])
    status = {(row.check, row.host): row.status for row in report.results}
    assert status["inferred specs", "numpy"] == status["compiled", "torch"] == "passed"
    assert status["batched", "torch"] == status["symbolic sizes", "torch"] == "not run"


def test_a_pickle_is_the_operator():
    assert pickle.loads(pickle.dumps(positive)) is positive
    assert pickle.loads(pickle.dumps(positive.padded)) is positive.padded


def test_a_new_definition_takes_both_names():
    cell = "op = polyop.operator('data_sizes::again(Tensor x) -> Tensor', {}, dims='n -> k<=n')"
    names, each = {"polyop": polyop}, []
    for number, function in enumerate(("lambda x: x", "lambda x: x[:1]")):
        exec(compile(cell.format(function), f"<cell {number}>", "exec"), names)
        each.append(names["op"])
    assert each[1].name == "data_sizes::again"
    assert each[1].padded.name == "data_sizes::again_padded"
    assert torch.ops.data_sizes.again(torch.tensor(X)).tolist() == [1]
    assert torch.ops.data_sizes.again_padded(torch.tensor(X), size=2).tolist() == [1, 0]
    assert each[0](X, size=2).tolist() == [1, -2]
