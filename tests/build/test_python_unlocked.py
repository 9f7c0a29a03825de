"""Functions that release Python's lock, as in an extension that Python calls: polyop calls them without it."""

import pathlib
import subprocess
import sys
import sysconfig

import pytest

SOURCES = pathlib.Path(__file__).parents[1] / "sources"

PLAIN = """
#include <Python.h>
#include <polyop/abi.h>

int doubled(int n, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra) {
  const float *x = params[0];
  float *y = params[1];
  Py_BEGIN_ALLOW_THREADS
  for (int64_t i = 0; i < shapes[0][0]; ++i) y[i] = 2 * x[i];
  Py_END_ALLOW_THREADS
  return 0;
}
"""
CALLS = """
    for call in (f, jax.jit(f)):
        assert call(x).tolist() == [0, 2, 4], f
    assert f(torch.tensor(x)).tolist() == [0, 2, 4], f
"""
START = "import jax, numpy as np, sys, torch, polyop\nx = np.arange(3, dtype=np.float32)\n"


def run(program, *arguments):
    """Run a program in a process of its own: without the lock, releasing it ends the process."""
    command = [sys.executable, "-c", START + program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_kernel_in_c(tmp_path):
    pytest.importorskip("jax", reason="JAX is not installed")
    pytest.importorskip("torch", reason="PyTorch is not installed")
    (tmp_path / "doubled.c").write_text(PLAIN)
    program = f"""
flags = ["-Wall", "-Werror", "-Wextra", "-Wno-unused-parameter", "-isystem", sys.argv[2]]
kernel = polyop.source(sys.argv[1], function="doubled", flags=flags)
for f in (polyop.operator("unlocked::doubled(Tensor x) -> Tensor", kernel, infer="x"),):
{CALLS}
"""
    run(program, tmp_path / "doubled.c", sysconfig.get_paths()["include"])


@pytest.mark.slow
def test_an_extension_of_pytorch():
    """Its operators and its kernel are called without the lock, its Python function with it."""
    pytest.importorskip("jax", reason="JAX is not installed")
    pytest.importorskip("torch", reason="PyTorch is not installed")
    program = f"""
library = polyop.load_library(sys.argv[1])
kernel = polyop.operator("unlocked::kernel(Tensor x) -> Tensor", str(library.path) + ":Doubled", infer="x")
for f in (library.doubled, kernel):
{CALLS}
assert library.tripled(x).tolist() == [0, 3, 6]

import importlib.util, threading
spec = importlib.util.spec_from_file_location(library.path.stem, library.path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
ran = threading.Event()
threading.Thread(target=ran.set).start()
assert module.doubled(torch.tensor(x)).tolist() == [0, 2, 4]
assert ran.wait(60)
"""
    run(program, SOURCES / "torch_unlocked.cpp")
