"""Operators on dask arrays give what they give on NumPy arrays, in every chunking."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polyop

da = pytest.importorskip("dask.array", reason="dask is not installed")

R = np.random.default_rng(0)


def define(schema, kernel, **rule):
    return polyop.operator(f"dask_tests::{schema}", kernel, **rule)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def window(x, w):
    views = np.lib.stride_tricks.sliding_window_view(x, w.shape)
    return (views * w).sum((-1, -2))


def three(x):
    y = np.zeros_like(x)
    y[1:-1] = x[:-2] - 2 * x[1:-1] + x[2:]
    return y


def running(x, decay, start):
    y, state = np.zeros_like(x), start
    for t in range(x.shape[0]):
        state = state * decay + x[t]
        y[t] = state
    return y, state + 0


def scattered(index, x, rows):
    y = np.zeros((rows, x.shape[1]), x.dtype)
    np.add.at(y, index, x)
    return y


def normal(*shape):
    return R.standard_normal(shape)


CASES = {
    "norm": (
        define("norm(Tensor x, Tensor w, float eps=1e-5) -> Tensor",
               lambda x, w, eps: x * w / np.sqrt((x * x).mean(-1, keepdims=True) + eps),
               dims="... n, n -> ... n", parallel="..."),
        (normal(3, 5, 4), normal(4)),
    ),
    "matmul": (
        define("matmul(Tensor x, Tensor w) -> Tensor", np.matmul,
               dims="... m k, ... k n -> ... m n", parallel="... m n", sum="k"),
        (normal(2, 5, 6), normal(2, 6, 3)),
    ),
    "softmax": (define("softmax(Tensor x) -> Tensor", softmax, dims="... n -> ... n"), (normal(5, 7),)),
    "column_sums": (
        define("column_sums(Tensor x) -> Tensor", lambda x: x.sum(0), dims="m n -> n", parallel="n", sum="m"),
        (normal(11, 4),),
    ),
    "largest": (
        define("largest(Tensor x) -> Tensor", lambda x: x.max(0), dims="m n -> n", parallel="n", max="m"),
        (normal(11, 4) - 5,),
    ),
    "smallest": (
        define("smallest(Tensor x) -> Tensor", lambda x: x.min((0, 1)), dims="m n -> ", min="m n"),
        (normal(9, 4) + 5,),
    ),
    "cumulative": (
        define("cumulative(Tensor x) -> Tensor", lambda x: x.cumsum(-1), dims="... n -> ... n"),
        (normal(6, 5),),
    ),
    "embedding": (
        define("embedding(Tensor index, Tensor table) -> Tensor", lambda i, t: t[i],
               dims="..., v d -> ... d", parallel="... d", infer="table"),
        (R.integers(0, 6, (3, 4)), normal(6, 5)),
    ),
    "scatter_add": (
        define("scatter_add(Tensor index, Tensor x, int rows) -> Tensor", scattered,
               dims="k, k d -> rows d", parallel="d", sum="k", infer="x"),
        (R.integers(0, 5, 9), normal(9, 4), 5),
    ),
    "stencil": (define("stencil(Tensor x) -> Tensor", three, dims="n -> n", halo={"n": (1, 1)}), (normal(17),)),
    "window": (
        define("window(Tensor x, Tensor w) -> Tensor", window, dims="h w, a b -> h-a+1 w-b+1",
               halo={"h": (0, "a-1"), "w": (0, "b-1")}),
        (normal(9, 8), normal(3, 4)),
    ),
    "scan": (
        define("scan(Tensor x, Tensor decay, Tensor start) -> (Tensor, Tensor)", running,
               dims="t b d, d, b d -> t b d, b d", parallel="b d"),
        (normal(4, 5, 3), normal(3), normal(5, 3)),
    ),
    "scores": (
        define("scores(Tensor q, Tensor k, float scale) -> Tensor",
               lambda q, k, scale: np.einsum("bhmd,bhnd->bhmn", q, k) * scale,
               dims="b h m d, b h n d -> b h m n", parallel="b h m n", sum="d"),
        (normal(2, 2, 3, 5), normal(2, 2, 4, 5), 0.5),
    ),
    "biased": (
        define("biased(Tensor x, Tensor w, Tensor? bias=None) -> Tensor",
               lambda x, w, bias: x @ w if bias is None else x @ w + bias,
               dims="b i, i o, o -> b o", parallel="b o"),
        (normal(5, 3), normal(3, 4), normal(4)),
    ),
    "not_biased": (
        define("not_biased(Tensor x, Tensor w, Tensor? bias=None) -> Tensor",
               lambda x, w, bias: x @ w if bias is None else x @ w + bias,
               dims="b i, i o, o -> b o", parallel="b o", sum="i"),
        (normal(5, 3), normal(3, 4), None),
    ),
    "total": (
        define("total(Tensor[] xs) -> Tensor", lambda xs: sum(xs), dims="...* -> ...", parallel="..."),
        ([normal(4, 5), normal(4, 5), normal(4, 5)],),
    ),
    "broadcast": (
        define("broadcast(Tensor x, Tensor y) -> Tensor", lambda x, y: x + y, batch="elementwise",
               infer=lambda x, y: polyop.Spec(np.broadcast_shapes(x.shape, y.shape), x.dtype)),
        (normal(4, 1, 3), normal(5, 1)),
    ),
    "unclaimed": (define("unclaimed(Tensor x) -> Tensor", lambda x: x - x.mean(), infer="x"), (normal(6, 3),)),
    "differences_summed": (
        define("differences_summed(Tensor x) -> Tensor", lambda x: np.abs(np.diff(x)).sum(),
               dims="n -> ", sum="n", halo={"n": (0, 1)}),
        (normal(13),),
    ),
}  # fmt: skip


def outputs(value):
    return value if isinstance(value, (tuple, list)) else (value,)


def tensors(arguments):
    flat = []
    for value in arguments:
        flat += value if isinstance(value, list) else [value]
    return [value for value in flat if isinstance(value, np.ndarray)]


def chunked(arguments, chunks):
    rows = iter(chunks)

    def array(value):
        if isinstance(value, list):
            return [array(item) for item in value]
        return da.from_array(value, chunks=next(rows)) if isinstance(value, np.ndarray) else value

    return [array(value) for value in arguments]


def check(name, chunks):
    op, arguments = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", polyop.FallbackWarning)  # test_graphs reads them
        results = outputs(op(*chunked(arguments, chunks)))
    for result, expected in zip(results, outputs(op(*arguments)), strict=True):
        assert isinstance(result, da.Array) and result.shape == expected.shape
        assert result.dtype == expected.dtype and type(result._meta) is np.ndarray
        value = result.compute(scheduler="sync")
        assert value.dtype == expected.dtype
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
        for index in np.ndindex(*result.numblocks) if result.ndim else ():  # each chunk is what is declared
            block = result.blocks[index].compute(scheduler="sync")
            assert block.shape == tuple(row[i] for row, i in zip(result.chunks, index, strict=True))


@pytest.mark.parametrize("size", [1, 2, 3, -1])
@pytest.mark.parametrize("name", CASES)
def test_equal_chunks(name, size):
    check(name, [size] * len(tensors(CASES[name][1])))


@st.composite
def chunkings(draw):
    name = draw(st.sampled_from(sorted(CASES)))
    rows = []
    for tensor in tensors(CASES[name][1]):
        row = []
        for size in tensor.shape:
            cuts = draw(st.lists(st.integers(0, size), max_size=3))
            ends = [0, *sorted(cuts), size]  # a cut at an end, or twice at one place, is an empty chunk
            row.append(tuple(b - a for a, b in itertools.pairwise(ends)))
        rows.append(tuple(row))
    return name, rows


@settings(max_examples=40)
@given(chunkings())
def test_random_chunks(case):
    check(*case)


@pytest.mark.parametrize("name", ["softmax", "column_sums", "stencil"])
def test_empty_arrays(name):
    op, (x,) = CASES[name]
    empty = x[:0]
    if name == "stencil":
        empty = x[:2]
    result = op(da.from_array(empty, chunks=1))
    np.testing.assert_array_equal(result.compute(scheduler="sync"), op(empty))


def test_numpy_arrays_beside_dask_arrays():
    op, (x, w) = CASES["window"]
    for arrays in ((da.from_array(x, chunks=4), w), (x, da.from_array(w, chunks=-1))):
        result = op(*arrays)
        assert isinstance(result, da.Array)
        np.testing.assert_allclose(result.compute(scheduler="sync"), op(x, w))


@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64", "int8", "uint64", "bool"])
def test_sums_keep_their_dtype(dtype):
    op = CASES["column_sums"][0]
    kernel = define(f"sum_{dtype}(Tensor x) -> Tensor", lambda x: x.sum(0, dtype=x.dtype), **op.operator.dims.claims(),
                    dims="m n -> n")  # fmt: skip
    x = (np.arange(24).reshape(8, 3) % 3).astype(dtype)
    result = kernel(da.from_array(x, chunks=(2, 2)))
    value = result.compute(scheduler="sync")
    assert value.dtype == result.dtype == x.dtype
    np.testing.assert_array_equal(value, kernel(x))
