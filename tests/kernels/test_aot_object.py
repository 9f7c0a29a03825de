"""Libraries built with MindSpore's custom_aot_extra.h: its object in both string ABIs, in every host."""

import ctypes
import gc
import itertools
import os
import pathlib
import shlex
import subprocess

import numpy as np
import pytest

import polyop
from polyop.binary import diagnose
from polyop.core.dtypes import dtype
from polyop.core.errors import InferError, KernelError, LibraryError
from polyop.core.spec import Spec
from polyop.kernels.library import LibraryKernel
from polyop.testing import frameworks

SOURCES = pathlib.Path(__file__).parents[1] / "sources"
INCLUDE = pathlib.Path(__file__).parents[2] / "include"
MINDSPORE, POLYOP = "mindspore_aot_extra.h", "polyop/custom_aot_extra.h"
ATTRIBUTES = {
    "flag": True,
    "whole": 2,
    "real": 0.5,
    "text_whose_name_is_longer_than_16": "a text that is longer than that, too",
    "ints": [1, 2],
    "floats": [0.25, 0.5],
    "rows": [[1], [2, 3]],
    "real_rows": [[0.5], []],
}
SCALE = 1 + 2 + 0.5 + 36 + 3 + 0.75 + 6 + 0.5
X = np.arange(6, dtype=np.float32).reshape(2, 3)
ABIS = {"old": ["-D_GLIBCXX_USE_CXX11_ABI=0"], "new": ["-D_GLIBCXX_USE_CXX11_ABI=1"]}
_count = itertools.count()


def compiled(folder, header=MINDSPORE, *flags, code=None):
    source = SOURCES / "aot_attributes.cc"
    if code is not None:
        source = folder / "source.cc"
        source.write_text(f'#include "{header}"\n{code}')
    path = folder / f"lib{next(_count)}.so"
    command = [*shlex.split(os.environ.get("CXX", "c++")), "-std=c++17", "-shared", "-fPIC", "-o", str(path)]
    command += [f"-I{SOURCES}", f"-I{INCLUDE}", f'-DHEADER="{header}"', str(source), *flags]
    subprocess.run(command, check=True, capture_output=True)
    return path


def operator_of(path, function="Sum", **options):
    return polyop.Custom(f"{path}:{function}", func_type="aot", **options)


def sum_operator(path):
    op = operator_of(path)
    for name, value in ATTRIBUTES.items():
        op.add_prim_attr(name, value)
    return op


@pytest.fixture(scope="module", params=list(itertools.product(ABIS, ["-O0", "-O2"])), ids="".join)
def library(request, tmp_path_factory):
    abi, level = request.param
    return abi, compiled(tmp_path_factory.mktemp("aot"), MINDSPORE, *ABIS[abi], level)


@pytest.mark.slow(1)
def test_the_symbols_tell_the_strings(library):
    abi, path = library
    assert diagnose.strings_of(diagnose.read(path)) == abi


@pytest.mark.slow(1)
def test_every_kind_of_attribute_data_workspaces_and_infer_functions(library):
    op = sum_operator(library[1])
    np.testing.assert_array_equal(op(X), X * np.float32(SCALE))
    np.testing.assert_array_equal(op(X[:1]), X[:1] * np.float32(SCALE))
    plain = operator_of(library[1], "Plain", out_shape=lambda x: x, out_dtype=lambda x: x)
    plain.add_prim_attr("real", 3.0)
    np.testing.assert_array_equal(plain(X), X * 3)


def in_torch(op, x):
    torch = pytest.importorskip("torch")
    eager = op(torch.from_numpy(x))
    assert torch.equal(eager, torch.compile(op, backend="eager")(torch.from_numpy(x)))
    return eager.numpy()


def in_jax(op, x):
    jax = pytest.importorskip("jax")
    np.testing.assert_array_equal(op(jax.numpy.asarray(x)), jax.jit(op)(x))
    return np.asarray(op(jax.numpy.asarray(x)))


def in_paddle(op, x):
    return op(pytest.importorskip("paddle").to_tensor(x)).numpy()


def in_mindspore(op, x):
    return op(pytest.importorskip("mindspore").Tensor(x)).asnumpy()


HOSTS = {"torch": in_torch, "jax": in_jax, "paddle": in_paddle, "mindspore": in_mindspore}


@pytest.mark.slow(3)
@pytest.mark.parametrize("host", HOSTS)
def test_every_host(library, host):
    problem = frameworks.absent(host)
    if problem:
        pytest.skip(problem)
    op = sum_operator(library[1])
    for x in (X, np.ascontiguousarray(X[:, :2])):
        np.testing.assert_array_equal(HOSTS[host](op, x), x * np.float32(SCALE))


@pytest.mark.slow
def test_data_is_deleted_with_the_kernel(tmp_path):
    path = compiled(tmp_path, MINDSPORE, *ABIS["old"])
    extra = LibraryKernel(path, "Sum").extra_of(ATTRIBUTES)
    alive = ctypes.CDLL(str(path)).data_alive
    LibraryKernel(path, "Sum").initialise([Spec((2, 3), dtype("float32"))] * 2, extra)
    assert (extra.workspaces(), alive()) == ([24], 1)
    del extra
    gc.collect()
    assert alive() == 0


def test_a_missing_attribute_is_named(library):
    op = operator_of(library[1], out_shape=lambda x: x, out_dtype=lambda x: x)
    with pytest.raises(
        KernelError, match="SumInit: threw a C.. exception: there is no attribute called whole!"
    ):
        op(X)
    with pytest.raises(InferError, match="SumInferType: failed: there is no attribute called real!"):
        operator_of(library[1], out_shape=lambda x: x)(X)


@pytest.mark.slow(2)
@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("header", [POLYOP, MINDSPORE])
@pytest.mark.parametrize("cast", ["const Data", "Data"])
def test_data_is_cast_with_const_or_without(tmp_path, header, cast, level):
    """MindSpore's tutorials have both; the older header returns a pointer to const."""
    const_cast = f"({cast} *)(extra->KernelData())"
    code = f"""
struct Data : AotKernelData {{ float by = 3; }};
extern "C" int FInit(int *, int64_t **, const char **, AotExtra *extra) {{
  extra->SetKernelData(new Data);
  return 0;
}}
extern "C" int F(int, void **params, int *, int64_t **, const char **, void *, void *void_extra) {{
  AotExtra *extra = static_cast<AotExtra *>(void_extra);
  auto *data = {const_cast};
  *static_cast<float *>(params[1]) = *static_cast<float *>(params[0]) * data->by;
  return 0;
}}
"""
    path = compiled(tmp_path, header, *ABIS["old"], level, code=code)
    op = operator_of(path, "F", out_shape=lambda x: x, out_dtype=lambda x: x)
    assert op(np.float32([2]))[0] == 6


def test_strings_of_both_abis_are_refused(tmp_path):
    """As a static archive of the other ABI would bring them: nothing tells which ones AotExtra gets."""
    other = (
        'void other(const void *) __asm__("_ZN1f1gENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");\n'
    )
    code = (
        other
        + 'void other(const void *) {}\nextern "C" int FInit(int *, int64_t **, const char **, AotExtra *e) '
        '{ return e->HasAttr("a"); }\nextern "C" int F() { return 0; }\n'
    )
    path = compiled(tmp_path, MINDSPORE, *ABIS["old"], code=code)
    with pytest.raises(LibraryError, match=r"has FInit, .*and has strings of both ABIs of libstdc\+\+"):
        operator_of(path, "F", out_shape=lambda x: x, out_dtype=lambda x: x)
