"""Libraries built with MindSpore's own custom_aot_extra.h, run by MindSpore and by polyop."""

import os
import pathlib
import shlex
import subprocess

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

import polyop

HEADER = "mindspore/ccsrc/utils/custom_aot_extra.h"
INCLUDE = pathlib.Path(ms.__file__).parent / "include"
SOURCES = pathlib.Path(__file__).parents[2] / "sources"
X = np.arange(6, dtype=np.float32).reshape(2, 3)

# The header includes much of graphs, which needs MindSpore's libraries. The classes for kernels need none of it.
STUB = """
#pragma once
#include <iostream>
#include <memory>
#define MS_EXCEPTION_IF_CHECK_FAIL(condition, text) if (!(condition)) throw 1
#define MS_EXCEPTION_IF_NULL(pointer) if (!(pointer)) throw 1
#define MS_LOG(level) std::cerr
namespace mindspore {
struct Primitive {
  bool HasAttr(std::string) { return false; }
  std::shared_ptr<int> GetAttr(std::string) { return nullptr; }
  std::string ToString() { return ""; }
};
using PrimitivePtr = std::shared_ptr<Primitive>;
template <typename T, typename V> T GetValue(V) { return T(); }
}
"""

CODE = """
#include "mindspore/ccsrc/utils/custom_aot_extra.h"
using mindspore::AotExtra;
struct Data : mindspore::AotKernelData { float by = 1; };
extern "C" int RealInit(int *ndims, int64_t **shapes, const char **, AotExtra *extra) {
  auto *data = new Data;
  if (extra->HasAttr("a_name_that_is_longer_than_16")) data->by = 3;
  if (extra->HasAttr("absent")) data->by = 5;
  extra->SetKernelData(data);
  extra->SetWorkSpace({24, 8});
  return 0;
}
extern "C" std::vector<int64_t> RealInferShape(int *ndims, int64_t **shapes, AotExtra *extra) {
  return {shapes[0][1], extra->HasAttr("a_name_that_is_longer_than_16") ? shapes[0][0] : 0};
}
extern "C" int Real(int count, void **params, int *, int64_t **shapes, const char **, void *, void *void_extra) {
  const auto *data = static_cast<const Data *>(static_cast<AotExtra *>(void_extra)->KernelData());
  if (count != 4) return 2;
  const float *x = (float *)params[0];
  for (int64_t i = 0; i < shapes[0][0]; ++i) {
    for (int64_t k = 0; k < shapes[0][1]; ++k) {
      ((float *)params[2])[i * shapes[0][1] + k] = x[i * shapes[0][1] + k];
      ((float *)params[1])[k * shapes[0][0] + i] = ((float *)params[2])[i * shapes[0][1] + k] * data->by;
    }
  }
  return 0;
}
"""


def compiled(folder, source, *flags):
    path = folder / "libkernel.so"
    command = [*shlex.split(os.environ.get("CXX", "c++")), "-std=c++17", "-shared", "-fPIC", "-o", str(path)]
    command += ["-D_GLIBCXX_USE_CXX11_ABI=0", *flags, f"-I{INCLUDE}", f"-I{SOURCES}", str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.fixture(scope="module", params=["-O0", "-O2"])
def real_library(request, tmp_path_factory):
    if not (INCLUDE / HEADER).exists():
        pytest.skip(f"this MindSpore has no {HEADER}")
    folder = tmp_path_factory.mktemp("real")
    for name in ("ir/anf.h", "include/utils/anfalgo.h"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(STUB)
    (folder / "kernel.cc").write_text(CODE)
    return compiled(folder, folder / "kernel.cc", request.param, f"-I{folder}")


def run(op, mode):
    @mode
    def call(x):
        return op(x)

    return call(Tensor(X)).asnumpy()


@pytest.mark.parametrize("custom", [ops.Custom, polyop.Custom], ids=["MindSpore", "polyop"])
def test_a_library_of_mindspore_s_header(real_library, custom, mode):
    op = custom(f"{real_library}:Real", out_dtype=lambda x: x, func_type="aot")
    op.add_prim_attr("reg_op_name", "Real")  # MindSpore 2.10 reads it where a library has an infer function
    op.add_prim_attr("a_name_that_is_longer_than_16", 1)
    np.testing.assert_array_equal(run(op, mode), 3 * X.T)


def test_on_numpy_arrays(real_library):
    op = polyop.Custom(
        f"{real_library}:Real", out_shape=lambda x: [x[1], x[0]], out_dtype=lambda x: x, func_type="aot"
    )
    np.testing.assert_array_equal(op(X), X.T)


@pytest.mark.parametrize("custom", [ops.Custom, polyop.Custom], ids=["MindSpore", "polyop"])
def test_every_kind_of_attribute(tmp_path, custom, mode):
    path = compiled(
        tmp_path, SOURCES / "aot_attributes.cc", '-DHEADER="mindspore_aot_extra.h"', f"-I{SOURCES.parents[1]}"
    )
    op = custom(f"{path}:Sum", func_type="aot")
    attributes = {"flag": True, "whole": 2, "real": 0.5, "text_whose_name_is_longer_than_16": "four"}
    attributes |= {"ints": [1, 2], "floats": [0.25, 0.5], "rows": [[1], [2, 3]], "real_rows": [[0.5], [1.0]]}
    attributes["reg_op_name"] = "Sum"
    for name, value in attributes.items():
        op.add_prim_attr(name, value)
    np.testing.assert_array_equal(run(op, mode), np.float32(1 + 2 + 0.5 + 4 + 3 + 0.75 + 6 + 1.5) * X)
