import ml_dtypes
import numpy as np
import pytest

import polyop
from polyop.core.dtypes import DTYPES

X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)


@pytest.mark.parametrize("x", [
    X, X.T, X[:, ::-1], X[::2], np.asfortranarray(X), X.astype(">f4"), np.broadcast_to(X[0], (4, 3)),
    X[:0], np.zeros((0, 3), np.float32), np.array(3, np.float32), np.float32(3), np.ma.asarray(X).view(np.ndarray),
    np.frombuffer(b"\0" + X.tobytes(), np.float32, offset=1).reshape(X.shape),  # not aligned
], ids=str)  # fmt: skip
def test_every_layout(square, x):
    out = square(x)
    assert out.shape == x.shape and out.dtype == np.float32 and out.flags.c_contiguous
    np.testing.assert_array_equal(out, np.asarray(x, np.float32) ** 2)


def test_read_only_inputs_are_fine_and_stay_as_they_are(square):
    x = X.copy()
    x.flags.writeable = False
    np.testing.assert_array_equal(square(x), X**2)
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("row", DTYPES, ids=str)
def test_every_dtype(kernels, row):
    op = polyop.operator(f"numpy_tests::copy_{row}(Tensor x) -> Tensor", kernels("copy"), infer="x")
    x = np.array([0, 1, 1, 0, 1], np.float32).astype(row.numpy)
    assert op(x).dtype == row.numpy
    np.testing.assert_array_equal(op(x).view(np.uint8), x.view(np.uint8))


def test_long_long_is_int64_too(kernels):
    op = polyop.operator("numpy_tests::longlong(Tensor x) -> Tensor", kernels("copy"), infer="x")
    assert op(np.array([1, 2], np.longlong)).tolist() == [1, 2]


def test_several_outputs_optional_inputs_and_lists(kernels):
    both = polyop.operator(
        "numpy_tests::both(Tensor x, Tensor y) -> (Tensor, Tensor)", kernels("sum_and_difference"), infer="x"
    )
    total, difference = both(X, X)
    assert (total == 2 * X).all() and (difference == 0).all()
    maybe = polyop.operator(
        "numpy_tests::maybe(Tensor x, Tensor? y=None) -> Tensor", kernels("add_optional"), infer="x"
    )
    assert (maybe(X) == X).all() and (maybe(X, X) == 2 * X).all() and (maybe(X, y=None) == X).all()
    every = polyop.operator(
        "numpy_tests::every(Tensor[] xs) -> Tensor", kernels("add_all"), infer=lambda xs: xs[0]
    )
    assert (every([X, X, X]) == 3 * X).all() and (every((X,)) == X).all()
    assert (every([X] * 40) == 40 * X).all()


def test_attributes_by_position_and_by_keyword(cube):
    x = np.array([1.0, 2.0])
    assert (
        cube(x).tolist() == [1, 8]
        and cube(x, 2).tolist() == [2, 16]
        and cube(x=x, a=np.float32(0.5)).tolist() == [0.5, 4]
    )


def test_written_arguments(scale_):
    x = X.copy()
    assert scale_(x, 2.0) is None
    np.testing.assert_array_equal(x, 2 * X)
    view = X.copy()
    scale_(view.T[::-1], 3.0)
    np.testing.assert_array_equal(view, 3 * X)
    swapped = X.astype(">f4")
    scale_(swapped, 2.0)
    np.testing.assert_array_equal(swapped, 2 * X)


def test_an_aliasing_return_is_the_argument_itself(kernels):
    op = polyop.operator(
        "numpy_tests::scaled_(Tensor(a!) x, float a) -> Tensor(a!)", kernels("scale_in_place")
    )
    x = X.copy()
    assert op(x, 2.0) is x and (x == 2 * X).all()


def test_a_read_only_array_is_never_written(scale_):
    x = X.copy()
    x.flags.writeable = False
    with pytest.raises(ValueError, match="argument x: is written in place, but got a read-only array"):
        scale_(x, 2.0)
    with pytest.raises(TypeError, match="must be an array, but got float32"):
        scale_(np.float32(3), 2.0)
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize(("args", "words"), [
    (([1.0, 2.0],), "argument x: must be a tensor .*, but got builtins.list\n  defined at .*\n  make an array of it first"),
    ((None,), "argument x: must be a tensor, but got None"),
    ((3.0,), r"argument x: must be a tensor of numpy or torch or jax or mindspore or paddle or dask or xarray or pyopencl, or an array with __dlpack__, but got builtins.float\n  defined at .*\n  make an array of it first: np.asarray\(x, np.float32\)"),
    ((), "needs argument 'x'"),
    ((X, X), "takes 1 positional argument "),
    ((X.astype("U3"),), "argument x: dtype: must be one that kernels take"),
])  # fmt: skip
def test_wrong_arguments(square, args, words):
    with pytest.raises(TypeError, match=words):
        square(*args)


def test_kernels_are_refused_with_reasons(kernels):
    import pathlib

    path = pathlib.Path(__file__).parents[1] / "sources" / "kernels.c"
    f32 = polyop.source(path, function="square", dtypes=["float32"])
    cuda = polyop.prebuilt(f32.path, "square", device="cuda")
    op = polyop.operator("numpy_tests::refuses(Tensor x) -> Tensor", [cuda, f32], infer="x")
    assert (op(X) == X**2).all()
    with pytest.raises(polyop.PolyopError, match="takes float32, not float64") as caught:
        op(X.astype(np.float64))
    assert "runs on cuda, and the tensors are on cpu" in str(caught.value)
    assert "test_numpy.py:" in str(caught.value)


def test_a_code_and_the_kernels_own_words_are_in_the_error(kernels):
    seven = polyop.operator("numpy_tests::seven(Tensor x) -> Tensor", kernels("fails_with_7"), infer="x")
    with pytest.raises(
        RuntimeError, match="numpy_tests::seven: the kernel returned 7; any value other than 0"
    ):
        seven(X)
    words = polyop.operator("numpy_tests::words(Tensor x) -> Tensor", kernels("fails_with_words"), infer="x")
    with pytest.raises(RuntimeError, match=r"returned 1 \(needs a square matrix\)"):
        words(X)
    with pytest.raises(RuntimeError, match="returned 7"):  # not the message of an earlier call
        seven(X)


def test_vjp(square, plain, kernels):
    out, pull = square.vjp(X)
    np.testing.assert_array_equal(out, X**2)
    (dx,) = pull(np.ones_like(X))
    np.testing.assert_array_equal(dx, 2 * X)
    np.testing.assert_array_equal(pull(np.broadcast_to(np.float32(2), X.shape))[0], 4 * X)
    with pytest.raises(RuntimeError, match="host_tests::plain: has no gradient rule"):
        plain.vjp(X)


def gradient(result):
    return polyop.operator(
        f"numpy_tests::{polyop_name()}(Tensor x, Tensor y) -> (Tensor, Tensor)",
        lambda x, y: (x + y, x - y),
        infer="x",
        gradient=lambda x, y, out, dout: result(x, dout),
    )


def polyop_name(count=iter(range(100))):  # noqa: B008 - one counter for the module
    return f"g{next(count)}"


@pytest.mark.parametrize(("result", "words"), [
    (lambda x, d: d[0], "must return a tuple of 2, one gradient or None per input, but got ndarray"),
    (lambda x, d: [d[0], d[1]], "must return a tuple of 2, .* but got list"),
    (lambda x, d: (d[0],), "must return a tuple of 2, .* but got 1"),
    (lambda x, d: (d[0][:1], None), r"gradient of x: must have the input's shape \(2, 3\), but got \(1, 3\)"),
    (lambda x, d: (1.0, None), "gradient of x: must be a tensor or None, but got float"),
])  # fmt: skip
def test_a_gradient_rule_that_breaks_its_contract(result, words):
    _, pull = gradient(result).vjp(X, X)
    with pytest.raises(RuntimeError, match=words) as caught:
        pull((X, X))
    assert "test_numpy.py:" in str(caught.value)


def test_several_outputs_come_to_the_rule_as_tuples():
    recorded = []
    op = gradient(lambda x, d: recorded.append(d) or (d[0] + d[1], d[0] - d[1]))
    out, pull = op.vjp(X, X)
    assert isinstance(out, tuple)
    dx, dy = pull((X, 2 * X))
    assert isinstance(recorded[0], tuple) and (dx == 3 * X).all() and (dy == -X).all()
    with pytest.raises(ValueError, match="vjp needs 2 output gradients, but got 1"):
        pull((X,))


def test_an_infer_rule_that_reads_a_changing_variable_is_asked_at_every_call():
    size = 2
    op = polyop.operator(
        "numpy_tests::sized(Tensor x) -> Tensor",
        lambda x: np.zeros(size),
        infer=lambda x: polyop.Spec((size,), x.dtype),
    )
    assert op(np.ones(1)).shape == (2,)
    size = 5
    assert op(np.ones(1)).shape == (5,)


CELL = "op = polyop.operator('numpy_tests::cell(Tensor x) -> Tensor', lambda x: x + step, infer='x')"


def test_a_cell_that_is_run_again_replaces_its_operator():
    names = {"polyop": polyop, "step": 1}
    exec(compile(CELL, "cell 1", "exec"), names)
    old = names["op"]
    names["step"] = 2
    exec(compile(CELL, "cell 2", "exec"), names)  # edited cells have another file name
    assert names["op"](X[0])[0] == 3
    names["step"] = 1
    assert old(X[0])[0] == 2 and old.name != "numpy_tests::cell"
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert old.torch(torch.ones(1)).item() == 2 and torch.ops.numpy_tests.cell(torch.ones(1)).item() == 2


def test_names_are_taken_once(kernels):
    def define():
        return polyop.operator("numpy_tests::named(Tensor x) -> Tensor", kernels("square"), infer="x")

    first = define()
    with pytest.raises(
        ValueError, match=r"the name is taken by the operator defined at .*test_numpy\.py:\d+"
    ):
        define()  # the same line, but another operator
    assert (first(X) == X**2).all()
    with pytest.raises(ValueError, match="needs a namespace"):
        polyop.operator("bare(Tensor x) -> Tensor", kernels("square"), infer="x")
    with pytest.raises(ValueError, match="cannot be derived"):
        polyop.operator("numpy_tests::no_rule(Tensor x) -> Tensor", kernels("square"))


def test_copy_and_pickle(square):
    import copy
    import pickle

    assert copy.deepcopy({"op": square})["op"] is square
    assert pickle.loads(pickle.dumps(square)) is square


def test_a_bfloat16_scalar_is_a_tensor(kernels):
    op = polyop.operator("numpy_tests::bf(Tensor x) -> Tensor", kernels("copy"), infer="x")
    assert op(ml_dtypes.bfloat16(1.5)) == 1.5


@pytest.mark.parametrize("returns", ["()", "Tensor(a!)"])
def test_a_python_kernel_may_write_what_the_schema_says(returns):
    def add_(x, y):
        x += y
        return x

    op = polyop.operator(f"numpy_tests::{polyop_name()}(Tensor(a!) x, Tensor y) -> {returns}", add_)
    x = X.copy()
    assert op(x.T, X.T) is None or returns != "()"
    np.testing.assert_array_equal(x, 2 * X)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    t = torch.tensor(X)
    op(t.t(), torch.tensor(X).t())
    np.testing.assert_array_equal(t, 2 * X)
