"""Operators that ``polyop.testing.check`` passes, and planted bugs that it finds, by the messages."""

from __future__ import annotations

import dataclasses
import itertools
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import polyop
from polyop.call.operator import Operator
from polyop.core.errors import ArgumentTypeError, HostError
from polyop.core.information.data_types import DataType
from polyop.define.custom.custom import Custom
from polyop.define.custom.reg_op import CustomRegOp
from polyop.testing import CheckError, Report, Result, check

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: its half of the checks cannot be shown"
)

FLOAT32 = polyop.dtype("float32")
_numbers = itertools.count()


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Return the library of this folder's C kernels, compiled."""
    built = tmp_path_factory.mktemp("kernels") / "kernels.so"
    source = pathlib.Path(__file__).with_name("kernels.c")
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", str(source), "-o", str(built)], check=True)
    return built


def define(kernel, schema="(Tensor x) -> Tensor", infer="x", **options):
    """Return an operator with a unique name."""
    return polyop.operator(f"check::op{next(_numbers)}{schema}", kernel, infer=infer, **options)


def is_traced(tensor):
    """Return whether a rule runs while ``torch.compile`` traces it."""
    return isinstance(tensor, torch.Tensor) and torch.compiler.is_compiling()


def native(library, name, dtypes=("float32",), **options):
    return define(polyop.prebuilt(library, name, device="cpu", dtypes=dtypes), **options)


def add_in_place(library):
    def infer(x, y):
        if x.shape != y.shape:
            raise ValueError(f"x and y have equal shapes, but got {x.shape} and {y.shape}")
        return ()

    return native(library, "add_in_place", schema="(Tensor(a!) x, Tensor y) -> ()", infer=infer)


def leaky(library):
    backward = native(library, "leaky_backward", schema="(Tensor x, Tensor g) -> Tensor")
    return native(
        library,
        "leaky",
        gradient=lambda x, out, g: (backward(x, g),),
        reference=lambda x: np.where(x > 0, x, np.float32(0.25) * x),
    )


def status(report, name, host):
    return next(r for r in report.results if (r.check, r.host) == (name, host))


# ---- good operators pass


@pytest.mark.slow
def test_a_c_kernel_for_float32_passes(library):
    report = check(leaky(library))
    assert report.ok
    assert status(report, "gradient", "torch").detail == "in float32"
    assert status(report, "guard bands", "native").status == "passed"
    second = status(report, "second order", "torch")
    assert second.status == "not run"
    assert "not differentiable" in second.detail


@pytest.mark.slow
def test_a_c_kernel_for_two_dtypes_is_differenced_in_float64(library):
    op = native(library, "cube", ("float32", "float64"), gradient=lambda x, out, g: (3 * x * x * g,))
    report = check(op, reference=lambda x: x**3)
    for name, host in (("gradient", "numpy"), ("gradient", "torch"), ("second order", "torch")):
        assert status(report, name, host) == Result(name, host, "passed", "in float64")
    assert status(report, "registered dtypes", "numpy").detail == "float32, float64"


def test_an_operator_that_writes_in_place_passes(library):
    op = add_in_place(library)

    def reference(x, y):
        x += y

    report = check(op, reference=reference)
    assert status(report, "declared writes", "numpy").status == "passed"
    assert status(report, "gradient", "numpy").status == "not run"


@pytest.mark.slow
def test_a_python_kernel_with_two_inputs_and_an_attribute_passes():
    op = define(
        lambda x, w, scale: scale * (x @ w),
        "(Tensor x, Tensor w, *, float scale=2.0) -> Tensor",
        lambda x, w, scale: polyop.Spec((x.shape[0], w.shape[1]), x.dtype),
        gradient=lambda x, w, scale, out, g: (scale * (g @ w.T), scale * (x.T @ g), None),
    )
    report = check(
        op, polyop.Spec((3, 4), FLOAT32), torch.ones(4, 2), reference=lambda x, w, scale: scale * (x @ w)
    )
    assert status(report, "0-dimensional", "numpy").status == "not run"


def test_lists_optional_tensors_and_several_outputs_pass():
    both = define(
        lambda xs, y: (xs[0] + xs[1], xs[0] * xs[1] if y is None else y.copy()),
        "(Tensor[] xs, Tensor? y=None) -> (Tensor, Tensor)",
        lambda xs, y: (xs[0], xs[0] if y is None else y),
        gradient=lambda xs, y, out, g: ((g[0] + xs[1] * g[1], g[0] + xs[0] * g[1]), None),
    )
    check(both)


def test_complex_inputs_pass():
    square = define(lambda x: x * x, gradient=lambda x, out, g: (2 * x.conj() * g,))
    report = check(square, np.array([[1 + 2j, 0.5 - 1j], [2j, 3.0]], np.complex64))
    assert status(report, "gradient", "torch").detail == "in float64"


@pytest.mark.slow
def test_a_forward_rule_is_checked():
    good = define(
        lambda x: x * x,
        gradient=lambda x, out, g: (2 * x * g,),
        jvp=lambda x, out, tangents: 2 * x * tangents[0],
    )
    assert status(check(good), "forward mode", "torch").status == "passed"
    wrong = define(
        lambda x: x * x, gradient=lambda x, out, g: (2 * x * g,), jvp=lambda x, out, t: 3 * x * t[0]
    )
    with pytest.raises(CheckError, match="forward mode must match finite differences in float64"):
        check(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float64", "complex128"])
def test_other_dtypes_pass(name):
    op = define(
        lambda x: x * x, gradient=lambda x, out, g: (2 * g * (x.conj() if name == "complex128" else x),)
    )
    for seed in range(3):
        check(op, polyop.Spec((3, 4), polyop.dtype(name)), seed=seed)


def test_dtypes_too_coarse_for_differences_are_not_judged():
    op = define(lambda x: 1 / 0 if x.dtype == np.float64 else x.copy(), gradient=lambda x, out, g: (g,))
    report = check(op, polyop.Spec((3, 4), polyop.dtype("float8_e4m3fn")), hosts=["numpy"])
    result = status(report, "gradient", "numpy")
    assert (result.status, result.detail) == (
        "not run",
        "float8_e4m3fn is too coarse for difference quotients",
    )


def test_dtypes_of_the_information_are_run():
    info = (
        CustomRegOp("plus_one")
        .input(0, "x")
        .output(0, "y")
        .dtype_format(DataType.F32_Default, DataType.F32_Default)
        .dtype_format(DataType.I32_Default, DataType.I32_Default)
        .target("CPU")
        .get_op_info()
    )
    op = Custom(lambda x: x + x.dtype.type(1), lambda x: x, lambda x: x, "pyfunc", reg_info=info)
    assert status(check(op), "registered dtypes", "numpy").detail == "float32, int32"


def test_an_operator_without_gradient_says_why_those_checks_did_not_run():
    report = check(define(lambda x: x + 1), hosts=["numpy", "torch", "jax"])
    gradients = [r for r in report.results if r.check.startswith(("gradient", "second"))]
    assert gradients
    assert {(r.status, r.detail) for r in gradients if r.host in ("numpy", "torch", "jax")} == {
        ("not run", "no gradient rule")
    }


# ---- bugs; opcheck misses wrong gradients, specialised dimensions, randomness and ignored strides


def opcheck_passes(op, *args):
    results = torch.library.opcheck(op.torch, args, raise_exception=False)
    return set(results.values()) == {"SUCCESS"}


def test_wrong_gradient_value():
    op = define(lambda x: x * x, gradient=lambda x, out, g: (2.1 * x * g,))
    assert opcheck_passes(op, torch.ones(3, 4, requires_grad=True))
    with pytest.raises(
        CheckError, match=r"gradient \(numpy\): x: its gradient must match finite differences in float64"
    ):
        check(op)


def noisy_kernel():
    noise = np.random.default_rng(0)
    return lambda x: x + noise.random(x.shape).astype(x.dtype)


def differs_for_copies(x):
    return x + (x.base is not None and not x.base.flags.owndata)


def gradient_of_dense_memory(x, out, g):
    """Reads the memory of a torch gradient as if it were dense."""
    if isinstance(x, torch.Tensor):
        g = torch.as_strided(g, g.shape, torch.empty(g.shape).stride()) if 0 not in g.stride() else g
    return (g * 2,)


def longer_if_symbolic(shape):
    return (shape[0] + (not isinstance(shape[0], int)), *shape[1:])


BUGS = {  # name -> (a function that defines the operator, message)
    "infer rule specialises a dimension": (
        lambda: define(lambda x: x + 1, infer=lambda x: polyop.Spec((3, *x.shape[1:]), x.dtype)),
        r"the infer rule gives float32\[3, 7\], but got float32\[5, 7\] from pyfunc",
    ),
    "infer rule turns a symbol into a number": (
        lambda: define(lambda x: x + 1, infer=lambda x: polyop.Spec((int(x.shape[0]), x.shape[1]), x.dtype)),
        r"must not fix dimension 0 of x: .* got the number 5",
    ),
    "infer rule gives symbols another size": (
        lambda: define(lambda x: x + 1, infer=lambda x: polyop.Spec(longer_if_symbolic(x.shape), x.dtype)),
        r"output 0: the infer rule gives float32\[5, 7\], but got \(6, 7\) under fake tensors",
    ),
    "wrong inferred dtype": (
        lambda: define(lambda x: x.astype(np.float64)),
        r"the infer rule gives float32\[3, 4\], but got float64\[3, 4\]",
    ),
    "wrong number of outputs": (
        lambda: define(lambda x: (x, x)),
        "the infer rule gives 1 outputs, but got 2 from pyfunc",
    ),
    "kernel is not deterministic": (
        lambda: define(noisy_kernel()),
        r"repeated runs \(numpy\): .* from run 2 on equal inputs",
    ),
    "declared write never happens": (
        lambda: define(lambda x: None, "(Tensor(a!) x) -> ()", None),
        "x: the schema says that it is written, but got no change",
    ),
    "hosts disagree": (
        lambda: define(differs_for_copies),
        r"values, across hosts \(torch\): output 0.*: NumPy gives .* from PyTorch",
    ),
    "gradient rule returns too many": (
        lambda: define(lambda x: x * 2, gradient=lambda x, out, g: (g, g)),
        r"it raised GradientError: .* must return a tuple of 1, .* but got 2",
    ),
    "gradient has a wrong shape": (
        lambda: define(lambda x: x * 2, gradient=lambda x, out, g: (g[0],)),
        r"must have the input's shape \(3, 4\), but got \(4,\)",
    ),
    "gradient rule is another one in a compiled program": (
        lambda: define(lambda x: x * 2, gradient=lambda x, out, g: (g * (3 if is_traced(g) else 2),)),
        r"compiled, gradient \(torch\): output 0.* from the compiled gradient of x",
    ),
    "gradient rule ignores strides": (
        lambda: define(lambda x: x * 2, gradient=gradient_of_dense_memory),
        r"gradient, layouts \(torch\): gradient of x.* dense data of the same values",
    ),
}


@pytest.mark.slow(1)
@pytest.mark.parametrize(("make", "message"), BUGS.values(), ids=BUGS)
def test_a_bug_is_found(make, message):
    with pytest.raises(CheckError, match=message):
        check(make())


def test_infer_rule_of_a_native_kernel_that_specialises_a_dimension(library):
    op = native(library, "leaky", infer=lambda x: polyop.Spec((3, 4), x.dtype))
    with pytest.raises(
        CheckError, match=r"output 0: the kernel must stay within its 48 bytes, .* x float32\[5, 7\]"
    ):
        check(op)


class IgnoresStrides(polyop.BoundOperator):
    """Reads the memory of its inputs as if it were dense."""

    def _slow(self, *args, **kwargs):
        def misread(x):
            if isinstance(x, torch.Tensor):
                return torch.as_strided(x, x.shape, torch.empty(x.shape).stride())
            strides = np.empty(x.shape, x.dtype).strides
            base = x if x.base is None else np.asarray(x.base).reshape(-1)
            return np.lib.stride_tricks.as_strided(base, x.shape, strides)

        return super()._slow(*map(misread, args), **kwargs)


def test_kernel_that_ignores_strides():
    plain = define(lambda x: x + 1)
    schema = dataclasses.replace(plain.schema, name=f"{plain.schema.name}_strided")
    op = IgnoresStrides(dataclasses.replace(plain.operator, schema=schema))
    report = check(op, raise_on_failure=False)
    for host in ("numpy", "torch"):
        assert status(report, "layouts", host).status == "failed"
        assert "from x with every second element" in status(report, "layouts", host).detail


# ---- memory


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "scratches_input",
            r"x: an input must not be written unless the schema says Tensor\(a!\) x, but got a write",
        ),
        (
            "one_too_many",
            r"output 0: the kernel must stay within its 48 bytes, but got a write 48 bytes from its start",
        ),
        ("writes_before_input", r"x: the kernel must stay within its 48 bytes, but got a write -4 bytes"),
        (
            "forgets_last",
            r"must write every element of float32\[3, 4\], as inferred, but got 1 of 12 unwritten",
        ),
        (
            "reads_past",
            r"must depend on the values of the inputs alone, but got other results when the bytes around",
        ),
        ("counts_calls", r"inputs alone .* must depend on the values of the inputs alone"),
    ],
)
def test_a_bug_of_a_native_kernel_is_found(library, name, message):
    with pytest.raises(CheckError, match=message):
        check(native(library, name))


def test_a_kernel_that_writes_astray_is_not_run_in_ordinary_memory(library):
    report = check(native(library, "one_too_many"), raise_on_failure=False)
    assert [r.check for r in report.failed] == ["guard bands"]
    assert status(report, "layouts", "numpy").detail == "the kernel failed in guarded memory"


def test_python_kernel_that_writes_its_input():
    def kernel(x):
        x += 1
        return x.copy()

    report = check(define(kernel), raise_on_failure=False)
    assert (
        "must not be written unless the schema says Tensor(a!)"
        in status(report, "inputs unchanged", "numpy").detail
    )


# ---- specs, values, gradients


def test_wrong_value_against_the_reference(library):
    rule = r"values, reference \(numpy\): output 0\[.*\]: the reference gives .* of 12 elements differ"
    with pytest.raises(CheckError, match=rule):
        check(native(library, "leaky"), reference=lambda x: np.where(x > 0, x, np.float32(0.2) * x))


def test_wrong_second_derivative():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, g):
            ctx.save_for_backward(x, g)
            return 2 * x * g

        @staticmethod
        def backward(ctx, grad):
            x, g = ctx.saved_tensors
            return 3 * g * grad, 2 * x * grad

    op = define(lambda x: x * x, gradient=lambda x, out, g: (Wrong.apply(x, g),))
    with pytest.raises(CheckError, match=r"second order \(torch\): x: its second derivative must match"):
        check(op, hosts=["torch"])


# ---- the report and the arguments


def test_the_error_lists_each_failure_and_where_the_operator_was_defined():
    op = define(lambda x: x * x, gradient=lambda x, out, g: (x * g,))
    with pytest.raises(CheckError) as caught:
        check(op)
    text = str(caught.value)
    assert isinstance(caught.value, AssertionError)
    assert re.search(rf"^{op.name}: \d+ checks failed$", text, re.MULTILINE)
    assert f"defined at {__file__}" in text
    assert len(caught.value.report.failed) == int(re.search(r"(\d+) checks failed", text)[1])


def test_the_report_is_a_table():
    report = Report(
        "demo::f", "f.py:1", (Result("a", "numpy", "failed", "one\ntwo"), Result("bb", "torch", "passed"))
    )
    assert str(report).splitlines() == [
        "demo::f, defined at f.py:1",
        "check  host   result  detail",
        "a      numpy  failed  one",
        "                      two",
        "bb     torch  passed",
        "1 passed, 1 failed, 0 not run",
    ]


def test_the_seed_decides_the_values():
    samples = []
    op = define(lambda x: samples.append(x.copy()) or x + 0)
    check(op, hosts=["numpy"], seed=1)
    first = samples[0]
    samples.clear()
    check(op, hosts=["numpy"], seed=1)
    assert np.array_equal(samples[0], first)
    samples.clear()
    check(op, hosts=["numpy"], seed=2)
    assert not np.array_equal(samples[0], first)


def test_samples_are_not_changed(library):
    x = torch.ones(3, 4)
    check(add_in_place(library), x, np.ones((3, 4), np.float32))
    assert bool((x == 1).all())


def test_a_required_attribute_must_be_given():
    op = define(lambda x, k: x * k, "(Tensor x, float k) -> Tensor")
    with pytest.raises(
        ArgumentTypeError, match=r"needs a value for its attribute 'k', as in check\(op, k=...\)"
    ):
        check(op)
    assert check(op, k=2.0).ok


def test_unknown_host_and_sample_are_refused():
    op = define(lambda x: x + 0)
    assert isinstance(op.operator, Operator)
    with pytest.raises(
        HostError, match="must be among numpy, torch, jax, mindspore, paddle, pyopencl, but got 'tensorflow'"
    ):
        check(op, hosts=["tensorflow"])
    assert check(op, hosts="numpy").ok  # a name alone
    with pytest.raises(ArgumentTypeError, match="must be a tensor, an array or a Spec, but got str"):
        check(op, "sample")


def test_torch_checks_do_not_run_without_torch(tmp_path):
    # a process in which PyTorch cannot be found
    code = """
import sys
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "torch" else real(name, package)
import polyop
from polyop.testing import check
op = polyop.operator("check::hidden(Tensor x) -> Tensor", lambda x: x + 1, infer="x")
report = check(op, hosts=["numpy", "torch", "jax"])  # Paddle imports PyTorch itself
assert "torch" not in sys.modules
print({(r.status, r.detail) for r in report.results if r.host == "torch"})
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip() == "{('not run', 'PyTorch is not installed')}"


def test_a_kernel_that_crashes_is_reported_and_the_process_lives():
    code = "int bad(int n, void **p, int *d, void *s, void *t, void *a, void *b) { *(volatile int *)8 = n; return 0; }"
    op = define(polyop.source(code=code, language="c", function="bad"))
    report = check(op, hosts=["numpy"], raise_on_failure=False)
    assert "the kernel must not crash, but got SIGSEGV when called with (float32[3, 4])" in str(report)
    assert status(report, "guard bands", "native").status == "not run"
