"""Operators on dask arrays give what they give on NumPy arrays, in every chunking."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import claimed_samples
import polyop
from loop_samples import sliced
from twelve_operators import twelve_operators

da = pytest.importorskip("dask.array", reason="dask is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def define(schema, kernel, **rule):
    return polyop.operator(f"dask_values::{schema}", kernel, **rule)


def own():
    """What the shared samples lack: no claims, an output that is one number, batches beside weights."""
    yield define("unclaimed(Tensor x) -> Tensor", lambda x: x - x.mean(), infer="x"), (normal(6, 3),)
    yield (
        define("lowest(Tensor x) -> Tensor", lambda x: x.min((0, 1)), dims="m n -> ", min="m n"),
        (normal(9, 4),),
    )
    norm = define(
        "norm(Tensor x, Tensor w, float eps=1e-5) -> Tensor",
        lambda x, w, eps: x * w / np.sqrt((x * x).mean(-1, keepdims=True) + eps),
        dims="... n, n -> ... n",
        parallel="...",
    )
    yield norm, (normal(3, 5, 4), normal(4), 1e-5)


def loops():
    """Loop kernels, which claim nothing: the slices of some know their place in the whole."""
    for sample in twelve_operators():
        attributes = (argument.default for _, argument in sample.operator.schema.attributes())
        yield sample.operator, (*sample.inputs, *attributes)
    for name, shapes in [("mean", [(13,)]), ("positions", [(13,)]), ("triangle", [(7, 9)]), ("guarded", [(13,)]),
                         ("neighbours_summed", [(13,)]), ("row_maxima", [(5, 8)])]:  # fmt: skip
        signature = f"({', '.join(f'Tensor x{i}' for i in range(len(shapes)))}) -> Tensor"
        yield (
            define(f"{name}{signature}", polyop.kernel(getattr(sliced, name))),
            tuple(normal(*s) for s in shapes),
        )


CLAIMED = {op.schema.name: (op, arguments) for op, arguments in own()}
CLAIMED |= {
    op.schema.name: (op, arguments)
    for op, arguments, _ in claimed_samples.samples()
    if not op.schema.mutates  # refused, see test_graphs.py
}
LOOPS = {op.schema.name: (op, arguments) for op, arguments in loops()}


def joined(value):
    return value if isinstance(value, (tuple, list)) else (value,)


def tensors(arguments):
    flat = [item for value in arguments for item in (value if isinstance(value, tuple) else (value,))]
    return [value for value in flat if isinstance(value, np.ndarray)]


def chunked(arguments, chunks):
    rows = iter(chunks)

    def array(value):
        if isinstance(value, tuple):
            return [array(item) for item in value]
        return da.from_array(value, chunks=next(rows)) if isinstance(value, np.ndarray) else value

    return [array(value) for value in arguments]


def check_equal(results, expected):
    for result, value in zip(joined(results), joined(expected), strict=True):
        assert isinstance(result, da.Array) and result.shape == value.shape
        assert result.dtype == value.dtype and type(result._meta) is np.ndarray
        computed = result.compute(scheduler="sync")
        assert computed.dtype == value.dtype
        tolerance = 1e-5 if value.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(computed, value, rtol=tolerance, atol=tolerance)
        for index in np.ndindex(*result.numblocks) if result.ndim else ():  # each chunk is what is declared
            block = result.blocks[index].compute(scheduler="sync")
            assert block.shape == tuple(row[i] for row, i in zip(result.chunks, index, strict=True))


def check(op, arguments, chunks):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", polyop.FallbackWarning)  # test_graphs.py reads them
        results = op(*chunked(arguments, chunks))
    check_equal(results, op(*arguments))


@pytest.mark.slow(24)
@pytest.mark.parametrize("size", [1, 2, 3, -1])
@pytest.mark.parametrize("name", CLAIMED)
def test_claims(name, size):
    op, arguments = CLAIMED[name]
    check(op, arguments, [size] * len(tensors(arguments)))


@pytest.mark.slow(6)
@pytest.mark.parametrize("size", [3, 4])
@pytest.mark.parametrize("name", LOOPS)
def test_loops(name, size):
    op, arguments = LOOPS[name]
    check(op, arguments, [size] * len(tensors(arguments)))


@pytest.mark.slow(3)
@pytest.mark.parametrize("name", LOOPS)
def test_gradients(name):
    op, arguments = LOOPS[name]
    expected_outputs, expected_pull = op.vjp(*arguments)
    grads = [normal(*y.shape).astype(y.dtype) for y in joined(expected_outputs)]
    expected = expected_pull(grads if len(grads) > 1 else grads[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", polyop.FallbackWarning)
        outputs, pull = op.vjp(*chunked(arguments, [4] * len(tensors(arguments))))
        lazy = [da.from_array(grad, chunks=3) for grad in grads]
        results = pull(lazy if len(lazy) > 1 else lazy[0])
    check_equal(outputs, expected_outputs)
    assert [grad is None for grad in results] == [grad is None for grad in expected]
    check_equal([g for g in results if g is not None], [g for g in expected if g is not None])


@st.composite
def chunkings(draw):
    rows = []
    op, arguments = draw(st.sampled_from([*CLAIMED.values(), LOOPS["window"], LOOPS["positions"]]))
    for tensor in tensors(arguments):
        row = []
        for size in tensor.shape:
            cuts = draw(st.lists(st.integers(0, size), max_size=3))
            ends = [0, *sorted(cuts), size]  # a cut at an end, or twice at one place, is an empty chunk
            row.append(tuple(b - a for a, b in itertools.pairwise(ends)))
        rows.append(tuple(row))
    return op, arguments, rows


@settings(max_examples=40)
@given(chunkings())
def test_random_chunks(case):
    check(*case)


@pytest.mark.parametrize(
    ("name", "size"), [("softmax", 0), ("largest", 1), ("neighbours", 2), ("neighbours", 0)]
)
def test_small_and_empty_arrays(name, size):
    op, (x,) = CLAIMED[name]
    check(op, (x[:size],), [1])


def test_numpy_arrays_beside_dask_arrays():
    op, (x, w) = CLAIMED["window_grid"]
    for arrays in ((da.from_array(x, chunks=4), w), (x, da.from_array(w, chunks=-1))):
        check_equal(op(*arrays), op(x, w))


@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64", "int8", "uint64", "bool"])
def test_sums_keep_their_dtype(dtype):
    claims = {"dims": "m n -> n", "parallel": "n", "sum": "m"}
    op = define(f"sum_{dtype}(Tensor x) -> Tensor", lambda x: x.sum(0, dtype=x.dtype), **claims)
    x = (np.arange(24).reshape(8, 3) % 3).astype(dtype)
    check(op, (x,), [(2, 2)])
