"""Functions of tvm-ffi as kernels: exported by a real library, and as objects of its Python package."""

import gc
import itertools
import subprocess
import sys

import numpy as np
import pytest

import polyop
import tvm_ffi_library
from polyop.kernels.tvm_ffi import TvmFfiKernel
from polyop.testing import check

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="session")
def path():
    return tvm_ffi_library.path()


@pytest.fixture
def new_name():
    return f"tvmffi::operator_{next(_numbers)}"


_numbers = itertools.count()


@pytest.fixture(scope="session")
def scale(path):
    def gradient(x, factor, out, dout):
        return op(dout, factor), None

    op = polyop.operator(
        "tvmffi::scale(Tensor x, float factor) -> Tensor",
        f"{path}:scale",
        infer="x",
        gradient=gradient,
        batch="elementwise",
        reference=lambda x, factor: x * np.float32(factor),
    )
    return op


@pytest.fixture(scope="session")
def square(path):
    return polyop.operator("tvmffi::square(Tensor x) -> Tensor", f"{path}:square", infer="x")


def test_numpy_values_and_no_python_in_a_repeated_call(scale, square):
    np.testing.assert_array_equal(scale(X.T, 2.5), 2.5 * X.T)  # made dense before the call
    np.testing.assert_array_equal(square(X[:0]), X[:0])
    square(X)
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    result = square(X)
    sys.setprofile(None)
    assert called == []
    np.testing.assert_array_equal(result, X**2)


def test_neither_tvm_ffi_nor_torch_is_imported(path):
    code = f"""
import sys, numpy as np, polyop
op = polyop.operator("t::square(Tensor x) -> Tensor", {f"{path}:square"!r}, infer="x")
print(op(np.full(2, 3, np.float32)).tolist(), "tvm_ffi" in sys.modules, "torch" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "[9.0, 9.0] False False", done.stderr


@pytest.mark.parametrize(
    ("bias", "values", "factor"),
    [
        (None, (2, 0.5, True, "ä b"), 2000 + 0.5 + 0.25 + 10 * len("ä b".encode()) + 0.125),
        (X, (-1, -0.5, False, "", 3), -1000 - 0.5 + 300),
        (X, (0, 1, False, "abcdefghij", None), 1 + 100),
    ],
)
def test_each_kind_of_attribute_and_an_absent_tensor(path, new_name, bias, values, factor):
    op = polyop.operator(
        f"{new_name}(Tensor x, Tensor? bias, int i, float f, bool b, str s, int? n=None) -> Tensor",
        f"{path}:attributes",
        infer="x",
    )
    expected = np.float32(factor) * X + (0 if bias is None else bias)
    np.testing.assert_array_equal(op(X, bias, *values), expected)


def test_torch(scale):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.tensor(X, requires_grad=True)
    (scale(x, 3.0) * x).sum().backward()
    assert torch.equal(x.grad, 6 * x)
    compiled = torch.compile(lambda x: scale(x, 2.0) + 1, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), 2 * x + 1)
    per_row = torch.vmap(torch.func.grad(lambda row: scale(row, 2.0).sum()))(x.detach())
    assert torch.equal(per_row, torch.full_like(x, 2))
    assert scale(torch.empty(2, 3, device="meta"), 1.0).shape == (2, 3)


@pytest.mark.slow
def test_jax_without_a_callback(scale):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    compiled = jax.jit(jax.value_and_grad(lambda x: scale(x, 2.0).sum()))
    value, gradient = compiled(X)
    assert (float(value), np.asarray(gradient).tolist()) == (2 * X.sum(), np.full_like(X, 2).tolist())
    text = compiled.lower(X).as_text()
    assert "@polyop_call" in text
    assert "callback" not in text
    np.testing.assert_array_equal(jax.vmap(lambda row: scale(row, 2.0))(X), 2 * X)
    with pytest.raises(Exception, match="ValueError: needs one dimension, got 0"):
        jax.jit(lambda x: scale(x, 2.0))(X[0, 0]).block_until_ready()


@pytest.mark.slow
def test_check_tries_it_as_any_native_kernel(scale):
    report = check(scale, X, 2.0, hosts=["numpy"])
    results = {row.check: row.status for row in report.results if row.host in ("native", "numpy")}
    assert {results[name] for name in ("guard bands", "inputs alone", "reads inside", "gradient")} == {
        "passed"
    }


def test_an_argument_written_in_place(path):
    op = polyop.operator("tvmffi::rescale(Tensor(a!) x, float factor) -> ()", f"{path}:scale_in_place")
    x = X.copy()
    op(x, 4.0)
    np.testing.assert_array_equal(x, 4 * X)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    t = torch.tensor(X)
    op(t, 5.0)
    assert (t.numpy() == 5 * X).all()
    assert t._version == 1


@pytest.mark.parametrize(
    ("schema", "function", "arguments", "message"),
    [
        ("(Tensor x, float f) -> Tensor", "scale", (X[0, 0], 1.0), "threw ValueError: needs one dimension, got 0"),
        ("(Tensor x, float f) -> Tensor", "scale", (X[0, 0], 1.0), r"File .*tvm_ffi\.cc\"?, line \d+, in void scale"),
        ("(Tensor x) -> Tensor", "square", (X.astype(float),), "threw TypeError: square takes float32"),
        ("(Tensor x) -> Tensor", "scale", (X,), r"threw TypeError: Mismatched number of arguments when calling"),
        ("(Tensor x, str f) -> Tensor", "scale", (X, "a"), "TypeError: .*argument #1.* Expected `float` but got `const char"),
        ("(Tensor x) -> Tensor", "returns_a_number", (X,), "must return None .* but it returned an int"),
        ("(Tensor x) -> Tensor", "returns_a_tensor", (X,), "must return None .* but it returned a tensor"),
        ("(Tensor x, int[] i) -> Tensor", "square", (X, [1]), "the attribute i is a list; it takes an int, float"),
        ("(Tensor[] x) -> Tensor", "square", ([X],), "takes no list of tensors"),
    ],
)  # fmt: skip
def test_errors(path, new_name, schema, function, arguments, message):
    infer = lambda x, *_: x[0] if isinstance(x, (tuple, list)) else x  # noqa: E731
    op = polyop.operator(f"{new_name}{schema}", f"{path}:{function}", infer=infer)
    with pytest.raises(polyop.PolyopError, match=message) as problem:
        op(*arguments)
    text = str(problem.value)
    assert "defined at" in text
    assert "ceval" not in text  # no frames of the caller


def test_a_missing_function_lists_those_of_tvm_ffi(path):
    with pytest.raises(
        polyop.PolyopError, match="does not offer the function 'squar'\n.*did you mean square"
    ):
        polyop.prebuilt(path, "squar")


def test_a_function_of_a_library_that_this_one_needs_is_not_taken():
    code = """
    #include <math.h>
    float (*volatile used)(float) = sinf;
    int __tvm_ffi_sin(void *h, const void *a, int n, void *r) { return h == 0 && a && n && r ? 0 : 1; }
    """
    path = polyop.source(code=code, language="c", function="__tvm_ffi_sin", link_flags=["-lm"]).path
    kernel = polyop.prebuilt(path, "sin")
    assert isinstance(kernel, TvmFfiKernel)
    polyop.operator("tvmffi::sin(Tensor x) -> Tensor", kernel, infer="x")(X)


def test_objects_are_kept_alive(path):
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")
    calls = []

    exported_square = tvm_ffi.load_module(str(path))["square"]

    def write_square(x, factor, out):
        calls.append((x.shape, factor))
        exported_square(x, out)

    exported = polyop.operator(
        "tvmffi::exported(Tensor x) -> Tensor",
        tvm_ffi.load_module(str(path))["square"],
        infer="x",
        dtypes=["float32"],
    )
    python = polyop.operator(
        "tvmffi::python(Tensor x, int f) -> Tensor", tvm_ffi.convert(write_square), infer="x"
    )
    gc.collect()
    np.testing.assert_array_equal(exported(X), X**2)
    np.testing.assert_array_equal(python(X, 3), X**2)
    assert calls == [((2, 3), 3)]
    with pytest.raises(TypeError, match="tvm_ffi.Function: takes float32, not float64"):
        exported(X.astype(float))
    with pytest.raises(TypeError, match="without a function's name"):
        polyop.prebuilt(tvm_ffi.convert(write_square), "write_square")
    on_cuda = polyop.prebuilt(tvm_ffi.convert(write_square), device="cuda")
    with pytest.raises(TypeError, match="tvm_ffi.Function: runs on cuda, and the tensors are on cpu"):
        polyop.operator("tvmffi::on_cuda(Tensor x) -> Tensor", on_cuda, infer="x")(X)


def test_no_other_object_is_the_same(path):
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")
    functions = tvm_ffi.convert(lambda x, out: None), tvm_ffi.load_module(str(path))["square"]
    first, second = (list(polyop.prebuilt(function).content()) for function in functions)
    assert first != second


@pytest.mark.parametrize("links", [True, False])
def test_where_it_is_not_installed_the_error_says_what_to_install(path, links):
    library = path
    if not links:  # the plain C convention without errors needs no symbol of tvm-ffi
        code = "int __tvm_ffi_square(void *h, void *a, int n, void *r) { return h && a && n && r; }"
        library = polyop.source(code=code, language="c", function="__tvm_ffi_square").path
    program = f"""
import importlib.util, polyop
importlib.util.find_spec = lambda name, *rest: None
try:
    polyop.prebuilt({str(library)!r}, "square")
except polyop.PolyopError as problem:
    print(problem)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert "needs libtvm_ffi.so" in done.stdout, done.stderr
    assert "it is tvm-ffi's: pip install apache-tvm-ffi" in done.stdout


def test_inspect_lists_the_functions(path, capsys):
    from polyop.cli.main import main

    assert main(["inspect", str(path)]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("tvm-ffi"))
    assert {"attributes", "scale", "square"} <= set(line.removeprefix("tvm-ffi").replace(",", " ").split())
