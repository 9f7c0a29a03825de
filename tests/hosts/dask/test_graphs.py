"""What dask is asked to do: nothing before a result is computed, one call per chunk, little is moved."""

# ruff: noqa: F821 - the words of loop kernels

import itertools
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import polyop
from polyop.call.explain import explain
from polyop.core.errors import ArgumentTypeError, ArgumentValueError, HostError, UnsupportedError

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")
get_dependencies = pytest.importorskip("dask.core", reason="dask is not installed").get_dependencies
numbers = itertools.count()


@pytest.fixture
def seen():
    """The shapes of the arrays that kernels were called with."""
    return []


def define(name, kernel, **rule):
    word, _, rest = name.partition("(")
    schema = f"{word}_{next(numbers)}({rest or 'Tensor x) -> Tensor'}"
    return polyop.operator(f"dask_graphs::{schema}", kernel, **rule)


@pytest.fixture
def sums(seen):
    def kernel(x):
        seen.append(x.shape)
        return x.sum(0)

    return define("sums", kernel, dims="m n -> n", parallel="n", sum="m")


def doubled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 2.0 * x[i]
    return y


def compute(array):
    return array.compute(scheduler="sync")


def test_nothing_runs_before_the_result_is_computed(sums, seen):
    result = sums(da.ones((8, 6), chunks=(2, 3)))
    result + 1
    assert seen == []
    compute(result)
    assert seen == [(2, 3)] * 8


def test_blocks_of_a_halo_are_chunks_and_edges(seen):
    def kernel(x):
        seen.append(x.shape)
        return np.convolve(x, [1, 1, 1, 1, 1], "same")

    op = define("five", kernel, dims="n -> n", halo={"n": (2, 2)})
    x = np.arange(40.0)
    np.testing.assert_array_equal(
        compute(op(da.from_array(x, chunks=10))), np.convolve(x, np.ones(5), "same")
    )
    assert sorted(seen[:4]) == [(12,), (12,), (14,), (14,)]


def test_only_edges_of_neighbours_are_moved():
    op = define("two", lambda x: np.diff(x, append=x[-1:]), dims="n -> n", halo={"n": (0, 1)})
    graph = op(da.from_array(np.arange(30.0), chunks=10)).__dask_graph__().to_dict()
    moved = [dask.get(graph, key).shape for key in graph if key[0].startswith("edge")]
    assert moved == [(1,), (1,)]


def test_a_tree_combines_few_partial_results_at_a_time(sums):
    def widest():
        result = sums(da.ones((64, 3), chunks=(1, 3)))
        graph = result.__dask_graph__().to_dict()
        return max(len(get_dependencies(graph, key)) for key in graph)

    assert widest() == 4  # dask's split_every, unless its configuration says otherwise
    with dask.config.set(split_every=8):
        assert widest() == 8


@pytest.mark.parametrize(("chunks", "blocks"), [(10, 100), (50, 20)])
def test_the_graph_grows_with_the_chunks(chunks, blocks):
    op = define("near", lambda x: x, dims="n -> n", halo={"n": (1, 1)})
    x = da.zeros(1000, chunks=chunks)
    tasks = len(op(x).__dask_graph__()) - len(x.__dask_graph__())
    assert blocks <= tasks <= 5 * blocks  # the call, its block with neighbours, the trims, two edges


def test_the_same_call_is_the_same_task(sums):
    x = da.ones((8, 6), chunks=(2, 3))
    assert sums(x).name == sums(x).name
    assert sums(x).name != sums(x + 1).name
    scale = define(
        "scale(Tensor x, float a) -> Tensor", lambda x, a: x * a, dims="... -> ...", parallel="..."
    )
    assert scale(x, 1.0).name != scale(x, 2.0).name
    again = define(
        "scale(Tensor x, float a) -> Tensor", lambda x, a: x - a, dims="... -> ...", parallel="..."
    )
    assert again(x, 1.0).name != scale(x, 1.0).name


def test_a_chunked_dimension_that_must_be_whole_is_gathered_with_one_warning(seen):
    def kernel(x, w):
        seen.append(x.shape)
        return np.cumsum(x, -1) * w

    op = define("running(Tensor x, Tensor w) -> Tensor", kernel, dims="m n, n -> m n", parallel="m")
    x = da.ones((4, 6), chunks=(2, 3))
    with pytest.warns(
        polyop.FallbackWarning, match=r"running_\d+: the chunks of argument x along axis 1 are gathered"
    ) as given:
        result = op(x, da.ones(6, chunks=6))
    assert [warning.filename for warning in given] == [__file__]
    compute(result)
    assert seen == [(2, 6)] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        op(x, np.ones(6))
    assert "dask        present; one call per chunk; fallback: chunks are gathered along n" in explain(op)


def test_explain_names_operators_without_claims(sums):
    op = define("unclaimed", lambda x: x, infer="x")
    assert "dask        present; fallback: chunks are gathered" in explain(op)
    assert "dask        present; one call per chunk\n" in explain(sums) + "\n"
    loops = polyop.operator("dask_graphs::doubled(Tensor x) -> Tensor", polyop.kernel(doubled))
    assert "dask        present; one call per chunk along what slices can be cut; others are" in explain(
        loops
    )


def test_a_loop_kernel_and_its_gradient_need_no_claims():
    @polyop.kernel
    def smooth(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(1, x.shape[0] - 1):
            y[i] = x[i - 1] * x[i] + x[i + 1]
        return y

    x = np.random.default_rng(0).standard_normal(50)
    with warnings.catch_warnings():
        warnings.simplefilter("error", polyop.FallbackWarning)
        out, pull = smooth.vjp(da.from_array(x, chunks=(7, 20, 1, 22)))
        (grad,) = pull(da.ones(50, chunks=50))
    expected, expected_pull = smooth.vjp(x)
    assert isinstance(grad, da.Array) and out.chunks == grad.chunks == ((7, 20, 1, 22),)
    np.testing.assert_allclose(compute(out), expected, rtol=1e-14)
    np.testing.assert_allclose(compute(grad), expected_pull(np.ones(50))[0], rtol=1e-14)


def test_a_block_that_knows_its_place_is_not_gathered():
    @polyop.kernel
    def mean(x):
        y = output_tensor((1,), x.dtype)
        y[0] = 0.0
        for i in range(x.shape[0]):
            y[0] += x[i] / x.shape[0]
        return y

    x = np.random.default_rng(0).standard_normal(50)
    with warnings.catch_warnings():
        warnings.simplefilter("error", polyop.FallbackWarning)
        out, pull = mean.vjp(da.from_array(x, chunks=9))
        (grad,) = pull(da.ones(1, chunks=1))
    np.testing.assert_allclose(compute(out), [x.mean()], rtol=1e-14)
    np.testing.assert_allclose(compute(grad), np.full(50, 1 / 50), rtol=1e-14)
    assert grad.chunks == ((9, 9, 9, 9, 9, 5),)


def test_an_authors_gradient_rule_runs_on_dask_arrays():
    op = define(
        "linear(Tensor x, Tensor w) -> Tensor",
        np.matmul,
        dims="b i, i o -> b o",
        parallel="b o",
        sum="i",
        gradient=lambda x, w, out, dout: (dout @ w.T, x.T @ dout),
    )
    x, w, dout = (np.random.default_rng(0).standard_normal(shape) for shape in [(6, 4), (4, 5), (6, 5)])
    _, pull = op.vjp(da.from_array(x, chunks=2), w)
    for grad, expected in zip(pull(dout), op.vjp(x, w)[1](dout), strict=True):
        assert isinstance(grad, da.Array)
        np.testing.assert_allclose(compute(grad), expected, rtol=1e-12)
    wrong = define("wrong", np.negative, dims="n -> n", gradient=lambda x, out, dout: (dout[:1],))
    with pytest.raises(polyop.PolyopError, match=r"gradient of x: must have the input's shape \(6,\)"):
        wrong.vjp(da.ones(6, chunks=6))[1](da.ones(6))


def test_a_task_is_pickled_without_its_operator(sums):
    text = pickle.dumps(sums(da.ones((2, 2))).__dask_graph__())
    assert b"dask_graphs::sums" in text and b"seen" not in text
    block = next(
        layer for name, layer in pickle.loads(text).layers.items() if name.startswith("sums")
    ).task.func
    assert block(np.ones((3, 2))).tolist() == [3, 3]
    again = pickle.loads(pickle.dumps(block))  # in a process that does not have the operator either
    assert dask.base.tokenize(again) == dask.base.tokenize(block)


def test_refusals(sums, kernels):
    x = da.ones((4, 4), chunks=2)
    unknown = x[x[:, 0] > 0]
    with pytest.raises(
        ArgumentValueError, match="argument x: must have chunks of known size.*\n.*\n.*compute_chunk_sizes"
    ):
        sums(unknown)
    np.testing.assert_array_equal(compute(sums(unknown.compute_chunk_sizes())), np.full(4, 4.0))
    with pytest.raises(UnsupportedError, match="writes an argument in place.*\n.*\n.*return a new tensor"):
        define("scale_(Tensor(a!) x) -> ()", lambda x: None)(x)
    with pytest.raises(UnsupportedError, match="returns nothing.*\n.*\n.*dask.delayed"):
        define("show(Tensor x) -> ()", lambda x: None)(x)
    with pytest.raises(polyop.PolyopError, match="has no gradient rule"):
        sums.vjp(x)
    with pytest.raises(ArgumentTypeError, match="argument x: .*must have no mask"):
        sums(da.ma.masked_array(x, x > 1))
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    add = define("add(Tensor x, Tensor y) -> Tensor", np.add, infer="x")
    with pytest.raises(HostError, match="y is a tensor of torch, and x one of dask"):
        add(x, torch.ones(4, 4))


def test_query_planning_is_refused_where_it_does_not_work():
    program = """
import dask.array as da, numpy as np, polyop
halo = polyop.operator("q::halo(Tensor x) -> Tensor", np.negative, dims="n -> n", halo={"n": (1, 1)})
sums = polyop.operator("q::sums(Tensor x) -> Tensor", lambda x: x.sum(0), dims="n -> ", sum="n")
print(sums(da.arange(10, chunks=3)).compute())
halo(da.arange(10, chunks=3))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "DASK_ARRAY__QUERY_PLANNING": "True"},
    )  # fmt: skip
    assert done.stdout.split() == ["45"], done.stderr
    assert (
        "UnsupportedError: dask: cannot add the edges" in done.stderr
        and "before dask.array is" in done.stderr
    )


def test_an_error_of_a_kernel_is_raised_when_the_result_is_computed():
    def kernel(x):
        raise ZeroDivisionError("no")

    result = define("fails", kernel, dims="n -> n", parallel="n")(da.ones(4, chunks=2))
    with pytest.raises(ZeroDivisionError):
        compute(result)
