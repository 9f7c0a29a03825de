"""Functions of ``@triton.jit`` as kernels: run by Triton's interpreter, and compiled for a GPU without one."""

import importlib.util
import itertools
import os
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest

import polyop
from polyop.core.dtypes import dtype
from polyop.core.errors import ArgumentTypeError, ArgumentValueError, KernelError, NoKernelError, SchemaError
from polyop.kernels.triton import kernel as triton_kernel
from polyop.testing import check

triton = pytest.importorskip("triton", reason="not run: triton (a wheel of 286 MB) is not installed")
import triton.language as tl  # noqa: E402

X = np.arange(10, dtype=np.float32)
M = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)
_numbers = itertools.count()


@triton.jit
def add_kernel(x_ptr, y_ptr, result, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(result + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def twice(x):
    return x * 2


@triton.jit
def row_sums(out_ptr, x_ptr, factor, stride_xb, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * stride_xb + i, mask=i < n, other=0)
    tl.store(out_ptr + tl.program_id(0), twice(tl.sum(x, axis=0)) * factor)


@triton.jit
def double_in_place(x, x_numel, BLOCK: tl.constexpr = 4):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < x_numel) * 2, mask=i < x_numel)


def blocks(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def make(kernel=add_kernel, schema="(Tensor x, Tensor y) -> Tensor", **options):
    usual = {"dims": "n, n -> n", "grid": blocks, "constants": {"BLOCK": 4}} if kernel is add_kernel else {}
    return polyop.operator(f"triton_test::op_{next(_numbers)}{schema}", kernel, **{**usual, **options})


@pytest.fixture(autouse=True)
def no_warning():
    """Let operators run by the interpreter without its warning, which a test of its own reads."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*run by Triton's interpreter", polyop.FallbackWarning)
        yield


@pytest.fixture(scope="session")
def add():
    return make(parallel="n", gradient=lambda x, y, out, dout: (dout, dout), reference=lambda x, y: x + y)


@pytest.fixture(scope="session")
def sums():
    return make(
        row_sums,
        "(Tensor x, float factor=1.0) -> Tensor",
        dims="b n -> b",
        parallel="b",
        grid=lambda meta: (meta["b"],),
        constants={"BLOCK": lambda meta: triton.next_power_of_2(meta["n"])},
        reference=lambda x, factor: 2 * x.sum(1) * np.float32(factor),
    )


def test_numpy(add, sums):
    np.testing.assert_array_equal(add(X, X[::-1]), X + X[::-1])  # made dense before the call
    np.testing.assert_array_equal(add(X[:0], X[:0]), X[:0])
    np.testing.assert_allclose(
        sums(M, 3.0), 6 * M.sum(1), rtol=1e-6, atol=1e-6
    )  # tl.sum, twice: also interpreted


@pytest.mark.parametrize("kind", ["bool", "uint8", "int64", "float16", "bfloat16", "float64"])
def test_dtypes(kind):
    @triton.jit
    def copy(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)

    op = make(copy, "(Tensor x) -> Tensor", dims="n -> n", grid=(1,), constants={"BLOCK": 16})
    x = (X % 2).astype(dtype(kind).numpy)
    np.testing.assert_array_equal(op(x), x)


def test_written_in_place_with_numbers_of_elements():
    op = make(double_in_place, "(Tensor(a!) x) -> ()", grid=lambda meta: (triton.cdiv(meta["x_numel"], 4),))
    x = M.copy()
    op(x)
    np.testing.assert_array_equal(x, 2 * M)


def test_torch(add, sums):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.tensor(X, requires_grad=True)
    (add(x, x) * x).sum().backward()
    assert torch.equal(x.grad, 4 * x)
    x = x.detach()
    compiled = torch.compile(lambda x: add(x, x) + 1, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), 2 * x + 1)
    assert torch.equal(
        torch.vmap(add)(torch.stack([x, -x]), torch.stack([x, x])), torch.stack([2 * x, 0 * x])
    )
    assert sums(torch.empty(2, 3, device="meta")).shape == (2,)


def test_jax(add):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: (add(x, x) * x).sum()))(X), 4 * X)
    np.testing.assert_array_equal(jax.vmap(add)(np.stack([X, X]), np.stack([X, -X])), [2 * X, 0 * X])


def test_triton_launches_it_on_tensors_of_pytorch(sums):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from triton.runtime.interpreter import InterpretedFunction

    # a machine without a GPU: Triton's interpreter takes tensors of PyTorch as its launcher does
    interpreted = InterpretedFunction(double_in_place.fn)
    op = make(interpreted, "(Tensor(a!) x) -> ()", grid=lambda meta: (triton.cdiv(meta["x_numel"], 4),))
    on_gpu = op.operator.kernels[1]
    x = torch.tensor(M)
    on_gpu.launch_on(op.schema, (x,), ())
    assert (on_gpu.device, x.tolist()) == ("cuda", (2 * M).tolist())


def test_compiled_for_a_gpu_with_the_values_that_a_call_gives(sums, tmp_path, monkeypatch):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.runtime.jit import mangle_type

    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, out = torch.zeros(3, 5), torch.zeros(3)
    values, constants, meta = sums.operator.kernels[1].values(sums.schema, (x, 3.0), (out,))
    source = ASTSource(row_sums, {name: mangle_type(value) for name, value in values.items()}, constants)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    options = {"enable_fp_fusion": False}  # without it Triton warns
    code = triton.compile(source, GPUTarget("cuda", 80, 32), options).asm["ptx"]
    assert ".entry row_sums" in code
    assert constants["BLOCK"] == meta["BLOCK"] == 8
    assert values == {"x_ptr": x, "out_ptr": out, "factor": 3.0, "stride_xb": 5, "n": 5}


@pytest.mark.parametrize(("interpret", "kind"), [("1", "InterpretedFunction"), ("0", "JITFunction")])
def test_the_page_with_both_forms_of_a_function(interpret, kind):
    code = f"""
import runpy, numpy as np, warnings
warnings.simplefilter("ignore")
print(runpy.run_path({str(pathlib.Path(__file__).with_name("triton_page.py"))!r})["softmax_kernel"].__class__)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TRITON_INTERPRET": interpret},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert kind in done.stdout, done.stderr
    assert "0.2" in done.stdout


def test_autotune_and_heuristics_run_with_their_first_choice():
    configurations = [triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 16})]
    tuned = triton.autotune(configurations, key=["n"])(add_kernel)
    np.testing.assert_array_equal(make(tuned, dims="n, n -> n", grid=blocks)(X, X), 2 * X)
    chosen = triton.heuristics({"BLOCK": lambda meta: triton.next_power_of_2(meta["n"])})(add_kernel)
    np.testing.assert_array_equal(make(chosen, dims="n, n -> n", grid=blocks)(X, X), 2 * X)


@pytest.mark.slow
def test_check(sums):
    report = check(sums, M, hosts=["numpy"])
    results = {row.check: row.status for row in report.results}
    assert {results["dims, parallel"], results["values, reference"]} == {"passed"}
    assert report.ok, report


def test_a_warning_once_where_the_call_is(monkeypatch):
    monkeypatch.setattr(triton_kernel, "_warned", set())
    op = make()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        op(X, X)
        op(X, X)
    (warning,) = seen
    assert issubclass(warning.category, polyop.FallbackWarning)
    assert "are on no GPU: run by Triton's interpreter" in str(warning.message)
    assert warning.filename == __file__


def test_the_digest_is_of_the_function_its_calls_and_its_constants():
    def content(**options):
        return list(make(**options).operator.kernels[0].content())

    first = content()
    make()(X, X)  # the interpreter adds names to the module of the function
    assert content() == first
    assert content(constants={"BLOCK": 8}) != first
    assert content(grid=(4,)) != first
    options = {"schema": "(Tensor x, float factor) -> Tensor", "dims": "b n -> b", "grid": (3,)}
    assert twice.fn.__code__.co_code in content(kernel=row_sums, constants={"BLOCK": 8}, **options)


REFUSED = {
    "no grid": ({"grid": None}, ArgumentTypeError, "needs grid=: how many programs Triton runs"),
    "a grid that is a list": ({"grid": [1]}, ArgumentTypeError, "grid= must be a tuple or a function"),
    "an unknown constant": (
        {"constants": {"BLOCK": 4, "BLOK": 8}},
        ArgumentValueError,
        "constants= names BLOK, which is no parameter",
    ),
    "no constant": ({"constants": {}}, SchemaError, "the tl.constexpr parameter BLOCK has no value"),
    "a size of another name": (
        {"dims": "k, k -> k"},
        SchemaError,
        "the parameters result, n remain for the values that no name matches, but got output 0",
    ),
    "a constant that is an argument": (
        {"constants": {"BLOCK": 4, "x_ptr": 1, "n": 3}},
        SchemaError,
        "the parameters result remain for the values that no name matches, but got x, output 0",
    ),
    "a list of tensors": (
        {"schema": "(Tensor[] x, Tensor y) -> Tensor", "dims": "n*, n -> n"},
        SchemaError,
        "takes and returns no list of tensors",
    ),
    "an attribute without a parameter": (
        {"schema": "(Tensor x, Tensor y, float a) -> Tensor"},
        SchemaError,
        "the parameters result remain for the values that no name matches, but got a, output 0",
    ),
    "a Python function with a grid": (
        {"kernel": lambda x, y: x, "dims": "n, n -> n", "grid": (1,)},
        ArgumentTypeError,
        "grid= and constants= are for a function of @triton.jit",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_at_the_definition(case):
    options, error, text = REFUSED[case]
    with pytest.raises(error) as caught:
        make(**options)
    assert text in str(caught.value)
    assert __file__ in str(caught.value)  # where it is defined


def test_refused_at_a_call():
    with pytest.raises(NoKernelError, match="takes no complex64, because Triton has no such pointers"):
        make()(X.astype(np.complex64), X.astype(np.complex64))
    with pytest.raises(KernelError, match="grid= asks for a value, but got 'm', and there are BLOCK, n"):
        make(grid=lambda meta: (meta["m"],))(X, X)
    for grid, seen in ((3, "3"), ((-1,), r"\(-1,\)"), ((2, 1.0), r"\(2, 1.0\)")):
        rule = f"grid= must give a tuple of one to three integers of 0 or more, but got {seen}\n"
        with pytest.raises(
            KernelError, match=rf"triton_test::\w+: triton add_kernel \(interpreted\): {rule}"
        ):
            make(grid=lambda meta, grid=grid: grid)(X, X)
    with pytest.raises(KernelError, match="Triton's interpreter raised InterpreterError"):
        make(constants={"BLOCK": 3})(X, X)


def test_a_grid_without_triton_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ArgumentTypeError, match="and triton is not installed.*\n.*\n  pip install triton"):
        make(lambda x, y: x, dims="n, n -> n", grid=(1,))
