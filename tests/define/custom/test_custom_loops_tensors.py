"""Loop kernels on tensors of every dtype, layout and size; what is compiled, and how often."""

import concurrent.futures

import ml_dtypes
import numpy as np
import pytest

import polyop
from polyop import Custom
from polyop.testing import check

# ruff: noqa: F821 - the words of the language

M = np.arange(12).reshape(3, 4)


def affine(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 2 + 1
    return y


def exponential(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = exp(x[i])
    return y


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        most = x[i, 0]
        for j in range(x.shape[1]):
            most = max(most, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - most)
            total = total + y[i, j]
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / total
    return y


def softmax_gradient(x, y, dy):
    dot = (y * dy).sum(1)[:, None]
    return (y * (dy - dot),)


def numpy_softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def gathered(table, which):
    y = output_tensor((which.shape[0], table.shape[1]), table.dtype)
    for i, j in grid(y.shape):
        y[i, j] = table[which[i], j]
    return y


def product(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, bool]
DTYPES += [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.slow(8)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_dtypes(dtype):
    """The result has the input's dtype; 2 and 1 are numbers of no dtype of their own."""
    x = (M % 2 if dtype is bool else M).astype(dtype)
    result = Custom(affine, func_type="hybrid")(x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, (M * 2 + 1).astype(dtype))
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    kind = getattr(torch, np.dtype(dtype).name)
    again = Custom(affine, func_type="hybrid")(torch.tensor(M % 2 if dtype is bool else M).to(kind))
    assert again.dtype == kind
    assert again.to(torch.float64).tolist() == result.astype(np.float64).tolist()


def test_layouts():
    op = Custom(affine, func_type="hybrid")
    x = M.astype(np.float32)
    for view in (x.T, x[::-1, ::2], x[:, 1:3], np.broadcast_to(x[:1], (5, 4)), np.asfortranarray(x)):
        np.testing.assert_array_equal(op(view), view * 2 + 1)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    t = torch.tensor(x)
    for view in (t.T, t[:, ::2], t[1:], t[:1].expand(5, 4), torch._neg_view(t)):
        assert torch.equal(op(view), view * 2 + 1)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0), (1, 1)])
def test_empty_and_tiny(shape):
    op = Custom(affine, func_type="hybrid")
    assert op(np.ones(shape, np.float32)).tolist() == np.full(shape, 3.0).tolist()
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert op(torch.ones(shape)).shape == shape


def test_sums_over_nothing_are_zero():
    result = Custom(product, func_type="hybrid")(np.ones((2, 0)), np.ones((0, 3)))
    assert result.tolist() == [[0, 0, 0], [0, 0, 0]]


def builds(folder):
    """How many libraries a build cache holds."""
    return sum(1 for path in folder.rglob("*.so") if "work" not in path.relative_to(folder).parts)


def test_one_build_serves_all_sizes(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path))
    op = Custom(softmax, func_type="hybrid")
    random = np.random.default_rng(0)
    for shape in ((1, 1), (2, 3), (7, 5), (33, 65), (0, 4)):
        x = random.normal(size=shape).astype(np.float32)
        if x.size:
            np.testing.assert_allclose(op(x), numpy_softmax(x), rtol=1e-6, atol=1e-7)
    assert builds(tmp_path) == 1
    op(np.ones((2, 2)))
    assert builds(tmp_path) == 2  # a dtype has a library of its own
    Custom(softmax, func_type="akg")(np.ones((2, 2)))
    assert builds(tmp_path) == 2  # the same text


def test_one_build_and_one_graph_with_dynamic_shapes(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path))
    op = Custom(product, func_type="hybrid", bprop=lambda a, b, out, dout: (dout @ b.T, a.T @ dout))
    graphs = []

    def backend(graph, example):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    step = torch.compile(lambda a, b: op(a, b) * 2, fullgraph=True, dynamic=True, backend=backend)
    for rows, inner, columns in ((2, 3, 4), (5, 7, 3), (16, 33, 9)):
        a, b = torch.rand(rows, inner), torch.rand(inner, columns)
        torch.testing.assert_close(step(a, b), (a @ b) * 2)
    assert len(graphs) == 1
    assert builds(tmp_path) == 1


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_do_not_change_a_bit(threads):
    x = np.random.default_rng(1).normal(size=(513, 300)).astype(np.float32)
    op = Custom(softmax, func_type="hybrid")
    before = polyop.get_num_threads()
    expected = op(x)
    try:
        polyop.set_num_threads(threads)
        assert polyop.get_num_threads() == threads
        np.testing.assert_array_equal(op(x), expected)
    finally:
        polyop.set_num_threads(before)
    with pytest.raises(polyop.PolyopError, match="set_num_threads: must be a whole number from 1 to"):
        polyop.set_num_threads(0)


def test_first_calls_from_several_threads():
    x = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)
    op = Custom(softmax, func_type="hybrid")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        result = list(pool.map(op, [x] * 32))
    assert all(np.array_equal(y, result[0]) for y in result)


def test_precise_uses_the_platforms_own_functions():
    x = np.linspace(-20, 20, 4001).astype(np.float32)
    precise = Custom(polyop.kernel(exponential, compile_attrs={"precise": True}), func_type="hybrid")
    exact = np.exp(x.astype(np.float64))
    for op in (Custom(exponential, func_type="hybrid"), precise):
        error = np.abs(op(x) - exact) / np.spacing(exact.astype(np.float32))
        assert error.max() <= 1.01  # the bound that math.h states, and the last digit of this estimate


CHECKED = [
    (softmax, softmax_gradient, (M[:, :3].astype(np.float32) / 5,), numpy_softmax),
    (
        gathered,
        None,
        (M.astype(np.float32), np.array([2, 0, 2, 1])),
        lambda table, which: table[which],
    ),
    (
        product,
        lambda a, b, out, dout: (dout @ b.T, a.T @ dout),
        (M.astype(np.float32) / 8, M.T.astype(np.float32) / 8),
        np.matmul,
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "bprop", "inputs", "reference"), CHECKED)
def test_check_passes(function, bprop, inputs, reference):
    op = Custom(function, func_type="hybrid", bprop=bprop)
    report = check(op, *inputs, reference=reference)
    status = {result.check: result.status for result in report.results if result.host != "mindspore"}
    assert status["values, reference"] == status["layouts"] == status["inferred specs"] == "passed"
    defined = {result.check: result.status for result in check(op, *inputs).results}
    assert defined["values, reference"] == "passed"  # beside the function itself, run as Python
    if bprop is not None:
        assert status["gradient"] == "passed"
