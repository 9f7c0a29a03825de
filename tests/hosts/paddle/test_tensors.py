"""Paddle's tensors: dtypes, layouts, what is written, what is refused."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import polyop
from polyop.call.explain import explain
from polyop.core.errors import ArgumentTypeError, HostError, PolyopError

paddle = pytest.importorskip("paddle", reason="not run: paddle is not installed")

X = np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3)
same = polyop.operator("paddle_tests::same(Tensor x) -> Tensor", lambda x: x.copy(), infer="x")
add = polyop.operator("paddle_tests::add(Tensor x, Tensor y) -> Tensor", lambda x, y: x + y, infer="x")
total = polyop.operator(
    "paddle_tests::total(Tensor[] xs) -> Tensor", lambda xs: sum(xs), infer=lambda xs: xs[0]
)
shifted = polyop.operator(
    "paddle_tests::shifted(Tensor x, Tensor? by=None) -> Tensor",
    lambda x, by=None: x if by is None else x + by,
    infer="x",
)


def _scale(x, by):
    x *= by


scale_ = polyop.operator("paddle_tests::scale_(Tensor(a!) x, float by) -> Tensor(a!)", _scale)

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("name", [*DTYPES, "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 3)], ids=str)
def test_a_dtype_goes_in_and_comes_out(name, shape):
    kind = np.dtype(getattr(ml_dtypes, name, None) or name)
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    if kind.itemsize == 1 and name.startswith("float8"):
        x = paddle.to_tensor(numbers.astype(kind).view(np.int8)).view(name)
        result = same(x)
        assert result.dtype == x.dtype and result.shape == x.shape
        np.testing.assert_array_equal(result.view("int8").numpy(), x.view("int8").numpy())
        return
    x = paddle.to_tensor(numbers).astype(name)
    result = same(x)
    assert result.dtype == x.dtype and tuple(result.shape) == shape
    np.testing.assert_array_equal(result.astype("complex128").numpy(), x.astype("complex128").numpy())


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_a_transposed_tensor_is_read_and_written_where_it_is(name):
    base = paddle.to_tensor(X).astype(name)
    x = base.T
    np.testing.assert_array_equal(same(x).astype("float32").numpy(), x.astype("float32").numpy())
    before, version = x.astype("float32").numpy(), x.inplace_version
    assert scale_(x, 2.0) is x
    np.testing.assert_array_equal(base.astype("float32").numpy().T, 2 * before)
    assert x.inplace_version > version


def test_lists_and_absent_tensors():
    x = paddle.to_tensor(X)
    np.testing.assert_array_equal(total([x, x, x]).numpy(), 3 * X)
    np.testing.assert_array_equal(shifted(x, x).numpy(), 2 * X)
    np.testing.assert_array_equal(shifted(x).numpy(), X)


def test_a_kernel_in_c_reads_the_memory_of_the_tensor(kernels):
    cube = polyop.operator("paddle_tests::cube(Tensor x, float a=1.0) -> Tensor", kernels("cube"), infer="x")
    x = paddle.to_tensor(X.astype(np.float64))
    np.testing.assert_allclose(cube(x, 2.0).numpy(), 2 * X.astype(np.float64) ** 3)


REFUSED = [  # the call, its error, words of it
    (lambda x: add(x, X), HostError, "y is a tensor of numpy, and x one of paddle"),
    (
        lambda x: same(paddle.sparse.sparse_coo_tensor([[0], [1]], [1.0], [2, 2])),
        ArgumentTypeError,
        "argument x: must be dense: call to_dense() on it, but got a sparse one",
    ),
    (
        lambda x: polyop.operator(
            "paddle_tests::unsigned(Tensor x) -> Tensor",
            lambda x: x.astype(np.uint16),
            infer=lambda x: polyop.Spec(x.shape, "uint16"),
        )(x),
        PolyopError,
        "uint16",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=[row[2][:40] for row in REFUSED])
def test_what_is_refused(call, error, message):
    with pytest.raises(error) as problem:
        call(paddle.to_tensor(X))
    assert message in str(problem.value)


def test_a_tensor_of_pytorch_beside_one_of_paddle_is_refused():
    torch = pytest.importorskip("torch", reason="not run: torch is not installed")
    with pytest.raises(HostError, match="y is a tensor of torch, and x one of paddle"):
        add(paddle.to_tensor(X), torch.tensor(X))


def test_explain_says_how_calls_are_made():
    line = "paddle      present; through DLPack and NumPy, on the CPU; no vmap, which Paddle does not have"
    assert line in explain(same)


def test_a_program_without_pytorch_calls_operators():
    program = (
        "import polyop, sys\n"
        "sys.modules['torch'] = sys.modules['jax'] = None\n"
        "assert 'paddle' not in sys.modules\n"
        "import paddle\n"
        "op = polyop.operator('alone::f(Tensor x) -> Tensor', lambda x: x + 1, infer='x')\n"
        "print(op(paddle.zeros([2])).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[-2] == "[1.0, 1.0]"


@pytest.mark.parametrize("traced", [False, True])
def test_an_output_of_a_dtype_that_paddle_lacks(traced):
    def encode(x):
        return x.astype(ml_dtypes.float8_e8m0fnu)

    def infer(x):
        return polyop.Spec(x.shape, polyop.dtype("float8_e8m0fnu"))

    op = polyop.operator(f"paddle_tensors::encode{traced}(Tensor x) -> Tensor", encode, infer=infer)

    def program(x):
        return op(x)

    call = paddle.jit.to_static(program, full_graph=True) if traced else program
    with pytest.raises(TypeError, match=r"gives a dtype that Paddle's tensors do not have.*float8_e8m0fnu"):
        call(paddle.ones([3]))
