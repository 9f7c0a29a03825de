"""Libraries that register their operators by TORCH_LIBRARY: loaded through PyTorch, called from every host."""

import contextlib
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import polyop
from polyop.binary.elsewhere import Opened
from polyop.core.errors import (
    ArgumentValueError,
    GradientError,
    InferError,
    KernelError,
    LibraryError,
    SchemaError,
    UnsupportedError,
)
from polyop.core.origin import caller
from polyop.define.library import first_load

SOURCES = pathlib.Path(__file__).parents[2] / "sources"
FILES = (SOURCES / "torch_muladd.cpp", SOURCES / "torch_halved.cpp")

a, b = np.array([1.0, 2.0, 3.0]), np.array([2.0, -1.0, 0.5])


@pytest.fixture(scope="session")
def lib():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    library = polyop.load_library(FILES)

    def backward(context, grad):
        x, y = context.saved_tensors
        return grad * y, grad * x, None

    torch.library.register_autograd(
        "torchlib::muladd",
        backward,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs[:2]),
    )
    return library


def test_its_operators_are_those_of_pytorch(lib, torch):
    assert [operator.name for operator in lib] == [
        "torchlib::halved",
        "torchlib::muladd",
        "torchlib::shift",
        "torchlib::shift.by",
        "torchlib_more::shift",
    ]
    assert lib.muladd is polyop.aten("torchlib::muladd")
    assert lib["torchlib::shift.by"].torch is torch.ops.torchlib.shift.by
    assert polyop.load_library(FILES) is lib


def test_values_and_gradients_in_each_host(lib, torch):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    expected = a * b + 0.5
    np.testing.assert_allclose(lib.muladd(a, b, 0.5), expected)
    x, y = (torch.tensor(v, requires_grad=True) for v in (a, b))
    lib.muladd(x, y, 0.5).sum().backward()
    np.testing.assert_allclose((x.grad, y.grad), (b, a))
    step = torch.compile(lambda x: lib.muladd(x, x, 0.5) * 2, fullgraph=True, backend="aot_eager")
    np.testing.assert_allclose(step(torch.tensor(a)), 2 * (a * a + 0.5))
    f = jax.jit(lambda x, y: lib.muladd(x, y, 0.5))
    p, q = np.float32(a), np.float32(b)
    np.testing.assert_allclose(f(p, q), expected)
    np.testing.assert_allclose(jax.grad(lambda x, y: f(x, y).sum(), (0, 1))(p, q), (b, a))
    np.testing.assert_allclose(lib.halved(a), a / 2)  # of the other file


def test_an_operator_that_no_host_can_call_does_not_stop_the_others(lib):
    with pytest.raises(UnsupportedError, match=r"torchlib::wait: .*Stream"):
        lib["torchlib::wait"]
    with pytest.raises(AttributeError, match=r"torchlib::wait: .*Stream"):
        _ = lib.wait
    assert not hasattr(lib, "wait")


def test_an_error_of_the_operator(lib):
    with pytest.raises(
        KernelError, match=r"torchlib::muladd: PyTorch raised RuntimeError: muladd: the shapes differ"
    ):
        lib.muladd(a, b[:2], 0.5)


@pytest.mark.parametrize("option", ["namespaces", "docs"])
def test_options_that_pytorch_has_decided(lib, option):
    with pytest.raises(ArgumentValueError, match=rf"registers its operators in PyTorch, .* no {option}="):
        polyop.load_library(lib.path, **{option: {}})


def test_a_second_version_is_refused_before_pytorch_ends_the_process(lib, tmp_path):
    changed = tmp_path / "changed.so"
    changed.write_bytes(lib.path.read_bytes() + b" ")
    rule = r"namespace torchlib, and PyTorch takes one TORCH_LIBRARY for it, but got a second one, after .*muladd\.cpp:\d+"
    with pytest.raises(LibraryError, match=rule) as caught:
        polyop.load_library(changed)
    way_out = (
        'load a new version in a new process, or call the operators here: polyop.aten("torchlib::halved")'
    )
    assert way_out in str(caught.value)


def test_a_library_that_another_module_has_loaded(lib):
    program = f"""
import torch, polyop
torch.ops.load_library({str(lib.path)!r})
library = polyop.load_library({str(lib.path)!r})
print(len(list(library)), library.halved(torch.ones(1)).tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.stdout, done.returncode) == ("5 [0.5]\n", 0), done.stderr[-2000:]


def test_kernels_without_a_schema(torch, tmp_path):
    source = tmp_path / "kernels.cpp"
    source.write_text("""
#include <ATen/ATen.h>
#include <torch/library.h>
TORCH_LIBRARY_IMPL(nobody_defines, CPU, m) { m.impl("f", [](const at::Tensor& a) { return a + 1; }); }
""")
    with pytest.raises(
        LibraryError, match=r"kernels\.so: registers no operator with a schema\n(.*\n)?.*polyop\.aten"
    ):
        polyop.load_library(source)


@pytest.fixture(scope="session")
def older():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    return polyop.load_library(SOURCES / "torch_registered.cpp")


def test_operators_of_register_operators_and_their_shapes(older):
    """Without an infer rule JAX gets the reason; with one it compiles the call."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    assert [operator.name for operator in older] == ["torchlib_older::doubled"]
    expected = np.stack([2 * a, 2 * a])
    np.testing.assert_array_equal(older.doubled(a, 2), expected)
    with jax.enable_x64(True):
        call = jax.jit(lambda x: older.doubled(x, 2))
        way_out = r"shapes of its outputs without running it\n  give them by .*infer=\{'doubled': rule\}"
        with pytest.raises(InferError, match=way_out):
            call(a)
        with pytest.raises(
            ArgumentValueError, match=r"infer: must name its operators, but got halved\n(.*\n)?.*doubled"
        ):
            polyop.load_library(older.path, infer={"halved": "_0"})
        rule = {"doubled": lambda x, n: polyop.Spec((n, *x.shape), x.dtype)}
        assert polyop.load_library(older.path, infer=rule) is older
        np.testing.assert_array_equal(jax.jit(lambda x: older.doubled(x, 2))(a), expected)


def test_a_second_version_of_register_operators(older, tmp_path):
    changed = tmp_path / "changed.so"
    changed.write_bytes(older.path.read_bytes() + b" ")
    rule = r"changed\.so: registers torchlib_older::doubled, and PyTorch takes one torch::RegisterOperators for it"
    with pytest.raises(LibraryError, match=rule):
        polyop.load_library(changed)


@pytest.mark.slow
def test_register_operators_that_another_module_has_loaded(older):
    program = f"""
import torch, polyop
torch.ops.load_library({str(older.path)!r})
print(polyop.load_library({str(older.path)!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout == f"<polyop library {older.path.name}: torchlib_older::doubled>\n", done.stderr[
        -2000:
    ]


def test_infer_is_for_operators_of_pytorch(tmp_path):
    source = tmp_path / "own.cpp"
    source.write_text("""
#include <polyop/library.h>
POLYOP_LIBRARY(own_shapes, m) { m.def("f(Tensor x) -> Tensor", +[](const polyop::Tensor& x) { return x; }); }
""")
    with pytest.raises(ArgumentValueError, match=r"own\.so: takes infer= only for a library that registers"):
        polyop.load_library(source, infer={"f": "x"})


def test_rules_of_a_caller_contradict_each_other_or_change(torch, tmp_path):
    source = tmp_path / "rules.cpp"
    source.write_text("""
#include <torch/library.h>
static at::Tensor wide(const at::Tensor& x) { return x.to(at::kDouble); }
TORCH_LIBRARY(torchlib_rules, m) { m.def("wide(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(torchlib_rules, CPU, m) { m.impl("wide", wide); }
""")
    library = polyop.load_library(source)
    wide, shape = library.wide, polyop.Spec((3,), "float32")

    def inferred():
        return wide.operator.infer((shape,))[0].dtype.name

    polyop.load_library(source, dims={"wide": "n -> n"})
    assert inferred() == "float32"
    with pytest.raises(SchemaError, match=r"torchlib_rules::wide: has a rule in infer= and one in dims="):
        polyop.load_library(source, infer={"wide": "x"}, dims={"torchlib_rules::wide": "n -> n"})
    with pytest.raises(ArgumentValueError, match="jvp: must name its operators"):
        polyop.load_library(source, dims={"wide": {"dims": "n -> n", "infer": "float64"}}, jvp={"no": None})
    assert inferred() == "float32"  # what was wrong has changed nothing
    polyop.load_library(source, dims={"wide": {"dims": "n -> n", "infer": "float64"}})
    assert inferred() == "float64"


def test_an_operator_without_a_gradient_says_so(torch):
    """Its function calls PyTorch's operators, so PyTorch would return a gradient, with a warning."""
    with torch.library._scoped_library("torchlib_plain", "DEF") as library:
        library.define("doubled(Tensor a) -> Tensor")
        library.impl("doubled", lambda a: a * 2, "CPU")
        operator = polyop.aten("torchlib_plain::doubled")
        np.testing.assert_array_equal(operator(a), 2 * a)
        rule = r"torchlib_plain::doubled: has no gradient: its author registers none in PyTorch\n.*register_autograd"
        with pytest.raises(GradientError, match=rule):
            operator.vjp(a)[1](a)


DISAGREES = """
#include <ATen/ATen.h>
#include <torch/library.h>
std::vector<at::Tensor> both(const at::Tensor& x) { return {x, x}; }
TORCH_LIBRARY(torchlib_both, m) { m.def("both(Tensor x) -> (Tensor, Tensor)", &both); }
"""


def test_a_function_that_contradicts_its_schema_is_an_error(tmp_path):
    """PyTorch ends the process that loads it, so another one does first."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    source = tmp_path / "both.cpp"
    source.write_text(DISAGREES)
    program = "import polyop, sys\ntry: polyop.load_library(sys.argv[1])\nexcept polyop.PolyopError as e: print(e)\n"
    done = subprocess.run(
        [sys.executable, "-c", program, str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (
        "torchlib_both::both: the schema and the C++ function disagree: The number of returns" in done.stdout
    )
    assert f"schema: torchlib_both::both(Tensor x) -> (Tensor, Tensor)  ({source}:5)" in done.stdout
    assert "std::vector<at::Tensor> is Tensor[]; several results are a std::tuple" in done.stdout


@pytest.mark.parametrize(
    ("code", "errors", "message"),
    [
        (-6, "what():  no words\nframe #0", r"lib\.so: cannot be loaded: .* \(SIGABRT\), but got no words"),
        (-11, "", r"lib\.so: cannot be loaded: PyTorch ends the process \(SIGSEGV\)"),
        (1, "ImportError", None),  # the load in this process has the error, so it is tried again
        (0, "", None),
    ],
)
def test_a_library_is_tried_until_it_can_be_loaded(tmp_path, monkeypatch, code, errors, message):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))
    tries = []
    monkeypatch.setattr(first_load, "run_elsewhere", lambda *_: tries.append(1) or Opened("", errors, code))
    for _ in range(2):
        with pytest.raises(LibraryError, match=message) if message else contextlib.nullcontext():
            first_load.try_elsewhere(tmp_path / "lib.so", "0123abcd", caller())
    assert len(tries) == (2 if code else 1)


VMAPPED = f"""
import numpy as np, torch, jax, polyop, sys, warnings
warnings.simplefilter("always")
dims = {{"muladd": {{"dims": "n, n -> n", "parallel": "n"}}, "torchlib::halved": "... -> ..."}}
library = polyop.load_library({tuple(map(str, FILES))!r}, dims=dims if sys.argv[1] == "dims" else None)
x = np.arange(12.0, dtype=np.float32).reshape(4, 3)
t = torch.from_numpy(x)
for _ in range(3):
    square = lambda a: library.muladd(a, a, 0.5)
    np.testing.assert_array_equal(jax.vmap(square)(x), x * x + 0.5)
    np.testing.assert_array_equal(jax.vmap(lambda a, b: library.muladd(a, b, 0.5), (1, None))(x, x[:, 0]),
                                  (x * x[:, :1] + 0.5).T)
    np.testing.assert_array_equal(jax.jit(jax.vmap(library.halved))(x), x / 2)
    np.testing.assert_array_equal(torch.vmap(square)(t), x * x + 0.5)
    np.testing.assert_array_equal(torch.vmap(torch.vmap(square))(t.reshape(2, 2, 3)).reshape(4, 3), x * x + 0.5)
    np.testing.assert_array_equal(torch.vmap(library.halved, 1)(t), x.T / 2)
    compiled = torch.compile(torch.vmap(library["torchlib::shift"]), fullgraph=True, backend="aot_eager")
    np.testing.assert_array_equal(compiled(t), x + 1)
"""


@pytest.mark.slow
def test_vmap_by_dims_is_one_call_and_without_them_a_loop_that_is_said_once(lib):
    for how, loops in (("dims", 1), ("none", 3)):  # shift has no dims= in either
        done = subprocess.run(
            [sys.executable, "-c", VMAPPED, how], capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert "performance drop" not in done.stderr
        said = "vmap runs one call per sample; give dims= where it is loaded to do better"
        assert done.stderr.count(said) == loops, done.stderr[-2000:]
