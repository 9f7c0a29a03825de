"""clang in place of gcc: a C kernel, a C++ module, an operator library and a loop kernel with its gradient."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

C_KERNEL = """
import numpy as np, polyop
code = '''
#include "polyop/abi.h"
int doubled(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra) {
  const float *x = params[0];
  float *y = params[1];
  for (int64_t i = 0; i < shapes[0][0]; ++i) y[i] = 2 * x[i];
  return 0;
}
'''
kernel = polyop.source(function="doubled", code=code, language="c")
op = polyop.operator("clang::doubled(Tensor x) -> Tensor", kernel, infer="x")
assert op(np.arange(3, dtype=np.float32)).tolist() == [0, 2, 4]
"""
MODULE = """
import pathlib, sys, numpy as np, polyop
source = pathlib.Path(sys.argv[1]) / "examples" / "08_cpp_module" / "smooth.cpp"
ops = polyop.CustomOpBuilder("clang_smooth", [source], backend="CPU").load()
assert [name for name in dir(ops) if not name.startswith("_")]
"""
LIBRARY = """
import pathlib, sys, polyop
source = pathlib.Path(sys.argv[1]) / "examples" / "11_operator_library" / "ops.cpp"
assert polyop.load_library(source)
"""
LOOPS = """
import numpy as np, polyop

@polyop.kernel
def clang_softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j])
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] /= total
    return y

x = np.random.default_rng(0).normal(size=(5, 37))
y = np.exp(x) / np.exp(x).sum(1, keepdims=True)
np.testing.assert_allclose(clang_softmax(x), y, rtol=1e-12)
weights = np.arange(185.0).reshape(5, 37)
got = clang_softmax.vjp(x)[1](weights)[0]
np.testing.assert_allclose(got, y * (weights - (y * weights).sum(1, keepdims=True)), rtol=1e-9, atol=1e-9)
"""
ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(C_KERNEL, id="C kernel"),
        pytest.param(MODULE, id="C++ module"),
        pytest.param(LIBRARY, id="operator library"),
        pytest.param(LOOPS, id="loops"),
    ],
)
def test_clang_builds(program, tmp_path):
    clang, clangxx = shutil.which("clang"), shutil.which("clang++")
    if clang is None or clangxx is None:
        pytest.skip("not run: clang is not installed (make clang)")
    (tmp_path / "program.py").write_text(program)
    environment = {
        **os.environ,
        "CC": clang,
        "CXX": clangxx,
        "POLYOP_CACHE_DIR": str(tmp_path / "cache"),
        "POLYOP_LOG": "debug",
    }
    command = [sys.executable, tmp_path / "program.py", ROOT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "polyop.build: built" in done.stderr  # by clang: the folder of the cache was empty
