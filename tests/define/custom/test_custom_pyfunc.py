"""MindSpore's own scenarios for pyfunc kernels (P1 to P7), and errors that MindSpore does not check."""

import numpy as np
import pytest

import polyop
from polyop import Custom

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
F32 = polyop.dtype("float32")


@pytest.mark.slow(2)
@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_p1_difference_then_relu(kind, compiled):
    op = Custom(lambda x, y: x - y, ((40, 40),), (kind,), "pyfunc")
    rng = np.random.default_rng(0)
    x, y = ((rng.random((40, 40)) * 100).astype(kind) for _ in range(2))
    net = lambda a, b: torch.relu(op(a, b)[0])  # noqa: E731
    op(torch.from_numpy(x), torch.from_numpy(y))  # its inputs are counted at the first call
    net = torch.compile(net, fullgraph=True, backend="aot_eager") if compiled else net
    np.testing.assert_array_equal(net(torch.from_numpy(x), torch.from_numpy(y)), np.maximum(x - y, 0))


@pytest.mark.parametrize("host", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_p2_p5_two_outputs(host):
    op = Custom(lambda x, y: (x + y, x - y), ((2, 2), (2, 2)), (F32, F32), "pyfunc")
    x, y = np.full((2, 2), 3, np.float32), np.full((2, 2), 5, np.float32)
    total, difference = op(host(x), host(y))
    assert np.maximum(np.asarray(total), 0).tolist() == [[8, 8], [8, 8]]
    assert np.asarray(total + difference).tolist() == [[6, 6], [6, 6]]


def test_p4_scalars():
    calls = []
    op = Custom(lambda x, y: calls.append((x, y)) or x - y, (), "int32", "pyfunc")
    out = op(torch.tensor(10, dtype=torch.int32), torch.tensor(5, dtype=torch.int32))
    assert out.item() == 5 and out.dtype == torch.int32 and out.shape == ()
    assert calls == [(10, 5)] and type(calls[0][0]) is int


def test_p6_sine():
    op = Custom(lambda x: np.sin(x), lambda x: x, lambda x: x, "pyfunc")
    out = op(np.array([0, 1, 0.2, 0.3, 0.4], np.float32))
    np.testing.assert_allclose(out, [0, 0.841471, 0.198669, 0.29552, 0.389418], atol=1e-6)


def test_p7_gradient_by_another_pyfunc():
    grad = Custom(lambda x, dout: 2 * x * dout, lambda x, _: x, lambda x, _: x, "pyfunc")
    op = Custom(lambda x: x * x, lambda x: x, lambda x: x, "pyfunc", lambda x, out, dout: (grad(x, dout),))
    x = torch.tensor([1.0, 4.0, 9.0], requires_grad=True)
    op(x).sum().backward()
    assert x.grad.tolist() == [2, 8, 18]


def test_no_outputs():
    sums = []
    op = Custom(lambda x: sums.append(x.sum()), (), (), "pyfunc")
    assert op(np.ones(3)) is None and sums == [3]
    with pytest.raises(polyop.PolyopError, match="must return None"):
        Custom(lambda x: x, (), (), "pyfunc")(np.ones(3))


def test_python_scalars_and_flags_as_arguments():
    op = Custom(lambda x, k, up: x * k if up else x, lambda x, k, up: x, lambda x, k, up: x, "pyfunc")
    x = np.ones(2, np.float32)
    assert (
        op(x, 3, True).tolist() == [3, 3]
        and op(x, 3.5, True).tolist() == [3.5, 3.5]
        and op(x, 3, False).tolist() == [1, 1]
    )


@pytest.mark.parametrize(("function", "shape", "kind", "message"), [
    (lambda x: x.astype(np.float64), (2,), "float32", "must be float32, as the operator infers it, but got float64"),
    (lambda x: x[:1], (2,), "float32", r"must have shape \(2,\), as the operator infers it, but got \(1,\)"),
    (lambda x: (x, x), (2,), "float32", "must return 1 outputs .* but got 2"),
    (lambda x: [x], (2,), "float32", "several outputs are returned as a tuple"),
    (lambda x: "x", (2,), "float32", "must be a NumPy array, but got str"),
    (lambda x: None, (2,), "float32", r"must be a NumPy array, but got NoneType(?s:.*)returns nothing: end it with return"),
])  # fmt: skip
def test_results_are_checked(function, shape, kind, message):
    with pytest.raises(polyop.PolyopError, match=message) as excinfo:
        Custom(function, shape, kind, "pyfunc")(np.ones(2, np.float32))
    assert "test_custom_pyfunc.py:" in str(excinfo.value)


@pytest.mark.parametrize(
    ("value", "kind"), [(True, "bool"), (3, "uint8"), (True, "int32"), (2.5, "float16"), (1j, "complex64")]
)
def test_a_number_of_python_is_a_result_of_its_kind_and_of_wider_ones(value, kind):
    result = Custom(lambda x: value, (), kind, "pyfunc")(np.ones(2))
    assert (result, result.dtype) == (value, kind)


@pytest.mark.parametrize(("value", "kind"), [(1, "bool"), (1.0, "int32"), (1j, "float32"), (300, "uint8")])
def test_a_number_of_python_is_not_narrowed(value, kind):
    with pytest.raises(polyop.PolyopError, match=f"must (be|fit) {kind}, as the operator infers it"):
        Custom(lambda x: value, (), kind, "pyfunc")(np.ones(2))


def test_uint16_scalars_keep_all_bits():
    op = Custom(lambda x: x + 1, (), "uint16", "pyfunc")
    assert op(np.array(65534, np.uint16)) == 65535


def test_an_input_cannot_be_written():
    def careless(x):
        x[0] = 9
        return x

    x = torch.ones(2)
    with pytest.raises(ValueError, match="read-only"):
        Custom(careless, lambda x: x, lambda x: x, "pyfunc")(x)
    assert x.tolist() == [1, 1]


def test_an_array_that_the_function_keeps_is_not_handed_out():
    array = np.zeros(2, np.float32)
    op = Custom(lambda x: array, (2,), "float32", "pyfunc")
    op(torch.ones(2)).add_(1)
    assert array.tolist() == [0, 0]


def test_what_the_function_raises_goes_through():
    with pytest.raises(ZeroDivisionError):
        Custom(lambda x: 1 // 0, lambda x: x, lambda x: x, "pyfunc")(np.ones(1))


def test_without_out_dtype_the_error_has_mindspores_words():
    with pytest.raises(
        polyop.PolyopError, match="'out_dtype' must be one of \\[mindspore.dtype, tuple, list, function\\]"
    ):
        Custom(lambda x: x, lambda x: x, None, "pyfunc")(np.ones(1))


def three():
    return np.arange(3.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Custom(three, (3,), "float64", "pyfunc"),
        lambda: Custom(three, lambda: (3,), lambda: polyop.dtype("float64"), "pyfunc"),
        lambda: polyop.operator(
            "pyfunc::three() -> Tensor", three, infer=lambda: polyop.Spec((3,), "float64")
        ),
    ],
    ids=["constants", "functions", "operator"],
)
def test_a_function_without_inputs(make):
    """Without inputs no framework is known: a call returns a NumPy array, a program its own tensor."""
    op = make()
    np.testing.assert_array_equal(op(), three())
    np.testing.assert_array_equal(op.torch(), torch.arange(3.0, dtype=torch.float64))
    compiled = torch.compile(lambda x: op() + x, fullgraph=True, backend="aot_eager")
    np.testing.assert_array_equal(compiled(torch.ones(3)), three() + 1)
    with pytest.raises(polyop.PolyopError, match="has no gradient rule"):
        op.vjp()
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    np.testing.assert_array_equal(jax.jit(lambda x: op() + x)(np.ones(3, np.float32)), three() + 1)


def test_a_native_kernel_without_inputs_is_refused_in_words():
    code = "int fill(int n, void **p, int *d, long **s, const char **t, void *q, void *e) { return 0; }"
    kernel = polyop.source(function="fill", code=code, language="c")
    spec = lambda n: polyop.Spec((n,), "float32")  # noqa: E731
    op = polyop.operator("pyfunc::fill(int n) -> Tensor", kernel, infer=spec)
    with pytest.raises(
        polyop.PolyopError, match=r"needs at least one tensor(.|\n)*the kernel must be a Python function"
    ):
        op(3)
