"""Kernels for the tests of the native core, compiled with the system's C compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

INCLUDE = Path(__file__).resolve().parents[2] / "include"
PACKAGE_PATH = os.pathsep.join(path for path in sys.path if path)

SOURCE = r"""
#include "polyop/abi.h"
static int64_t count(int ndim, const int64_t *shape) {
  int64_t n = 1;
  for (int i = 0; i < ndim; ++i) n *= shape[i];
  return n;
}
#define HEAD int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra
#define UNUSED (void)nparam, (void)params, (void)ndims, (void)shapes, (void)dtypes, (void)stream, (void)extra
int twice(HEAD) {
  UNUSED;
  const float *x = params[0];
  float *y = params[1];
  for (int64_t i = 0, n = count(ndims[0], shapes[0]); i < n; ++i) y[i] = 2 * x[i];
  return 0;
}
int scale(HEAD) { /* an attribute, and a workspace that it fills and reads back */
  UNUSED;
  double by = 0;
  if (polyop_get_float(extra, "by", &by)) return 1;
  const float *x = params[0];
  float *y = params[1], *scratch = params[2];
  for (int64_t i = 0, n = count(ndims[0], shapes[0]); i < n; ++i) scratch[i] = (float)by * x[i];
  for (int64_t i = 0, n = count(ndims[0], shapes[0]); i < n; ++i) y[i] = scratch[i];
  return 0;
}
int scaleInit(int *ndims, int64_t **shapes, const char **dtypes, void *extra) {
  (void)dtypes;
  const size_t bytes = (size_t)count(ndims[0], shapes[0]) * sizeof(float) + 64;
  struct polyop_extra *self = extra;
  self->functions->set_workspaces(self, &bytes, 1);
  return 0;
}
int fails(HEAD) {
  UNUSED;
  struct polyop_extra *self = extra;
  self->functions->set_error(self, "as it was told to");
  return 7;
}
int says_and_succeeds(HEAD) {
  UNUSED;
  struct polyop_extra *self = extra;
  self->functions->set_error(self, "nothing to see");
  return 0;
}
int fails_silently(HEAD) {
  UNUSED;
  return 9;
}
int fails_in_latin1(HEAD) {
  UNUSED;
  struct polyop_extra *self = extra;
  self->functions->set_error(self, "caf\xe9");
  return 7;
}
int two(HEAD) { /* several outputs, and more parameters than the core keeps on its stack */
  UNUSED;
  float *first = params[nparam - 2], *second = params[nparam - 1];
  for (int64_t i = 0, n = count(ndims[0], shapes[0]); i < n; ++i) {
    first[i] = second[i] = 0;
    for (int k = 0; k < nparam - 2; ++k) first[i] += ((const float *)params[k])[i];
    second[i] = (float)(nparam - 2);
  }
  return 0;
}
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("native")
    (folder / "kernels.c").write_text(SOURCE)
    built = folder / "kernels.so"
    subprocess.run(
        [
            os.environ.get("CC", "cc"),
            "-O1",
            "-shared",
            "-fPIC",
            f"-I{INCLUDE}",
            folder / "kernels.c",
            "-o",
            built,
        ],
        check=True,
    )
    return built


@pytest.fixture(scope="session")
def run_python(library: Path):
    """Return a function that runs code in a new interpreter, where LIBRARY is the built library."""

    def run(code: str) -> str:
        env = {**os.environ, "PYTHONPATH": PACKAGE_PATH, "LIBRARY": str(library)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
