"""PyTorch and Ascend sources as in their documentation: built as a module, and run in rehearsal."""

import ctypes
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

from polyop.build import build
from polyop.build.sources import Source
from polyop.core.errors import BuildError
from polyop.providers.aclnn import exec_npu, launch, registry

SOURCES = pathlib.Path(__file__).parents[1] / "sources"

# the project's own copy of the header, which includes headers that are not installed
HELPER = """
#ifndef PYTORCH_NPU_HELPER_HPP_
#define PYTORCH_NPU_HELPER_HPP_
#include <acl/acl_base.h>
#include <torch_npu/csrc/framework/utils/OpAdapter.h>
#endif
"""


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    """The folder of a project of two sources, in which ``polyop build`` has made a module of them."""
    folder = tmp_path_factory.mktemp("npu")
    shutil.copytree(SOURCES / "npu_project", folder / "csrc")
    (folder / "csrc" / "pytorch_npu_helper.hpp").write_text(HELPER)
    command = [sys.executable, "-m", "polyop", "build", "csrc/kernels.cpp", "csrc/register.cpp"]
    done = subprocess.run(
        [*command, "-o", "rehearsed_lib.so"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "rehearsed_lib.so\n"
    return folder


@pytest.fixture
def run(project):
    """Run a program in the module's folder, in rehearsal by default; return its output."""

    def run(program, rehearse="rehearse", **variables):
        environment = {n: v for n, v in os.environ.items() if not n.startswith(("ASCEND", "POLYOP_ASCEND"))}
        environment.update(variables, **({} if rehearse is None else {"POLYOP_ASCEND": rehearse}))
        head = "import torch\nimport rehearsed_lib\nfrom rehearsed_lib import *\ndef refused(f, *a):\n"
        head += "  try: f(*a)\n  except Exception as e: print(type(e).__name__, e)\n  else: raise SystemExit('no error')\n"
        command = [sys.executable, "-c", head + textwrap.dedent(program)]
        done = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        run.stderr = done.stderr
        return done.stdout

    return run


@pytest.mark.slow
def test_operators_with_gradients_on_the_cpu(run):
    output = run("""
        x, y = torch.tensor([1.0, 2, 3], requires_grad=True), torch.tensor([4.0, 5, 6], requires_grad=True)
        for operator in (product, torch.ops.rehearsed.product):
            x.grad = y.grad = None
            z = operator(x, y, 2)
            z.backward(torch.tensor([1.0, 10, 100]))
            print(z.tolist(), x.grad.tolist(), y.grad.tolist())
        shape = torch.ops.rehearsed.product(torch.empty(2, 3, device="meta"), torch.empty(2, 3, device="meta"))
        print(shape.device, tuple(shape.shape))
        print(torch.ops.rehearsed.older(torch.ones(2)).tolist())
        with torch.inference_mode():
            print(torch.ops.rehearsed.older(torch.ones(2)).tolist())
    """)
    assert output.splitlines() == [
        *["[8.0, 20.0, 36.0] [8.0, 100.0, 1200.0] [2.0, 40.0, 600.0]"] * 2,
        "meta (2, 3)",
        "[99.0, 99.0]",
        "[-1.0, -1.0]",
    ]
    assert re.search(r"<string>:\d+: FallbackWarning: POLYOP_ASCEND=rehearse", run.stderr)
    assert run.stderr.count("POLYOP_ASCEND=rehearse: what is meant for Ascend runs on the CPU") == 1


@pytest.mark.slow
def test_functions_compile_with_gradients_as_eager_ones(run):
    output = run("""
        for operator in (product, torch.ops.rehearsed.product):
            x, y = torch.tensor([1.0, 2, 3], requires_grad=True), torch.tensor([4.0, 5, 6], requires_grad=True)
            step = torch.compile(lambda x, y: operator(x, y, 2) * 1, backend="aot_eager", fullgraph=True)
            z = step(x, y)
            z.backward(torch.tensor([1.0, 10, 100]))
            print(z.tolist(), x.grad.tolist(), y.grad.tolist())
    """)
    assert output.splitlines() == ["[8.0, 20.0, 36.0] [8.0, 100.0, 1200.0] [2.0, 40.0, 600.0]"] * 2


def test_functions_that_cannot_be_traced(run):
    """One returns no tensor, so the graph ends before it; the other says what to do."""
    output = run("""
        x, out = torch.tensor([1.0, 2, 3]), torch.zeros(3)
        def step(x, out):
            add(x, x, 1, out)
            return out * 2
        print(torch.compile(step, backend="eager")(x, out).tolist())
        refused(torch.compile(negated, backend="eager"), x)
        alone = torch.compiler.disable(negated)
        print(torch.compile(lambda x: alone(x) * 1, backend="eager")(x).tolist())
    """)
    assert "[4.0, 8.0, 12.0]" in output
    assert "aclnnNeg: got a tensor without data, because torch.compile traces the function" in output
    assert output.splitlines()[-1] == "[-1.0, -2.0, -3.0]"


@pytest.mark.slow
def test_every_kind_of_argument(run):
    output = run("""
        base = torch.zeros(4, 6)
        x = torch.arange(6.0).reshape(2, 3)
        add(x, x.flip(0).T.contiguous().T, 2, base[1::2, ::2])
        print(base.tolist())
        out = torch.zeros(2, 3)
        add_custom(x, torch.ones(1).expand(2, 3), out)
        print(out.tolist())
        half = torch.zeros(2, 3, dtype=torch.bfloat16)
        add(x.bfloat16(), x.bfloat16(), 0.5, half)
        print(half.tolist())
        whole = torch.zeros(3, dtype=torch.complex64)
        add(torch.ones(3, dtype=torch.complex64), torch.full((3,), 1j), 2, whole)
        print(whole.tolist())
        add(torch.zeros(0, 3), torch.zeros(0, 3), 1, torch.zeros(0, 3))
        total = torch.zeros(1, 3, dtype=torch.float64)
        sum(x, [0], total)
        print(total.tolist())
        clamp(x, 1.5, None, out)
        print(out.tolist())
        clamp(x, None, 2.5, out)
        print(out.tolist())
        norm(x * 0 + torch.tensor([1.0, 3.0, 2.0]), torch.tensor([2.0, 2.0, 0.0]), out)
        print([round(v, 4) for v in out[0].tolist()])
        parts = [torch.zeros(1, 3), torch.zeros(1, 3)]
        split(x, [1, 1], parts)
        print([p.tolist() for p in parts])
    """)
    assert output.splitlines() == [
        str([[0.0] * 6, [6.0, 0.0, 9.0, 0.0, 12.0, 0.0], [0.0] * 6, [3.0, 0.0, 6.0, 0.0, 9.0, 0.0]]),
        "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]",
        "[[0.0, 1.5, 3.0], [4.5, 6.0, 7.5]]",
        "[(1+2j), (1+2j), (1+2j)]",
        "[[3.0, 5.0, 7.0]]",
        "[[1.5, 1.5, 2.0], [3.0, 4.0, 5.0]]",
        "[[0.0, 1.0, 2.0], [2.5, 2.5, 2.5]]",
        "[-2.4495, 2.4495, 0.0]",
        "[[[0.0, 1.0, 2.0]], [[3.0, 4.0, 5.0]]]",
    ]


MIX = """
    x = torch.arange(6.0).reshape(2, 3)
    def mixed(bias, factor, text):
        out = torch.zeros(2, 3)
        mix([x, x + 1], bias, factor, [1, -4], [True, False, True], [0.25, 0.5], text, out)
        return out.tolist()
    print(mixed(None, 0.5, ""), mixed(torch.full((2, 3), 10.0), 2, "half"))
"""
FIRST = [[0.5 * (2 * x + 1) - 3 + 2 + 0.75 + 7 + 0.125 for x in row] for row in ((0, 1, 2), (3, 4, 5))]
SECOND = [
    [0.5 * (2 * (2 * x + 1) + 10 - 3 + 2 + 0.75 + 7 + 0.125) for x in row] for row in ((0, 1, 2), (3, 4, 5))
]


@pytest.mark.slow
def test_an_authors_own_operator(run):
    register = """
    import polyop
    def function(xs, bias, factor, shift, flags, weights, mode, eps, negate, text, dtype, cube):
        assert (negate, str(dtype), cube) == (False, "float32", 3), (negate, dtype, cube)
        rest = sum(shift) + sum(flags) + sum(weights) + mode + eps
        result = factor * sum(xs) + (0 if bias is None else bias) + rest
        return result * (0.5 if text == "half" else 1)
    from builtins import sum
    polyop.register_aclnn(
        "aclnnMix(Tensor[] xs, Tensor? bias, Scalar factor, int[] shift, bool[] flags, float[] weights, int mode,"
        " float eps, bool negate, str text, ScalarType dtype, Tensor(a!) out, int cubeMathType) -> ()", function)
    polyop.register_aclnn("aclnnAddCustom(Tensor x, Tensor y, Tensor(a!) z) -> ()", lambda x, y: x + y + 1000)
    out = torch.zeros(1)
    add_custom(out, out, out)
    print(out.tolist())
    """
    output = run(textwrap.dedent(register) + textwrap.dedent(MIX))
    assert output.splitlines() == ["[1000.0]", f"{FIRST} {SECOND}"]


@pytest.mark.slow
def test_errors_of_calls(run):
    output = run("""
        x = torch.ones(2, 3)
        refused(nobody, x, x)
        refused(add, x, torch.ones(4), 1, x)
        refused(add_custom, x, x, torch.empty(2, 3, device="meta"))
        refused(add_custom, x, x.to_sparse(), x)
        refused(add, torch.ones(2, dtype=torch.complex64).conj(), x, 1, x)
        refused(add, torch.ones(2, dtype=torch.complex32), x, 1, x)
        refused(add, x, x, 2j, x)
        refused(mix, [x], None, 1, [], [], [], "", x)
    """)
    assert "RuntimeError aclnnLayerNorn: aclnn operators need CANN" in output
    assert "the nearest names are aclnnLayerNorm" in output
    assert "register it: polyop.register_aclnn(prototype, function)" in output
    assert "RuntimeError aclnnAdd: cannot take these arguments" in output
    assert "RuntimeError aclnnAddCustom: takes tensors of the CPU in rehearsal, but got one on meta" in output
    assert "RuntimeError aclnnAddCustom: needs dense tensors, but got one of layout Sparse" in output
    assert "RuntimeError aclnnAdd: got a tensor that is conjugated or negated when read" in output
    assert "RuntimeError dtype ComplexHalf: has no counterpart in rehearsal" in output
    assert "RuntimeError aclnnAdd: argument alpha: must be Scalar, but got 2j (complex)" in output
    assert "RuntimeError aclnnMix: aclnn operators need CANN" in output
    assert "Exception raised from" not in output


@pytest.mark.slow
def test_neither_cann_nor_rehearsal(run):
    program = "x = torch.ones(2)\nrefused(add, x, x, 1, x)\nrefused(torch.ops.rehearsed.product, x, x)"
    output = run(program, None)
    assert (
        "RuntimeError aclnnAdd: CANN is not installed: libopapi.so and libnnopbase.so cannot be opened"
        in output
    )
    assert "set ASCEND_HOME_PATH, or rehearse on the CPU: POLYOP_ASCEND=rehearse" in output
    assert (
        "NotImplementedError rehearsed::product: has kernels for Ascend's NPU, and none for the CPU, but got tensors of"
        in output
    )
    assert "POLYOP_ASCEND: must be 'rehearse' or unset, but got 'yes'" in run(
        "x = torch.ones(2)\nrefused(add, x, x, 1, x)", "yes"
    )


STREAM = r"""
int aoti_torch_get_current_npu_stream(int device, void **stream) { *stream = &stream; return device != -1; }
"""


@pytest.mark.slow
def test_the_two_phases(run, tmp_path):
    """CANN's interface on the host: the calls are those that CANN gets, on memory of the CPU."""
    home = tmp_path / "home" / "lib64"
    home.mkdir(parents=True)
    own, objects = SOURCES / "two_phase.c", SOURCES / "two_phase_acl.c"
    build([own, objects], code=STREAM, language="c", flags=["-DWITH_RUNTIME"], output=home / "libopapi.so")
    check = f"""
    library = __import__("ctypes").CDLL({str(home / "libopapi.so")!r})
    y = torch.ones(2, 3)
    out = torch.zeros(3, 2)
    add_custom(x, y, out.T)
    print(out.T.tolist())
    refused(add_custom, x, torch.ones(2), out.T)
    refused(nobody, x, x)
    print(library.acl_live_objects())
    """
    output = run(textwrap.dedent(MIX) + textwrap.dedent(check), None, ASCEND_HOME_PATH=str(home.parent))
    lines = output.splitlines()
    assert lines[:2] == [f"{FIRST} {SECOND}", "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]"]
    assert lines[2:4] == [
        "RuntimeError aclnnAddCustomGetWorkspaceSize: returned 161002",
        "  EZ1001: x, y and z must have one shape",
    ]
    assert lines[4] == "RuntimeError aclnnLayerNornGetWorkspaceSize: is not a function of CANN here"
    assert lines[5].startswith("  searched: ") and "libopapi.so" in lines[5]
    assert lines[6] == "0"


@pytest.mark.slow
def test_operators_of_a_module_are_operators_of_polyop(run):
    """By name, from NumPy and JAX, with the gradients of the C++ Function."""
    output = run("""
        import jax
        import jax.numpy as jnp
        import numpy as np
        import polyop
        from polyop.providers.aten import aten

        operator = aten("rehearsed::product")
        assert operator is aten(torch.ops.rehearsed.product)
        x, y = np.float32([1, 2, 3]), np.float32([4, 5, 6])
        z, pull = operator.vjp(x, y, 2)
        print(type(z).__name__, z.tolist(), [g.tolist() for g in pull(np.float32([1, 10, 100]))[:2]])
        print(x.tolist())
        print(torch.equal(operator(torch.tensor(x), torch.tensor(y)), torch.tensor([4.0, 10, 18])))
        loss = lambda a, b: (operator(a, b, 2) * jnp.float32([1, 10, 100])).sum()
        value, grads = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(jnp.asarray(x), jnp.asarray(y))
        print(float(value), [g.tolist() for g in grads])
    """)
    assert output.splitlines() == [
        "ndarray [8.0, 20.0, 36.0] [[8.0, 100.0, 1200.0], [2.0, 40.0, 600.0]]",
        "[1.0, 2.0, 3.0]",
        "True",
        f"{8.0 + 200 + 3600} [[8.0, 100.0, 1200.0], [2.0, 40.0, 600.0]]",
    ]


@pytest.mark.parametrize("header", ["torch/torch.h", "torch/extension.h"])
def test_both_headers_bind_functions_for_python(tmp_path, header):
    """``torch/torch.h`` has pybind11 only where PyTorch's builder defines a macro."""
    source = tmp_path / "bound_twice.cpp"
    source.write_text(
        f"#include <{header}>\ntorch::Tensor twice(torch::Tensor x) {{ return x * 2; }}\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice", &twice); }\n'
    )
    build([source], output=tmp_path / "bound_twice.so")
    program = "import torch, bound_twice; print(bound_twice.twice(torch.ones(2)).tolist())"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "[2.0, 2.0]\n", done.stderr


@pytest.mark.parametrize(
    ("name", "hint"), [("my-ops", "my_ops"), ("2d", "_2d"), ("import", "import_"), ("a b", "a_b")]
)
def test_a_name_that_cannot_be_imported(tmp_path, name, hint):
    source = tmp_path / "k.cpp"
    source.write_text("#include <torch/extension.h>\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n")
    message = (
        rf"k\.cpp: is a Python module \(TORCH_EXTENSION_NAME\), .* but got '{name}'\n  as in -o {hint}\.so"
    )
    with pytest.raises(BuildError, match=message):
        build([source], output=tmp_path / f"{name}.so")


def test_headers_of_pytorch_that_are_missing(tmp_path):
    (tmp_path / "torch" / "include").mkdir(parents=True)
    (tmp_path / "torch" / "__init__.py").write_text("")
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.13.0'\n")
    (tmp_path / "k.cpp").write_text('#include "pytorch_npu_helper.hpp"\n')
    command = [sys.executable, "-m", "polyop", "build", "k.cpp", "-o", "k.so"]
    path = os.pathsep.join(filter(None, [str(tmp_path), *sys.path[1:]]))
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "k.cpp: needs a PyTorch with its headers and version.py, but got" in done.stderr


@pytest.mark.parametrize("header", ["torch_npu/csrc/core/npu/NPUStream.h", "acl/acl.h"])
def test_headers_of_cann_that_are_missing(tmp_path, header):
    source = tmp_path / "k.cpp"
    source.write_text(f"#include <{header}>\n#include <torch/extension.h>\n")
    with pytest.raises(BuildError, match=rf"cannot be compiled: it includes {header} of torch_npu or CANN"):
        build([source])


def test_a_source_with_the_ascend_header_uses_pytorch():
    assert Source("/k.cc", "c++", '#include "pytorch_npu_helper.hpp"').uses_pytorch


@pytest.mark.slow
def test_one_library_without_python(tmp_path):
    """A library that PyTorch loads is not linked with Python. In rehearsal its NPU kernel replaces its CPU kernel."""
    code = r"""
    #include <torch/library.h>
    #include "pytorch_npu_helper.hpp"
    at::Tensor doubled(const at::Tensor& x) {
      at::Tensor out = at::empty_like(x);
      EXEC_NPU_CMD(aclnnAdd, x, x, 1, out);
      return out;
    }
    at::Tensor same(const at::Tensor& x) { return x.clone(); }
    TORCH_LIBRARY_FRAGMENT(rehearsed_alone, m) { m.def("doubled(Tensor x) -> Tensor"); }
    TORCH_LIBRARY_IMPL(rehearsed_alone, CPU, m) { m.impl("doubled", &same); }
    TORCH_LIBRARY_IMPL(rehearsed_alone, PrivateUse1, m) { m.impl("doubled", &doubled); }
    """
    library = build(code=code, output=tmp_path / "alone.so")
    assert b"libtorch_python" not in library.read_bytes()
    program = f"import torch; torch.ops.load_library({str(library)!r})\n"
    program += "print(torch.ops.rehearsed_alone.doubled(torch.tensor([1.5])).tolist())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "POLYOP_ASCEND": "rehearse"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("[3.0]\n", 0), done.stderr
    assert "Overriding a previously registered kernel" in done.stderr


def test_the_tutorials_operator_is_not_one_of_canns():
    assert not registry.known("AddCustom")
    with pytest.raises(NotImplementedError, match="aclnnAddCustom: aclnn operators need CANN"):
        launch("AddCustom", [])
    assert exec_npu.ADDRESS


def test_the_entry_never_raises():
    """For a name that is no UTF-8, C++ gets an error code, and the message cut to the buffer's size."""
    entry = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64
    )(exec_npu.ADDRESS)
    message = ctypes.create_string_buffer(b"x" * 30)
    assert entry(b"\xff", None, 0, message, 10) == 1
    assert message.value == b"'utf-8' c"


def test_the_module_is_found_by_import(project):
    spec = importlib.util.spec_from_file_location("rehearsed_lib", project / "rehearsed_lib.so")
    assert isinstance(spec.loader, importlib.machinery.ExtensionFileLoader)
    assert b"PyInit_rehearsed_lib" in (project / "rehearsed_lib.so").read_bytes()
