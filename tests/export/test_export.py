# ruff: noqa: F821 - output_tensor is a word of the language
"""Operators leave for one library, which programs without Python and without polyop call."""

import ctypes
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import polyop
from polyop.binary.export_manifest import read
from polyop.cli.main import main
from polyop.core.dtypes import DTYPES
from polyop.core.errors import ArgumentValueError, BuildError, InferError, UnsupportedError
from polyop.export import export
from polyop.export.collect import collect
from polyop.loops.emit.c.loops import Loops

from . import exported_operators

SOURCES = pathlib.Path(__file__).parents[1] / "sources"
SIGNATURES = {"exported::scale": ["float32[:,:], float", "float64[:,:]"]}
X = np.arange(6, dtype=np.float32).reshape(2, 3)
numbers = itertools.count()


def run(*command, **options):
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=240, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_c_program(path, tmp_path):
    program = tmp_path / "main"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{path.parent}"]
    run("cc", *flags, SOURCES / "exported_main.c", path, "-o", program)
    shape, scaled, gradient, added, failed, mismatched = run(program).splitlines()
    assert shape == "1 2 2 3"
    np.testing.assert_array_equal(np.fromstring(scaled, sep=" "), 3 * X.ravel() ** 2)
    np.testing.assert_array_equal(np.fromstring(gradient, sep=" "), 6 * X.ravel())
    np.testing.assert_array_equal(np.fromstring(added, sep=" "), 0.5 * (X.ravel() + 2))
    assert failed == (
        "exported::add: the kernel returned 1 (repeats too often); any value other than 0 is its author's "
        "error code"
    )
    assert mismatched.startswith("exported::add: dimension")


CMAKE = """
cmake_minimum_required(VERSION 3.15)
project(program C)
find_package(exported CONFIG REQUIRED PATHS "{folder}" NO_DEFAULT_PATH)
add_executable(program "{source}")
target_link_libraries(program PRIVATE exported::exported)
"""


def test_cmake_finds_it(path, tmp_path):
    text = CMAKE.format(folder=path.parent, source=SOURCES / "exported_main.c")
    (tmp_path / "CMakeLists.txt").write_text(text)
    folders = [str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]
    tool = shutil.which("cmake", path=os.pathsep.join(folders))
    if tool is None:
        pytest.skip("not run: cmake is not installed")
    run(tool, "-S", tmp_path, "-B", tmp_path / "build")
    run(tool, "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "program").startswith("1 2 2 3\n")


WITHOUT_POLYOP = """
import sys
sys.modules["polyop"] = None  # cannot be imported
import ctypes
import numpy as np
import jax, torch

path = sys.argv[1]
x = np.arange(6, dtype=np.float32).reshape(2, 3)
torch.ops.load_library(path)
op = torch.ops.exported
np.testing.assert_array_equal(op.scale(torch.from_numpy(x), 3.0), 3 * x**2)
np.testing.assert_array_equal(op.scale(torch.from_numpy(x).double()), 2 * x.astype(float) ** 2)
ones = torch.ones(2, 3)
gradient = op.scale_backward(torch.from_numpy(x), None, ones, 3.0)
np.testing.assert_array_equal(gradient, 6 * x)
np.testing.assert_array_equal(op.add(torch.from_numpy(x), ones, repeat=[1, 2], by=2.0), 2 * (x + 3))
assert op.scale(torch.empty(4, 5, device="meta")).shape == (4, 5)

library = ctypes.CDLL(path)
jax.ffi.register_ffi_target("scale", jax.ffi.pycapsule(library.scale_xla), platform="cpu")
like_x = jax.ShapeDtypeStruct(x.shape, x.dtype)
scale = jax.jit(lambda x: jax.ffi.ffi_call("scale", like_x)(x, factor=3.0) + 1)
np.testing.assert_array_equal(scale(x), 3 * x**2 + 1)
print("called")
"""


def test_pytorch_and_jax_without_polyop(path):
    assert run(sys.executable, "-c", WITHOUT_POLYOP, path) == "called\n"


SESSION = """
import sys
sys.modules["polyop"] = None  # cannot be imported
import numpy as np, onnxruntime as ort
from onnx import TensorProto as T, helper

node = helper.make_node("scale", ["x"], ["y"], domain="exported", factor=3.0)
x, y = (helper.make_tensor_value_info(name, T.FLOAT, None) for name in "xy")
domains = [helper.make_opsetid("", 18), helper.make_opsetid("exported", 1)]
model = helper.make_model(helper.make_graph([node], "graph", [x], [y]), opset_imports=domains, ir_version=8)
options = ort.SessionOptions()
options.register_custom_ops_library(sys.argv[1])
session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
x = np.arange(6, dtype=np.float32).reshape(2, 3)
np.testing.assert_array_equal(session.run(["y"], {"x": x})[0], 3 * x**2)
print("called")
"""


def test_onnx_runtime_without_polyop(path):
    assert run(sys.executable, "-c", SESSION, path) == "called\n"


def test_polyop_takes_the_library(path):
    name = f"exported_again{next(numbers)}"
    again = polyop.operator(
        f"{name}::scale(Tensor x, float factor=2.0) -> Tensor", f"{path}:scale", infer="x"
    )
    np.testing.assert_array_equal(again(X, 3.0), exported_operators.scale(X, 3.0))


def test_the_header_is_c_and_cxx(path, tmp_path):
    header = path.with_suffix(".h")
    for compiler, language in (("cc", "c"), ("c++", "c++")):
        run(compiler, "-x", language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", header)
    assert str(path.parent) not in header.read_text()


def test_the_library_needs_no_polyop_and_tells_no_paths(path):
    needed = {
        line.split()[1] for line in run("objdump", "-p", path).splitlines() if line.split()[:1] == ["NEEDED"]
    }
    assert {re.split(r"[-.]", name)[0] for name in needed} <= {
        "libstdc++",
        "libm",
        "libgcc_s",
        "libc",
        "libdl",
        "ld",
    }
    content = path.read_bytes()
    for folder in (SOURCES.parents[1], pathlib.Path.cwd(), pathlib.Path(polyop.__file__).parent):
        assert str(folder).encode() not in content


def test_the_manifest(path, capsys):
    rows = {row["name"]: row for row in read(path)["operators"]}
    assert [*rows][:3] == ["exported::scale", "exported::scale_backward", "exported::add"]
    assert rows["exported::scale"]["backward"] == "exported::scale_backward"
    assert [kernel["x"] for kernel in rows["exported::scale"]["kernels"]] == [
        {"dtypes": ["float32"], "dimensions": 2},
        {"dtypes": ["float64"], "dimensions": 2},
    ]
    assert rows["exported::add"]["notation"] == {"dims": "... n, ... n, n -> ... n"}
    assert {name: row["no_backward"] for name, row in rows.items() if row["no_backward"]} == {
        "exported::add": "its author gives it in Python"
    }
    assert main(["inspect", str(path)]) == 0
    assert "; no gradient: its author gives it in Python" in capsys.readouterr().out
    assert read(SOURCES / "exported_add.cc") is None


@polyop.kernel(name="exported::count")
def count(x):
    y = output_tensor(x.shape, int64)
    for i in range(x.shape[0]):
        y[i] = x[i] + 1
    return y


CODE = """
int %(function)s(int n, void** data, int* ndims, long** sizes, const char** dtypes, void* stream, void* extra) {
  (void)n, (void)ndims, (void)dtypes, (void)stream, (void)extra;
  for (long i = 0; i < sizes[0][0]; ++i) ((%(type)s*)data[1])[i] = ((%(type)s*)data[0])[i] * SCALE;
  return 0;
}
"""


@pytest.mark.slow
def test_kernels_by_dtype_their_flags_and_a_loop_kernel_without_a_gradient(tmp_path):
    kernels = [
        polyop.source(
            function=f"scale_{name}",
            code=CODE % {"function": f"scale_{name}", "type": of},
            language="c",
            flags=[f"-DSCALE={scale}"],
            link_flags=["-Wl,-soname,libchosen.so"],
            dtypes=[name],
        )
        for name, of, scale in (("float32", "float", 3), ("float64", "double", 5))
    ]
    scaled = polyop.operator("exported::scaled(Tensor x) -> Tensor", kernels, dims="n -> n")
    rows = export([count, scaled], tmp_path / "libtwo.so", signatures={"exported::count": ["int64[:]"]})
    assert [row.name for row in rows] == ["exported::count", "exported::scaled"]
    assert rows[0].no_backward
    assert "SONAME               libchosen.so" in run("objdump", "-p", tmp_path / "libtwo.so")
    library = ctypes.CDLL(str(tmp_path / "libtwo.so"))
    for function, dtype, factor, more in (
        ("scaled", "float32", 3, 0),
        ("scaled", "float64", 5, 0),
        ("count", "int64", 1, 1),
    ):
        x = np.arange(4, dtype=dtype)
        y = np.empty_like(x)
        arrays = [Array.of((4,), dtype), Array.of((4,), dtype)]
        arrays[0].data, arrays[1].data = x.ctypes.data, y.ctypes.data
        assert getattr(library, f"exported_{function}")(*map(ctypes.byref, arrays)) == 0
        np.testing.assert_array_equal(y, x * factor + more)


def test_a_loop_kernel_whose_text_the_compiler_refuses_is_in_the_authors_order(tmp_path, monkeypatch):
    monkeypatch.setattr(Loops, "vector", lambda self, *_: self.out.line("max_i64(1 2);"))
    arguments = [count], tmp_path / "liborder.so"
    with pytest.raises(BuildError, match="expected"):
        export(*arguments, signatures={"exported::count": ["int64[:]"]})
    monkeypatch.delenv("POLYOP_STRICT")
    with pytest.warns(polyop.FallbackWarning, match="exported_count_0: loops stay in the author's order"):
        export(*arguments, signatures={"exported::count": ["int64[:]"]})
    x, y = np.arange(4), np.empty(4, np.int64)
    arrays = [Array.of((4,), "int64"), Array.of((4,), "int64")]
    arrays[0].data, arrays[1].data = x.ctypes.data, y.ctypes.data
    assert ctypes.CDLL(str(arguments[1])).exported_count(*map(ctypes.byref, arrays)) == 0
    np.testing.assert_array_equal(y, x + 1)


class Array(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]

    @classmethod
    def of(cls, shape, dtype="float32"):
        sizes = (ctypes.c_int64 * 64)(*shape)
        row = [one.name for one in DTYPES].index(dtype)
        return cls(None, sizes, len(shape), row)


SHAPES = [(3,), (2, 3), (1, 2, 3), (), (4,), (2, 4), (3, 3)]


@pytest.mark.slow(39)
@pytest.mark.parametrize(("x", "y", "z"), [*itertools.product(SHAPES, SHAPES, [None, (3,), (2,), (1, 3)])])
def test_shapes_and_words_of_errors_are_those_of_dims(path, x, y, z):
    library = ctypes.CDLL(str(path))
    library.exported_error.restype = ctypes.c_char_p
    arrays = [None if shape is None else ctypes.byref(Array.of(shape)) for shape in (x, y, z)]
    out = Array.of(())
    code = library.exported_add_shapes(*arrays, None, ctypes.c_size_t(0), None, ctypes.byref(out))
    try:
        dims = exported_operators.add.operator.dims
        expected = dims.output_shapes(dims.match([x, y, z], {}))
    except InferError as problem:
        words = library.exported_error().decode()
        assert code == 1
        assert str(problem).startswith(words), (words, str(problem))
    else:
        assert code == 0, library.exported_error()
        assert tuple(out.sizes[: out.ndim]) == expected[0]


def test_a_dtype_that_is_newer_than_the_library(path):
    library = ctypes.CDLL(str(path))
    library.exported_error.restype = ctypes.c_char_p
    x, y, out = Array.of((3,)), Array.of((3,)), Array.of(())
    x.dtype = len(DTYPES)
    arguments = (ctypes.byref(x), ctypes.byref(y), None, None, ctypes.c_size_t(0), None, ctypes.byref(out))
    assert library.exported_add_shapes(*arguments) == 1
    assert f"takes x the unknown dtype {len(DTYPES)}, y float32[3]" in library.exported_error().decode()


def python(x):
    return x


REFUSED = {
    "a Python function": lambda name: polyop.operator(f"{name}::f(Tensor x) -> Tensor", python, infer="x"),
    "a list": lambda name: polyop.operator(
        f"{name}::f(Tensor[] x) -> Tensor", f"{SOURCES / 'exported_add.cc'}:AddRepeated", dims="n* -> n"
    ),
    "a function of shapes": lambda name: polyop.operator(
        f"{name}::f(Tensor x) -> Tensor", f"{SOURCES / 'exported_add.cc'}:AddRepeated", infer=lambda x: x
    ),
}
WORDS = {
    "a Python function": "is the Python function",
    "a list": "takes a list of tensors, x, which an exported library cannot have",
    "a function of shapes": "infers the shapes of its outputs by a function, which cannot be compiled",
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_leave_is_refused_by_name(kind):
    operator = REFUSED[kind](f"refused{next(numbers)}")
    with pytest.raises(UnsupportedError) as caught:
        collect([operator, exported_operators.add], {}, None)
    text = str(caught.value)
    assert "1 of 2 operators cannot be exported" in text
    assert f"{operator.name}: {WORDS[kind]}" in text
    assert "there are also exported::add" in text


@polyop.kernel
def centred(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = (x[i] - sum(x[i])) * w[i]
    return y


@polyop.kernel
def gathered(x, at):
    y = output_tensor((at.shape[0],), x.dtype)
    for i in range(at.shape[0]):
        y[i] = x[at[i], 0]
    return y


def test_uses_in_loops_tell_the_dimensions():
    exported = collect([exported_operators.scale], {}, ["float32"])
    assert [kernel.ranks for kernel in exported[0].kernels] == [(2,)]
    assert exported[1].name == "exported::scale_backward"


def test_ranks_that_nothing_tells_must_be_said():
    with pytest.raises(UnsupportedError, match="nothing says how many dimensions x has") as caught:
        collect([centred], {}, None)
    assert "give dims=, or a signature as in --signature" in str(caught.value)


def test_tensors_of_several_dtypes_need_a_signature():
    with pytest.raises(
        UnsupportedError, match="by its loops x has 2 dimensions, at 1; with one dtype"
    ) as caught:
        collect([gathered], {}, None)
    assert "index 0 of x must be an integer" in str(caught.value)
    assert "--signature" in str(caught.value)
    for text in ("float32[:,:], int64[:]", "float32[...], int64[...]"):
        assert collect([gathered], {gathered.name: [text]}, None)[0].kernels[0].ranks == (2, 1)


@pytest.mark.parametrize(
    ("operators", "output", "words"),
    [
        ([], "lib.so", "needs an operator"),
        ([exported_operators.add], "lib.a", "must be a file that ends in .so"),
        ([exported_operators.add], "missing/lib.so", "the library must be in a folder that exists, but got"),
    ],
)
def test_arguments(operators, output, words, tmp_path):
    with pytest.raises(ArgumentValueError, match=words):
        export(operators, tmp_path / output)


def test_memory_and_sizes_that_no_array_has(path):
    library = ctypes.CDLL(str(path))
    library.exported_error.restype = ctypes.c_char_p
    memory = (ctypes.c_float * 6)()
    x, out = Array.of((2, 3)), Array.of((2, 3))
    call = [ctypes.byref(x), ctypes.c_double(2.0), ctypes.byref(out)]
    assert library.exported_scale(*call) == 1
    assert library.exported_error().endswith(b": the memory of x is null")
    x.data = ctypes.addressof(memory)
    assert library.exported_scale(*call) == 1
    assert library.exported_error().endswith(b": the memory of out is null")
    x.sizes[0] = -2
    assert library.exported_scale(*call) == 1
    assert b"x has a negative size" in library.exported_error()
    empty = Array.of((0, 3))
    assert library.exported_scale(ctypes.byref(empty), ctypes.c_double(2.0), ctypes.byref(empty)) == 0
    y = Array.of((3,))
    arrays = [ctypes.byref(y), ctypes.byref(y), None, None, ctypes.c_size_t(2), None, ctypes.byref(out)]
    assert library.exported_add(*arrays) == 1
    assert library.exported_error().endswith(b": a list is null, but its count is 2")
    assert library.exported_scale(None, ctypes.c_double(2.0), ctypes.byref(out)) == 1
    assert library.exported_error() == b"exported::scale: x is required, but is null"


def test_a_header_of_the_author_is_not_replaced(tmp_path):
    own = tmp_path / "libmine.h"
    own.write_text("/* mine */")
    with pytest.raises(ArgumentValueError, match="polyop export did not write it"):
        export([exported_operators.add], tmp_path / "libmine.so")
    assert own.read_text() == "/* mine */"


@pytest.mark.slow
def test_the_command(tmp_path):
    library = tmp_path / "libexported.so"
    command = [sys.executable, "-m", "polyop", "export", exported_operators.__file__, "-o", library]
    printed = run(*command, "--only", "add")
    stays = "    its gradient is not exported: its author gives it in Python"
    assert printed.splitlines() == [str(library), f"  {exported_operators.add.schema}", stays]
    assert "exported::add" in run(sys.executable, "-m", "polyop", "inspect", library)
