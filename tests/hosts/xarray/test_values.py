"""Operators on DataArrays: which dimension is which, what coordinates stay, and dask arrays inside."""

import itertools

import numpy as np
import pytest

import polyop
from polyop.call.explain import explain
from polyop.core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError

xr = pytest.importorskip("xarray", reason="xarray is not installed")

numbers = itertools.count()
X = np.random.default_rng(0).standard_normal((6, 5, 4))


def define(schema, kernel, **rule):
    name, _, rest = schema.partition("(")
    return polyop.operator(f"xarray_tests::{name}_{next(numbers)}({rest}", kernel, **rule)


@pytest.fixture
def field():
    """An array over time, lat and lon; time has no coordinates."""
    coords = {"lat": np.arange(5) * 10.0, "lon": list("abcd")}
    return xr.DataArray(X, dims=("time", "lat", "lon"), coords=coords, name="field", attrs={"units": "K"})


@pytest.fixture(scope="session")
def norm():
    return define(
        "norm(Tensor x, Tensor w, float eps=1e-5) -> Tensor",
        lambda x, w, eps: x * w / np.sqrt((x * x).mean(-1, keepdims=True) + eps),
        dims="... n, n -> ... n",
    )


@pytest.fixture(scope="session")
def linear():
    return define(
        "linear(Tensor x, Tensor w) -> Tensor", np.matmul, dims="b i, i o -> b o", parallel="b o", sum="i"
    )


def test_the_last_dimensions_are_the_operators(field):
    softmax = define(
        "softmax(Tensor x) -> Tensor",
        lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
        dims="... n -> ... n",
    )
    result = softmax(field)
    np.testing.assert_array_equal(result.values, softmax(X))
    assert result.dims == field.dims and set(result.coords) == {"lat", "lon"}
    xr.testing.assert_equal(result.lat, field.lat)


@pytest.mark.parametrize("dim", ["time", "lat", "lon"])
def test_a_name_of_another_array_decides(field, norm, dim):
    w = xr.DataArray(np.arange(1.0, field.sizes[dim] + 1), dims=dim)
    result = norm(field, w)
    expected = norm(np.moveaxis(X, field.dims.index(dim), -1).copy(), w.values)
    assert result.dims[-1] == dim and set(result.dims) == set(field.dims)
    np.testing.assert_array_equal(result.values, expected)


def test_the_operators_own_names_decide(field):
    steps = define(
        "steps(Tensor x) -> Tensor",
        lambda x: np.diff(x, axis=-1),
        dims="... time -> ... time-1",
        parallel="...",
    )
    result = steps(field)
    assert result.dims == ("lat", "lon", "time") and result.sizes["time"] == 5
    np.testing.assert_array_equal(result.transpose(*field.dims).values, np.diff(X, axis=0))


def test_the_order_of_named_dimensions_does_not_matter(field, linear):
    w = xr.DataArray(np.arange(12.0).reshape(3, 4), dims=("out", "lon"))
    result = linear(field[0], w)
    assert result.dims == ("lat", "out") and set(result.coords) == {"lat"}
    np.testing.assert_allclose(result.values, X[0] @ w.values.T)


def test_a_size_in_arithmetic_loses_the_coordinates_and_keeps_the_name(field):
    window = define(
        "window(Tensor x, Tensor w) -> Tensor", lambda x, w: np.correlate(x, w, "valid"), dims="n, k -> n-k+1"
    )
    result = window(field[0, :, 0], np.ones(2))
    assert result.dims == ("lat",) and "lat" not in result.coords
    np.testing.assert_allclose(result.values, X[0, 1:, 0] + X[0, :-1, 0])
    histogram = define(
        "histogram(Tensor x, int bins) -> (Tensor, Tensor)",
        lambda x, bins: (np.histogram(x, bins)[0].astype(x.dtype), x[:3]),
        dims="n -> bins, 3",
    )
    counts, ends = histogram(field[0, :, 0], 2)
    assert counts.dims == ("bins",) and counts.sum() == 5 and ends.dims == ("dim_0",)


@pytest.mark.parametrize(("entry", "name"), [("2", "dim_0"), ("rows", "rows")])
def test_a_new_dimension_gets_a_name_that_no_input_has(entry, name):
    repeat = define(
        "repeat(Tensor x, int rows=2) -> Tensor",
        lambda x, rows: np.stack([x.sum(-1)] * 2, -1),
        dims=f"... n -> ... {entry}",
    )
    x = np.arange(6.0).reshape(2, 3)
    result = repeat(xr.DataArray(x, dims=(name, "n")))
    assert result.dims == (name, f"{name}_")
    np.testing.assert_array_equal(result.values, repeat(x))


def test_dimensions_of_elementwise_operators_are_broadcast_by_name(field):
    add = define(
        "add(Tensor x, Tensor y) -> Tensor",
        np.add,
        infer=lambda x, y: polyop.Spec(np.broadcast_shapes(x.shape, y.shape), x.dtype),
        batch="elementwise",
    )
    xr.testing.assert_equal(add(field[0], field[:, 0]), field[0] + field[:, 0])
    same = define("same(Tensor x, Tensor y) -> Tensor", np.add, batch="elementwise")
    xr.testing.assert_equal(same(field, field[0]).transpose(*field.dims), field + field[0])


def test_three_dots_that_an_output_lacks(field):
    total = define(
        "total(Tensor x, Tensor y) -> Tensor",
        lambda x, y: (x * y).sum(tuple(range(x.ndim - 1))),
        dims="... n, ... n -> n",
    )
    result = total(field, field)
    assert result.dims == ("lon",) and "lon" in result.coords
    np.testing.assert_allclose(result.values, (X * X).sum((0, 1)))


def test_several_outputs_and_lists(field):
    ends = define(
        "ends(Tensor x) -> (Tensor, Tensor)", lambda x: (x.min(-1), x.max(-1)), dims="... n -> ..., ..."
    )
    lowest, highest = ends(field)
    xr.testing.assert_allclose(lowest.drop_attrs(), field.min("lon").drop_attrs())
    xr.testing.assert_allclose(highest.drop_attrs(), field.max("lon").drop_attrs())
    total = define("total(Tensor[] xs) -> Tensor", sum, dims="...* -> ...", parallel="...")
    xr.testing.assert_allclose(total([field, field[0]]).transpose(*field.dims), field + field[0])


def test_arrays_of_dask_inside_stay_lazy(field, norm):
    dask = pytest.importorskip("dask.array", reason="dask is not installed")
    chunked = field.chunk({"time": 2, "lat": 3})
    result = norm(chunked, field[0, 0].drop_vars("lat"))
    assert isinstance(result.data, dask.Array) and result.chunks == ((2, 2, 2), (3, 2), (4,))
    xr.testing.assert_allclose(result.compute(scheduler="sync"), norm(field, field[0, 0].drop_vars("lat")))


def test_numbers_and_any_sizes_have_no_name_in_common():
    """They are the last dimensions of each array, whatever those of another array are."""
    first_rows = define(
        "rows(Tensor x, Tensor y) -> Tensor",
        lambda x, y: y[..., 0, :] + 0 * x.sum(),
        dims="_ n, ... _ n -> ... n",
    )
    x, y = np.zeros((2, 2)), xr.DataArray(np.arange(8.0).reshape(2, 2, 2), dims=("c", "t", "n"))
    out = first_rows(xr.DataArray(x, dims=("k", "n")), y)
    assert out.dims == ("c", "n")
    np.testing.assert_array_equal(out, y.values[:, 0])
    with pytest.raises(
        ArgumentValueError, match=r"y: 'c' lies before the dimensions ... _ n, and in another array it is one"
    ):
        first_rows(xr.DataArray(x, dims=("c", "n")), y)
    product = define("product(Tensor x, Tensor y) -> Tensor", lambda x, y: x @ y, dims="3 3, 3 3 -> 3 3")
    square = xr.DataArray(np.arange(9.0).reshape(3, 3), dims=("a", "b"))
    np.testing.assert_array_equal(product(square, square), square.values @ square.values)
    assert define("doubled(Tensor x) -> Tensor", lambda x: np.tile(x, 2), dims="3 -> 6")(square[0]).dims == (
        "dim_0",
    )


def test_refusals(field, linear, norm):
    with pytest.raises(
        ArgumentValueError,
        match=r"argument w: 'in' would be the operator's dimension i, which is 'lon' elsewhere, but got \(in, out\)",
    ) as error:
        linear(field[0], xr.DataArray(np.ones((4, 3)), dims=("in", "out")))
    assert 'w.rename({"in": "lon"})' in str(error.value)
    with pytest.raises(
        ArgumentValueError, match=r"argument x: must have the dimensions b i, but got \(time, lat, lon\)"
    ):
        linear(field, np.ones((4, 3)))
    with pytest.raises(
        ArgumentValueError, match="argument w: must have the dimensions n, being an array without names"
    ):
        norm(field, np.ones((1, 4)))
    with pytest.raises(ValueError, match="cannot be aligned|cannot align"):
        linear(field[0], xr.DataArray(np.ones((4, 3)), dims=("lon", "out"), coords={"lon": list("abce")}))
    unnamed = define("unnamed(Tensor x) -> Tensor", lambda x: x, infer="x")
    with pytest.raises(UnsupportedError, match=r"has no dims=.*\n.*\n.*x.values") as error:
        unnamed(field)
    assert "xarray      present; refused: the operator has no dims=" in explain(unnamed)
    square = define("square(Tensor x) -> Tensor", lambda x: x, dims="n n -> n n")
    with pytest.raises(ArgumentValueError, match="argument x: has the dimension n twice"):
        square(field[0])
    with pytest.raises(UnsupportedError, match=r"no vjp on DataArrays.*\n.*\n.*x.data"):
        norm.vjp(field, field[0, 0])
    with pytest.raises(UnsupportedError, match="writes an argument in place"):
        define("scale_(Tensor(a!) x) -> ()", lambda x: None, dims="... -> ")(field)
    with pytest.raises(ArgumentTypeError, match="argument x"):
        norm(xr.Dataset({"field": field}), np.ones(4))
