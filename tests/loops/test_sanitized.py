"""Compiled kernels under AddressSanitizer and ThreadSanitizer, without Python, on polyop's own threads."""

import os
import platform
import random
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from polyop.loops.derive.adjoint import adjoint
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.targets import isa

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shlex.split(os.environ.get("CXX", "c++"))

POOL = """
#include "threads.h"
extern "C" int loops_pool(polyop_body body, void* context, int64_t begin, int64_t end, int64_t chunk, int threads) {
  return polyop::parallel(body, context, begin, end, chunk, threads);
}
"""

DRIVER = r"""
#define POLYOP_GRAIN 1
%(kernels)s
int loops_pool(polyop_body, void*, int64_t, int64_t, int64_t, int);
static int loops_three(void) { return 3; }
static void loops_error(struct polyop_extra* self, const char* text) { (void)self, printf("%%s\n", text); }
static int loops_attribute(const struct polyop_extra* self, const char* name, struct polyop_attribute* value) {
  static const int64_t whole[] = {3};
  static const double number[] = {2.0};
  (void)self;
  value->kind = strlen(name) == 1 || name[0] == 's' ? POLYOP_INT : POLYOP_FLOAT;
  value->ints = whole, value->floats = number, value->count = 1;
  return 0;
}
static const struct polyop_extra_functions loops_functions = {
    .attribute = loops_attribute, .set_error = loops_error};
struct loops_row {
  int (*kernel)(int, void**, int*, int64_t**, const char**, void*, void*);
  int count, inputs, refused, ndims[8];
  int64_t shapes[8][4], bytes[8];
};
static const struct loops_row loops_rows[] = {%(rows)s};
int main(int argc, char** argv) {
  struct polyop_extra extra = {1, sizeof extra, &loops_functions, 0};
  FILE* data = argc > 1 ? fopen(argv[1], "rb") : 0;
  if (!data) return 2;
  polyop_parallel = loops_pool;
  polyop_threads = loops_three;
  for (unsigned n = 0; n < sizeof loops_rows / sizeof *loops_rows; ++n) {
    const struct loops_row* row = &loops_rows[n];
    void* params[8] = {0};
    int64_t* shapes[8];
    const char* dtypes[8] = {0};
    int ndims[8];
    for (int k = 0; k < row->count; ++k) {
      params[k] = malloc(row->bytes[k]); /* not one byte more: what is read or written beyond is seen */
      if (k < row->inputs && fread(params[k], 1, row->bytes[k], data) != (size_t)row->bytes[k]) return 3;
      shapes[k] = (int64_t*)row->shapes[k];
      ndims[k] = row->ndims[k];
    }
    const int failed = row->kernel(row->count, params, ndims, shapes, dtypes, 0, &extra);
    if (failed != row->refused) return printf("row %%u: %%d\n", n, failed), 4;
    for (int k = 0; k < row->count; ++k) free(params[k]);
  }
  fclose(data);
  puts("all ran");
  return 0;
}
"""


def row(number, arrays, outputs, refused):
    """Return a row of the driver's table, and the bytes of the inputs."""
    tensors = [*arrays, *outputs]
    shapes = ", ".join("{" + ", ".join(map(str, a.shape)) + "}" for a in tensors)
    ndims, sizes = (
        ", ".join(map(str, numbers)) for numbers in ([a.ndim for a in tensors], [a.nbytes for a in tensors])
    )
    text = f"{{loops_{number}, {len(tensors)}, {len(arrays)}, {int(refused)}, {{{ndims}}}, {{{shapes}}}, {{{sizes}}}}}"
    return text, b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)


def fresh(kernel, outputs):
    """Return those outputs that are not inputs written in place."""
    pairs = zip(kernel.outputs, outputs, strict=True)
    return [array for name, array in pairs if kernel.buffers[name].role == "output"]


def sanitized(batch, folder, kind, kernels, rows):
    """Build the kernels and polyop's threads with a sanitiser, and run every row."""
    library = subprocess.run(
        [*COMPILER, f"-print-file-name=lib{kind}.so"], capture_output=True, text=True, check=True
    )
    if not library.stdout.startswith("/"):
        pytest.skip(f"not run: {COMPILER[0]} has no lib{kind}.so")
    option = {"asan": "-fsanitize=address", "tsan": "-fsanitize=thread"}[kind]
    text = DRIVER % {
        "kernels": batch.text(kernels, isa.available()[0]),
        "rows": ",\n".join(r for r, _ in rows),
    }
    (folder / "driver.c").write_text(text)
    (folder / "pool.cc").write_text(POOL)
    (folder / "inputs").write_bytes(b"".join(data for _, data in rows))
    subprocess.run(
        [*batch.COMPILER, "-O1", "-g1", option, "-c", folder / "driver.c", "-o", folder / "driver.o"],
        check=True,
    )
    pool = [folder / "pool.cc", ROOT / "csrc/threads.cc", ROOT / "csrc/thread_count.cc"]
    flags = ["-std=c++17", "-O1", "-g1", f"-I{ROOT / 'include'}", f"-I{ROOT / 'csrc'}", "-pthread", option]
    program = folder / "driver"
    subprocess.run([*COMPILER, *flags, *pool, folder / "driver.o", "-o", program, "-ldl", "-lm"], check=True)
    # ThreadSanitizer wants some addresses for itself, which a randomised layout may have taken
    fixed = ["setarch", platform.machine(), "-R"] if kind == "tsan" and shutil.which("setarch") else []
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    # the pool's workers are never joined, and what they use lives as long as the process
    environment |= {"ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "exitcode=66"}
    done = subprocess.run(
        [*fixed, program, folder / "inputs"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr[-4000:]) == (0, ""), done.stdout[-400:]
    assert done.stdout.splitlines()[-1] == "all ran"


ATTRIBUTES = {"alpha": 2.0, "beta": 2.0, "n": 3, "steps": 3, "by": 2.0}
"""The attributes that the driver passes to kernels."""


@pytest.mark.parametrize("kind", ["asan", "tsan"])
def test_programs_of_the_table(kind, batch, programs, tmp_path):
    chosen = [p for p in programs.PROGRAMS if "flag" not in p.attributes and "functions" not in p.name]
    if kind == "tsan":  # programs whose threads share tensors or rows, or have private sums
        names = (
            "matmul_ijk gemm_in_place syrk column_reductions histogram diagonal nested_ifs shifted_under_if"
        )
        names += " row_temporary tile_temporary jacobi scan whole_sum count_true guarded atax"
        chosen = [p for p in chosen if p.function.__name__ in names.split()]
    kernels, rows = [], []
    for number, program in enumerate(chosen):
        types = [(dtype, len(axes)) for dtype, axes, _ in program.rows]
        attributes = {name: ATTRIBUTES[name] for name in program.attributes}
        kernels.append(parse(program.function, types, attributes))
        for sizes in program.sizes()[2 :: 2 if kind == "asan" else 3]:
            arrays = program.arrays(sizes)
            outputs = fresh(kernels[-1], interpret(kernels[-1], arrays, attributes))
            rows.append(row(number, arrays, outputs, refused=False))
    sanitized(batch, tmp_path, kind, kernels, rows)


BACKWARD = "matmul_ijk conv softmax layernorm rms_norm column_reductions row_reductions stencil two_stencils"
BACKWARD += " scan prefix_sum indirect scatter_add row_temporary leaky_relu triangular_sum"


@pytest.mark.parametrize("kind", ["asan", "tsan"])
def test_gradients_of_programs_of_the_table(kind, batch, programs, tmp_path):
    kernels, rows = [], []
    for program in programs.PROGRAMS:
        if program.function.__name__ not in BACKWARD.split() or program.attributes:
            continue
        types = [(dtype, len(axes)) for dtype, axes, _ in program.rows]
        forward = parse(program.function, types, {})
        kernel = adjoint(forward, (True,) * len(forward.outputs)).kernel
        names = [n for n in kernel.parameters if n in kernel.buffers]
        if len(names) + len(kernel.outputs) > 8:
            continue  # more than the driver has places for
        for sizes in program.sizes()[2::4]:
            inputs = program.arrays(sizes)
            outputs = interpret(forward, inputs)
            values = dict(zip(names, [*inputs, *outputs, *outputs], strict=True))
            arrays = [a if kernel.buffers[n].shape else np.zeros((), bool) for n, a in values.items()]
            rows.append(row(len(kernels), arrays, interpret(kernel, arrays), refused=False))
        kernels.append(kernel)
    assert len(kernels) >= 12
    sanitized(batch, tmp_path, kind, kernels, rows)


def test_random_programs_stay_inside(generate, batch, tmp_path):
    """Also with an index out of range: the kernel fails, and touches nothing outside its tensors."""
    kernels, rows = [], []
    for number in range(40):
        program = generate.Generator(random.Random(f"inside {number}"))
        kernel = parse(program.function(), program.types, {})
        for ragged in (False, False, True):
            arrays = program.arrays(ragged=ragged)
            try:
                interpret(kernel, arrays)
                refused = False
            except IndexError:
                refused = True
            outputs = fresh(kernel, interpret(replace(kernel, body=()), arrays))
            rows.append(row(number, arrays, outputs, refused))
        kernels.append(kernel)
    sanitized(batch, tmp_path, "asan", kernels, rows)


@pytest.mark.parametrize("kind", ["asan", "tsan"])
def test_loops_that_run_together(kind, batch, generate, tmp_path):
    kernels, rows = [], []
    for number in range(12):
        function = generate.function_of(generate.chain(f"sanitized {number}"))
        kernels.append(parse(function, [("float64", 2)] * 3, {}))
        for size in ((7, 5), (20, 9)):
            arrays = [np.full(size, k + 1.0) for k in range(3)]
            outputs = fresh(kernels[-1], interpret(kernels[-1], arrays))
            rows.append(row(number, arrays, outputs, refused=False))
    sanitized(batch, tmp_path, kind, kernels, rows)
