"""Names and texts of authors in the generated C and C++; names that clash; what is exported by mistake."""

import ctypes
import pathlib
import subprocess

import numpy as np
import pytest

import polyop
from polyop.core.errors import ArgumentValueError, BuildError, UnsupportedError
from polyop.core.parse import parse
from polyop.export import export, generated_tables, header
from polyop.export.collect import collect
from polyop.export.names import c_names, check_names
from polyop.export.operator import ExportedKernel, ExportedOperator, SourceFile

from . import exported_operators
from .exported_operators import SIGNATURES

INCLUDE = pathlib.Path(__file__).parents[2] / "include"


def exported(name, signature="(Tensor x) -> Tensor", function="run"):
    kernel = ExportedKernel((None,), (None,), ("outputs[0] = like(inputs[0]);",), function)
    return ExportedOperator(
        name, parse(f"{name}{signature}"), (kernel,), (SourceFile(name, "c"),), "C source"
    )


@pytest.mark.parametrize(
    ("operators", "words"),
    [
        (
            [exported("a::f", function="f1"), exported("b::f", function="f2")],
            "export of b::f and a::f: they would have one name without their namespaces, f",
        ),
        (
            [exported("a::b_c", function="f1"), exported("a_b::c", function="f2")],
            "export of a_b::c and a::b_c: they would have one C function, a_b_c",
        ),
        (
            [exported("a::f", function="f1"), exported("a::f_shapes", function="f2")],
            "export of a::f_shapes and a::f: they would have one C function, a_f_shapes",
        ),
        (
            [exported("a::f"), exported("a::g")],
            "export of a::g and a::f: they would have kernels called run in different sources",
        ),
        ([exported("a::f", function="a_f")], "one C function: a_f is also a kernel of a::f"),
        (
            [exported("mine::error")],
            "export of mine::error and the library itself: they would have one C function",
        ),
        ([exported("mine::register_torch")], "one C function, mine_register_torch"),
    ],
)
def test_names_that_clash(operators, words):
    with pytest.raises(ArgumentValueError) as caught:
        check_names(operators, "mine")
    assert words in str(caught.value)


WORDS = """
alignas alignof and_eq asm bitand bitor bool case catch char char16_t char32_t char8_t compl concept
const const_cast consteval constexpr constinit co_await co_return co_yield decltype delete do
dynamic_cast enum explicit export extern float friend goto inline int long mutable namespace noexcept
not_eq nullptr operator or_eq private protected public reinterpret_cast requires restrict short signed
sizeof static static_assert static_cast struct switch template this thread_local throw typedef typeid
typename union unsigned using virtual void volatile wchar_t xor xor_eq true false typeof unix
"""
NAMES = {
    "words of C++": f"({', '.join(f'int {word}' for word in WORDS.split())}) -> Tensor",
    "words of C": '(Tensor default, int[] register, float? double=None, str auto="x") -> (Tensor new)',
    "types and macros": "(Tensor size_t, Tensor polyop_array, int[] NULL, int INT64_MAX, int int64_t) -> Tensor",
    "words of the generated file": "(Tensor guarded, Tensor kOperators, int CCall, int polyop, int std) -> Tensor",
    "a count": "(Tensor x, int[] k, int k_count, int k_count_) -> (Tensor k_count)",
    "results": "(Tensor x, Tensor x_result, int default_, int[] default) -> (Tensor x, Tensor x_result)",
    "reserved": "(Tensor __LINE__, Tensor linux, int _A, int EOF, float POLYOP_NONE, int errno) -> (Tensor out)",
    "a line break": '(Tensor x, str s="a\n/*b*/ // \\\\", str t="??/") -> Tensor',
    "optional": "(Tensor? x, int[]? a=None, float[]? b=[1.5], str[]? c=None, str? d=None, bool? e=True) -> Tensor",
}


@pytest.mark.slow(2)
@pytest.mark.parametrize("kind", NAMES)
def test_any_schema_gives_c_that_compiles(kind, tmp_path):
    operator = exported("a::f", NAMES[kind])
    names = c_names(operator)
    every = [*names.arguments.values(), *names.counts.values(), *names.outputs]
    assert len(set(every)) == len(every)
    (tmp_path / "f.h").write_text(header.header([operator], "libf.so"))
    (tmp_path / "f.cc").write_text(header.source([operator], "libf.so"))
    (tmp_path / "t.cc").write_text(generated_tables.source([operator]))
    for compiler, language, file in (
        ("cc", "c", "f.h"),
        ("c++", "c++", "f.h"),
        ("c++", "c++", "f.cc"),
        ("c++", "c++", "t.cc"),
    ):
        flags = ["-x", language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{INCLUDE}"]
        done = subprocess.run(
            [compiler, *flags, str(tmp_path / file)], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr


def test_the_header_says_the_rules():
    text = header.header([exported("a::f")], "libf.so")
    for words in (
        "C has no defaults: pass the value that the schema has",
        "NULL with the count 0: an empty list",
        "NULL with the count 0: None",
        "0 is false, any other int true",
        "int f_register_torch(void);",
    ):
        assert words in text


COUNT = """
#include "polyop/abi.h"
extern "C" int Count(int, void** data, int*, int64_t**, const char**, void*, void* extra) {
  auto* self = static_cast<polyop_extra*>(extra);
  polyop_attribute value = {};
  self->functions->attribute(self, "axes", &value);
  *static_cast<float*>(data[1]) = value.depth == 0 ? -1 : static_cast<float>(value.count);
  return 0;
}
"""


class Array(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


@pytest.mark.slow
def test_none_and_an_empty_list_of_c(tmp_path):
    kernel = polyop.source(code=COUNT, function="Count", language="c++")
    count = polyop.operator(
        "exported_none::count(Tensor x, int[]? axes=[7, 8]) -> Tensor",
        kernel,
        dims="n -> ",
        dtypes=["float32"],
    )
    export([count], tmp_path / "libcount.so")
    function = ctypes.CDLL(str(tmp_path / "libcount.so")).exported_none_count
    x, y = np.ones(1, np.float32), np.zeros((), np.float32)
    sizes = (ctypes.c_int64 * 1)(1)
    arrays = [ctypes.byref(Array(one.ctypes.data, sizes, one.ndim, 10)) for one in (x, y)]
    items = (ctypes.c_int64 * 3)(4, 5, 6)
    for axes, number, expected in ((items, 3, 3), (items, 0, 0), (None, 0, -1)):
        assert function(arrays[0], axes, ctypes.c_size_t(number), arrays[1]) == 0
        assert y == expected
    loaded = polyop.load_library(tmp_path / "libcount.so", namespaces={"exported_none": "loaded_none"})
    for axes, expected in (([4, 5, 6], 3), ([], 0), (None, -1)):
        assert loaded.count(x, axes) == expected
    assert loaded.count(x) == 2


HELPER = """
#include "polyop/abi.h"
int helper() { return 0; }
extern "C" int NAME(int, void**, int*, int64_t**, const char**, void*, void*) { return helper(); }
"""


@pytest.mark.slow
def test_helpers_of_two_sources_that_are_not_static(tmp_path):
    operators = [
        polyop.operator(
            f"exported_helpers::{name}(Tensor x) -> Tensor",
            polyop.source(code=HELPER.replace("NAME", name), function=name, language="c++"),
            infer="x",
        )
        for name in ("First", "Second")
    ]
    with pytest.raises(BuildError) as caught:
        export(operators, tmp_path / "libhelpers.so")
    assert "libhelpers.so: cannot be linked: the sources are linked into one library" in str(caught.value)
    assert "make functions that only one of them uses static" in str(caught.value)
    assert "helper()" in str(caught.value)


@pytest.mark.parametrize(
    ("operators", "options", "words"),
    [
        (
            ["add"],
            {"signatures": {"exported::add": ["T[:]"]}},
            "a signature: must be for a loop kernel, but got exported::add",
        ),
        (
            ["add"],
            {"signatures": {"exported::scale": ["T[:]"]}},
            "must be for an operator that is exported, but got exported::scale\n  loop kernels that are exported: none",
        ),
        (["add"], {"dtypes": ["float32"]}, "dtypes: are for loop kernels that declare none"),
        (
            ["scale"],
            {"dtypes": ["float32"], "signatures": {"exported::scale": SIGNATURES["exported::scale"]}},
            "dtypes: are for loop kernels that declare none",
        ),
        (["scale"], {"dtypes": ["float31"]}, "dtypes: a dtype must be one of"),
    ],
)
def test_signatures_and_dtypes_that_nothing_uses(operators, options, words, tmp_path):
    with pytest.raises(ArgumentValueError) as caught:
        export([getattr(exported_operators, name) for name in operators], tmp_path / "lib.so", **options)
    assert words in str(caught.value)


IOTA = """
extern "C" int Iota(int, void** data, int*, long** sizes, const char**, void*, void*) {
  for (long i = 0; i < sizes[0][0]; ++i) static_cast<float*>(data[0])[i] = static_cast<float>(i);
  return 0;
}
"""


@pytest.mark.slow
def test_operators_without_a_tensor(tmp_path):
    kernel = polyop.source(code=IOTA, function="Iota", language="c++")
    iota = polyop.operator("exported_iota::iota(int n) -> Tensor", kernel, dims="-> n", infer="float32")
    export([iota], tmp_path / "libiota.so")
    function = ctypes.CDLL(str(tmp_path / "libiota.so")).exported_iota_iota
    y = np.zeros(4, np.float32)
    array = Array(y.ctypes.data, (ctypes.c_int64 * 1)(4), 1, 10)
    assert function(ctypes.c_int64(4), ctypes.byref(array)) == 0
    np.testing.assert_array_equal(y, np.arange(4))
    unknown = polyop.operator("exported_iota::unknown(int n) -> Tensor", kernel, dims="-> n")
    with pytest.raises(UnsupportedError, match="nothing says the dtypes of its outputs") as caught:
        export([unknown], tmp_path / "libunknown.so")
    assert 'as in infer="float32"' in str(caught.value)


TWO = """
#include <stdio.h>
#include "libfirst.h"
#include "libsecond.h"
int main(void) {
  printf("%d %d %s%s\\n", first_register_torch(), second_register_torch(), first_error(), second_error());
  return 0;
}
"""


@pytest.mark.slow
def test_two_libraries_in_one_program(tmp_path):
    for name, operator in (("first", exported_operators.add), ("second", exported_operators.fill_)):
        export([operator], tmp_path / f"lib{name}.so")
    (tmp_path / "two.c").write_text(TWO)
    libraries = [str(tmp_path / f"lib{name}.so") for name in ("first", "second")]
    flags = ["-Wall", "-Wextra", "-Werror", f"-I{tmp_path}"]
    subprocess.run(
        ["cc", *flags, str(tmp_path / "two.c"), *libraries, "-o", str(tmp_path / "two")], check=True
    )
    done = subprocess.run([str(tmp_path / "two")], capture_output=True, text=True, check=True)
    assert done.stdout == "1 1 \n", "no libtorch in the process, and no errors"


def squares(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of loop kernels
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
    return y


def test_what_is_exported_has_its_schedule():
    steps = polyop.Schedule().tile("i", 2)
    derived = {"backward": polyop.Schedule().tile("i", 4)}
    op = polyop.kernel(name="exports::squares", schedule=steps, derived_schedules=derived)(squares)
    forward, backward = collect([op], {"exports::squares": ["float64[:]"]}, None)
    for one, size in ((forward, 2), (backward, 4)):
        text = "".join(pathlib.Path(source.path).read_text() for source in one.sources)
        assert f"{size} * i_outer" in text
