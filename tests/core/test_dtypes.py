import ctypes
import importlib.util
import pathlib
import subprocess

import ml_dtypes
import numpy as np
import pytest

from polyop.build.paths import include_dir
from polyop.core.dtypes import DTYPES, dtype, dtype_of_type_id
from polyop.core.errors import ArgumentTypeError
from polyop.graph.vocabulary import DTYPE_OF_GE

ROOT = pathlib.Path(__file__).parents[2]
HEADER = ROOT / "include" / "polyop" / "dtypes.h"


@pytest.fixture(scope="session")
def tool():
    spec = importlib.util.spec_from_file_location("dtypes_header", ROOT / "tools" / "dtypes_header.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_header_has_the_rows(tool, request):
    if request.config.getoption("--update-golden"):
        HEADER.write_text(tool.text())
    assert tool.text() == HEADER.read_text(), "include/polyop/dtypes.h has other rows: run 'make golden'"


ALONE = """
#include "polyop/dtypes.h"
#define NAME(name, ...) name,
#define TYPE_ID(name, number) kNumberType##name = number,
static const char *const names[] = {POLYOP_DTYPES(NAME)};
enum { POLYOP_MINDSPORE_DTYPES(TYPE_ID) kEnd };
int count(void);
int count(void) { return (int)(sizeof names / sizeof *names) + POLYOP_DTYPE_ABSENT + kEnd; }
"""


@pytest.mark.parametrize(("compiler", "language"), [("gcc", "c"), ("g++", "c++")])
def test_the_header_alone_is_c_and_cpp(compiler, language, tmp_path):
    source = tmp_path / "alone.txt"
    source.write_text(ALONE)
    flags = [
        "-x",
        language,
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        "-fsyntax-only",
        f"-I{include_dir()}",
    ]
    done = subprocess.run([compiler, *flags, source], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_order_of_the_rows_is_that_of_exported_libraries():
    """A library that somebody has exported knows these by number: new ones follow."""
    names = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16
    complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"""
    first = names.split()
    assert [row.name for row in DTYPES][: len(first)] == first


@pytest.mark.parametrize(
    ("column", "none"),
    [("dlpack", None), ("type_id", 0), ("torch", -1), ("cann", -1), ("onnx", -1), ("xla", -1)],
)
def test_no_two_dtypes_have_a_number(column, none):
    numbers = [getattr(row, column) for row in DTYPES if getattr(row, column) != none]
    assert len(set(numbers)) == len(numbers) > 14


def test_numbers_of_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    library = ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    found = {row.name: getattr(library, f"aoti_torch_dtype_{row.name}", lambda: -1)() for row in DTYPES}
    assert found == {row.name: row.torch for row in DTYPES}


def short(name):
    """Return XLA's name of a dtype: S8, U64, BF16, F8E5M2."""
    if name.startswith("complex"):
        return name.replace("complex", "C")
    for word, letter in (("uint", "U"), ("int", "S"), ("bfloat", "BF"), ("float", "F")):
        name = name.replace(word, letter)
    return {"bool": "PRED"}.get(name, name.replace("_", "").upper())


def test_numbers_of_xla():
    jaxlib = pytest.importorskip("jaxlib.xla_client", reason="JAX is not installed")
    numbers = {row.name: int(getattr(jaxlib.PrimitiveType, short(row.name))) for row in DTYPES}
    assert numbers.items() - {row.name: row.xla for row in DTYPES}.items() == {
        ("float4_e2m1fn", 32)
    }  # packed


def test_numbers_of_onnx():
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    for row in DTYPES:
        if row.onnx >= 0:
            assert onnx.helper.tensor_dtype_to_np_dtype(row.onnx) == row.numpy


def test_numbers_of_cann_are_those_of_its_graph_engine():
    names = {"bool": "DT_BOOL", "float32": "DT_FLOAT", "float64": "DT_DOUBLE", "bfloat16": "DT_BF16"}
    names["float8_e8m0fnu"] = "DT_FLOAT8_E8M0"
    rows = [row.name for row in DTYPES if row.cann >= 0]
    assert {name: names.get(name, f"DT_{name.upper()}") for name in rows} == DTYPE_OF_GE
    assert {row.name for row in DTYPES} - set(rows) == {"float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn"}


def test_sizes_agree_with_dlpack_bits():
    for row in DTYPES:
        assert row.itemsize * 8 == row.dlpack[1], row


@pytest.mark.parametrize(
    "spelling", ["float32", "Float32", "torch.float32", "float", np.float32, np.dtype("f4"), np.dtype(">f4")]
)
def test_spellings_of_float32(spelling):
    assert dtype(spelling).name == "float32"


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        (bool, "bool"),
        (int, "int64"),
        (float, "float64"),
        (ml_dtypes.bfloat16, "bfloat16"),
        ("half", "float16"),
    ],
)
def test_python_types_and_aliases(spelling, name):
    assert dtype(spelling).name == name


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("float33", "must be a known name, but got 'float33'\n  did you mean 'float32'"),
        ("flaot32", "must be a known name, but got 'flaot32'\n  did you mean 'float32'"),
        ("quad", "must be one of bool, int8, .*float4_e2m1fn, but got 'quad'$"),
        (object(), "must be one that kernels take: bool, integers, float4 to float64, .*but got <object"),
        (np.dtype("U3"), "must be one that kernels take: .*but got dtype"),
        (
            "torch.float4_e2m1fn_x2",
            "must have an element of its own in each item, and float4_e2m1fn_x2 packs two",
        ),
        (None, "must be one that kernels take: .*but got None"),
        (3, "must be one that kernels take: .*but got 3"),
    ],
)
def test_anything_else_is_an_error_that_says_what_there_is(wrong, words):
    with pytest.raises(ArgumentTypeError, match=f"^dtype: {words}"):
        dtype(wrong)


def test_torch_dtypes_are_known():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for row in DTYPES:
        if hasattr(torch, row.name):
            assert dtype(getattr(torch, row.name)) is row


def test_type_ids_are_those_of_mindspore():
    assert [dtype_of_type_id(n).name for n in (30, 34, 43, 44)] == ["bool", "int32", "float32", "float64"]
    assert dtype_of_type_id(7) is None
