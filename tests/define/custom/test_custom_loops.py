"""Loop kernels as MindSpore's users wrote them: each scenario on every host, eager and compiled."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import polyop

# the words of the language, and loops over them: as Python sees them, names that nobody defines
# ruff: noqa: F821


def cast(a, b):
    d = allocate(a.shape, "float16")
    c = output_tensor(a.shape, "float16")
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            d[i, j] = float16(a[i, j]) * float16(2.0)
            c[i, j] = d[i, j] + float16(b[i, j])
    return c


def magnitude(a, b):
    d = allocate(a.shape, a.dtype)
    c = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            d[i, j] = abs(a[i, j])
            c[i, j] = d[i, j] + b[i, j]
    return c


def serial_outer(a, b):
    c = output_tensor(b.shape, b.dtype)
    for j in range(b.shape[1]):
        c[0, j] = b[0, j] + a[0, 0]
    for i in serial(1, b.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = c[i - 1, j] + b[i, j]
    return c


def serial_inner(a, b):
    c = output_tensor(b.shape, b.dtype)
    for i in range(b.shape[0]):
        c[i, 0] = b[i, 0] + a[i, 0]
        for j in serial(1, b.shape[1]):
            c[i, j] = c[i, j - 1] + b[i, j]
    return c


def vectorize_outer(a, b):
    c = output_tensor(b.shape, b.dtype)
    for j in vectorize(b.shape[1]):
        for i in range(b.shape[0]):
            c[i, j] = b[i, j] * a[i, 0]
    return c


def vectorize_inner(a, b):
    c = output_tensor(b.shape, b.dtype)
    for i in range(b.shape[0]):
        for j in vectorize(b.shape[1]):
            c[i, j] = b[i, j] * a[i, 0]
    return c


def vectorize_two(a, b):
    c = output_tensor((a.shape[0], a.shape[1], b.shape[1]), b.dtype)
    for i in vectorize(a.shape[0]):
        for j in range(a.shape[1]):
            for k in vectorize(b.shape[1]):
                c[i, j, k] = a[i, j] * b[i, k]
    return c


def parallel_inner(a, b):
    c = output_tensor(b.shape, b.dtype)
    for i in range(b.shape[0]):
        for j in parallel(b.shape[1]):
            c[i, j] = b[i, j] * a[i, 0]
    return c


def parallel_outer(a, b):
    c = output_tensor(b.shape, b.dtype)
    for i in parallel(b.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = b[i, j] * a[i, 0]
    return c


def parallel_middle(a, b):
    c = output_tensor((a.shape[0], a.shape[1], b.shape[1]), b.dtype)
    for i in range(a.shape[0]):
        for j in parallel(a.shape[1]):
            for k in range(b.shape[1]):
                c[i, j, k] = a[i, j] * b[i, k]
    return c


def reduce_columns(a):
    c = output_tensor((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        c[i] = 0.0
        for j in reduce(a.shape[1]):
            c[i] = c[i] + a[i, j]
    return c


def outer_product(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in range(a.shape[1]):
                c[i, j] = c[i, j] + a[i, k] * b[k, j]
    return c


def sum_and_product(a, b):
    c = output_tensor(a.shape, a.dtype)
    d = output_tensor(a.shape, a.dtype)
    for i, j in grid(a.shape):
        c[i, j] = a[i, j] + b[i, j]
        d[i, j] = a[i, j] * b[i, j]
    return c, d


def first_column(dout, values, like):
    """Return a gradient that reaches the first column alone."""
    return (dout * values).sum(1)[:, None] * ((like * 0 + 1).cumsum(1) < 1.5)


SCALED = (lambda a, b: b * a[:, :1], lambda a, b, out, dout: (first_column(dout, b, a), dout * a[:, :1]))
PLANES = (
    lambda a, b: a[:, :, None] * b[:, None, :],
    lambda a, b, out, dout: ((dout * b[:, None, :]).sum(2), (dout * a[:, :, None]).sum(1)),
)


@dataclass(frozen=True)
class Scenario:
    """``expected`` and ``bprop`` are of arrays of any framework."""

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    expected: Callable[..., Any]
    bprop: Callable[..., Any]
    dtypes: tuple[str, ...] = ("float32", "float16")
    out_shape: Any = None
    out_dtype: Any = None
    func_type: str = "hybrid"


WIDE = ((1024, 32), (1024, 64))
HALF = (lambda a, b: halved(a) * 2 + halved(b), lambda a, b, out, dout: (2 * dout + 0 * a, dout + 0 * b))
SCENARIOS = {
    "H1": Scenario(cast, ((4, 4), (4, 4)), *HALF, out_shape=lambda a, b: a, out_dtype=lambda a, b: polyop.dtype("float16")),
    "H2": Scenario(cast, ((4, 4), (4, 4)), *HALF),
    "H4": Scenario(
        magnitude, ((5, 3), (5, 3)), lambda a, b: abs(a) + b, lambda a, b, out, dout: (dout * a / abs(a), dout)
    ),
    "H6": Scenario(
        serial_outer, WIDE,
        lambda a, b: b.cumsum(0) + a[0, 0],
        lambda a, b, out, dout: (dout.sum() * corner(a), dout.sum(0) - dout.cumsum(0) + dout),
        ("float32",),
    ),
    "H7": Scenario(
        serial_inner, WIDE,
        lambda a, b: b.cumsum(1) + a[:, :1],
        lambda a, b, out, dout: (
            first_column(dout, dout * 0 + 1, a), dout.sum(1)[:, None] - dout.cumsum(1) + dout,
        ),
        ("float32",),
    ),
    "H8": Scenario(vectorize_outer, WIDE, *SCALED),
    "H9": Scenario(vectorize_inner, WIDE, *SCALED),
    "H10": Scenario(vectorize_two, WIDE, *PLANES),
    "H11": Scenario(parallel_inner, WIDE, *SCALED),
    "H12": Scenario(parallel_outer, WIDE, *SCALED),
    "H13": Scenario(parallel_middle, WIDE, *PLANES),
    "H14": Scenario(
        reduce_columns, ((1024, 2048),), lambda a: a.sum(1), lambda a, out, dout: (dout[:, None] + 0 * a,)
    ),
    "K1": Scenario(
        outer_product, ((4, 4), (4, 4)),
        lambda a, b: a @ b,
        lambda a, b, out, dout: (dout @ b.T, a.T @ dout),
        out_shape=lambda a, b: a, out_dtype=lambda a, b: a, func_type="akg",
    ),
    "K4": Scenario(
        sum_and_product, ((4, 4), (4, 4)),
        lambda a, b: (a + b, a * b),
        lambda a, b, out, dout: (dout[0] + dout[1] * b, dout[0] + dout[1] * a),
        out_shape=lambda a, b: (a, a), out_dtype=lambda a, b: (a, a), func_type="akg",
    ),
}  # fmt: skip
CASES = [
    pytest.param(name, dtype, id=f"{name}-{dtype}") for name, s in SCENARIOS.items() for dtype in s.dtypes
]


def halved(x):
    return x.astype(np.float16) if isinstance(x, np.ndarray) else x.half()


def corner(x):
    """Return zeros like x with a one in the first element."""
    steps = (x * 0 + 1).cumsum(0).cumsum(1)
    return (x * 0 + 1) * (steps < 1.5)


def draw(scenario, dtype, seed=0):
    """Return inputs that half precision holds, as are their products and sums of few."""
    random = np.random.default_rng(seed)
    return [random.choice([-2, -1, -0.5, 0.5, 1], shape).astype(dtype) for shape in scenario.shapes]


def make_operator(scenario, Custom=None):
    Custom = Custom or polyop.Custom
    arguments = (scenario.out_shape, scenario.out_dtype, scenario.func_type, scenario.bprop)
    return Custom(scenario.function, *arguments)


def parts(value):
    return value if isinstance(value, tuple) else (value,)


def as_array(x):
    return x if isinstance(x, np.ndarray) else x.detach().numpy()


def same(result, expected, tolerance=0.0):
    assert isinstance(result, tuple) == isinstance(expected, tuple)
    for one, other in zip(map(as_array, parts(result)), map(as_array, parts(expected)), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * 10)


@pytest.mark.slow(8)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_values_on_numpy(name, dtype):
    scenario = SCENARIOS[name]
    inputs = draw(scenario, dtype)
    same(make_operator(scenario)(*inputs), scenario.expected(*inputs))


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_function_itself_is_the_definition(name):
    """The function run as Python, the operator, and what was meant: on sizes that Python can walk."""
    scenario = SCENARIOS[name]
    inputs = [x[:6, :5] for x in draw(scenario, "float32")]
    direct = polyop.kernel(scenario.function).python(*inputs)
    same(direct, scenario.expected(*inputs))
    same(make_operator(scenario)(*inputs), direct)


@pytest.mark.parametrize("name", SCENARIOS)
def test_gradients_on_numpy_and_pytorch(name):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    scenario = SCENARIOS[name]
    inputs = draw(scenario, "float32")
    op = make_operator(scenario)
    leaves = [torch.tensor(x, requires_grad=True) for x in inputs]
    out = scenario.expected(*leaves)
    expected = torch.autograd.grad(parts(out), leaves, [torch.ones_like(x) for x in parts(out)])

    result, pull = op.vjp(*inputs)
    ones = tuple(np.ones_like(x) for x in parts(result))
    same(tuple(pull(ones if isinstance(result, tuple) else ones[0])), expected, 1e-6)

    out = op(*leaves)
    same(out, tuple(map(torch.Tensor.detach, out)) if isinstance(out, tuple) else out.detach())
    same(torch.autograd.grad(parts(out), leaves, [torch.ones_like(x) for x in parts(out)]), expected, 1e-6)


@pytest.mark.slow(8)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_values_on_pytorch(name, dtype):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    scenario = SCENARIOS[name]
    inputs = draw(scenario, dtype)
    same(make_operator(scenario)(*map(torch.tensor, inputs)), scenario.expected(*inputs))


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", SCENARIOS)
def test_compiled_whole_by_pytorch(name):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    scenario = SCENARIOS[name]
    inputs = draw(scenario, "float32")
    op = make_operator(scenario)
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, backend="aot_eager")
    def loss(*tensors):
        return sum((out.float() * 2).sum() for out in parts(op(*tensors)))

    leaves = [torch.tensor(x, requires_grad=True) for x in inputs]
    expected = sum((out.float() * 2).sum() for out in parts(scenario.expected(*leaves)))
    result = loss(*leaves)
    torch.testing.assert_close(result, expected)
    same(torch.autograd.grad(result, leaves), torch.autograd.grad(expected, leaves), 1e-6)


@pytest.mark.slow(1)
@pytest.mark.parametrize("mode", ["PYNATIVE_MODE", "GRAPH_MODE"])
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # PyTorch's own
def test_in_a_mindspore_script(name, mode):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import polyop.mindspore as ms

    torch._dynamo.reset()
    scenario = SCENARIOS[name]
    inputs = draw(scenario, "float32")

    class Net(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.op = make_operator(scenario, ms.ops.Custom)

        def construct(self, *tensors):
            return self.op(*tensors)

    ms.set_context(mode=getattr(ms, mode))
    try:
        result = Net()(*map(ms.Tensor, inputs))
        gradients = ms.grad(Net(), tuple(range(len(inputs))))(*map(ms.Tensor, inputs))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    result = tuple(x.asnumpy() for x in result) if isinstance(result, tuple) else result.asnumpy()
    same(result, scenario.expected(*inputs))
    leaves = [torch.tensor(x, requires_grad=True) for x in inputs]
    out = parts(scenario.expected(*leaves))
    expected = torch.autograd.grad(out, leaves, [torch.ones_like(x) for x in out])
    same(tuple(x.asnumpy() for x in parts(gradients)), expected, 1e-6)


def test_k7_kernels_built_with_tvm_are_recognised_and_refused():
    def v_add(inputs, attrs):
        def vadd_func(dst, data_1, data_2):
            ib = tvm.ir_builder.create()
            with ib.for_range_n(data_1.shape, "i") as i:
                ib.store(dst, i, ib.load(data_1, i) + ib.load(data_2, i))
            return ib.get()

        data_1, data_2 = inputs[0], inputs[1]
        return tvm.extern(
            data_1.shape, [data_1, data_2], lambda ins, outs: vadd_func(outs[0], ins[0], ins[1])
        )

    message = r"tvm: kernels built with TVM \(ir_builder, tvm.compute\) are not compiled"
    with pytest.raises(polyop.PolyopError, match=message) as excinfo:
        polyop.Custom(v_add, lambda x: x[0], lambda x: x[0], "akg")
    assert "write loops: y = output_tensor(x.shape, x.dtype)" in str(excinfo.value)
    assert "test_custom_loops.py:" in str(excinfo.value)
