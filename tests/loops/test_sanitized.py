"""Compiled kernels under AddressSanitizer and ThreadSanitizer, without Python, on polyop's own threads."""

import os
import platform
import random
import shlex
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from loop_samples import driver
from loop_samples.reference import gradient, gradient_arrays, typed
from loop_samples.windows import Windows
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.targets import isa
from threads_sources import FLAGS, THREADS

COMPILER = shlex.split(os.environ.get("CXX", "c++"))

POOL = """
#include "threads.h"
extern "C" int loops_pool(polyop_body body, void* context, int64_t begin, int64_t end, int64_t chunk, int threads) {
  return polyop::parallel(body, context, begin, end, chunk, threads);
}
"""


def sanitized(batch, folder, kind, kernels, calls):
    """Build the kernels and polyop's threads with a sanitiser, and run every call."""
    library = subprocess.run(
        [*COMPILER, f"-print-file-name=lib{kind}.so"], capture_output=True, text=True, check=True
    )
    if not library.stdout.startswith("/"):
        pytest.skip(f"not run: {COMPILER[0]} has no lib{kind}.so")
    option = {"asan": "-fsanitize=address", "tsan": "-fsanitize=thread"}[kind]
    (folder / "driver.c").write_text(driver.program(batch.text(kernels, isa.available()[0]), calls))
    (folder / "pool.cc").write_text(POOL)
    (folder / "inputs").write_bytes(driver.inputs(calls))
    own = ["-O1", "-g1", option, "-DLOOPS_POOL", "-c", folder / "driver.c", "-o", folder / "driver.o"]
    subprocess.run([*batch.COMPILER, *own], check=True)
    pool = [folder / "pool.cc", *THREADS]
    flags = [*FLAGS, "-O1", "-g1", option]
    program = folder / "driver"
    subprocess.run([*COMPILER, *flags, *pool, folder / "driver.o", "-o", program, "-ldl", "-lm"], check=True)
    # ThreadSanitizer wants some addresses for itself, which a randomised layout may have taken
    fixed = ["setarch", platform.machine(), "-R"] if kind == "tsan" and shutil.which("setarch") else []
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    # the pool's workers are never joined, and what they use lives as long as the process
    environment |= {"ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "exitcode=66"}
    done = subprocess.run(
        [*fixed, program, "3", folder / "inputs"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr[-4000:]) == (0, ""), done.stdout[-400:]
    assert done.stdout.splitlines()[-1] == "all ran"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["asan", "tsan"])
def test_programs_of_the_table(kind, batch, programs, tmp_path):
    chosen = [p for p in programs.PROGRAMS if "functions" not in p.name]
    if kind == "tsan":  # programs whose threads share tensors or rows, or have private sums
        names = (
            "matmul_ijk gemm_in_place syrk column_reductions histogram diagonal nested_ifs shifted_under_if"
        )
        names += " row_temporary tile_temporary jacobi scan whole_sum count_true guarded atax"
        chosen = [p for p in chosen if p.function.__name__ in names.split()]
    kernels, calls = [typed(program) for program in chosen], []
    for number, (program, kernel) in enumerate(zip(chosen, kernels, strict=True)):
        for sizes in program.sizes()[2 :: 2 if kind == "asan" else 3]:
            arrays = program.arrays(sizes)
            outputs = driver.outputs_alone(kernel, interpret(kernel, arrays, program.attributes))
            calls.append(driver.Call(number, arrays, outputs, program.attributes))
    sanitized(batch, tmp_path, kind, kernels, calls)


BACKWARD = "matmul_ijk conv softmax layernorm rms_norm column_reductions row_reductions stencil two_stencils"
BACKWARD += " scan prefix_sum indirect scatter_add row_temporary leaky_relu triangular_sum"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["asan", "tsan"])
def test_gradients_of_programs_of_the_table(kind, batch, programs, tmp_path):
    kernels, calls = [], []
    for program in programs.PROGRAMS:
        if program.function.__name__ not in BACKWARD.split() or program.attributes:
            continue
        kernel = gradient(program)
        for index in range(len(program.sizes()))[2::4]:
            arrays = gradient_arrays(program, index)
            calls.append(driver.Call(len(kernels), arrays, interpret(kernel, arrays)))
        kernels.append(kernel)
    assert len(kernels) >= 12
    sanitized(batch, tmp_path, kind, kernels, calls)


@pytest.mark.slow
def test_random_programs_stay_inside(generate, batch, tmp_path):
    """Also with an index out of range: the kernel fails, and touches nothing outside its tensors."""
    kernels, calls = [], []
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
            outputs = driver.outputs_alone(kernel, interpret(replace(kernel, body=()), arrays))
            calls.append(driver.Call(number, arrays, outputs, refused=refused))
        kernels.append(kernel)
    sanitized(batch, tmp_path, "asan", kernels, calls)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["asan", "tsan"])
@pytest.mark.parametrize("form", ["gather", "scatter"])
def test_random_windows_stay_inside(form, kind, batch, generate, tmp_path):
    every = [Windows(form, seed) for seed in range(24)]
    every = [one for one in every if one.axes + 2 <= driver.AXES]
    kernels, calls = [], []
    for windows in every:
        kernel = parse(generate.function_of(windows.text), windows.types, windows.attributes)
        for number in range(8):
            arrays = windows.arrays(number, special=number == 3)
            try:
                outputs, refused = interpret(kernel, arrays, windows.attributes), False
            except IndexError:
                outputs, refused = interpret(replace(kernel, body=()), arrays, windows.attributes), True
            calls.append(driver.Call(len(kernels), arrays, outputs, windows.attributes, refused))
        kernels.append(kernel)
    sanitized(batch, tmp_path, kind, kernels, calls)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["asan", "tsan"])
def test_loops_that_run_together(kind, batch, generate, tmp_path):
    kernels, calls = [], []
    for number in range(12):
        function = generate.function_of(generate.chain(f"sanitized {number}"))
        kernels.append(parse(function, [("float64", 2)] * 3, {}))
        for size in ((7, 5), (20, 9)):
            arrays = [np.full(size, k + 1.0) for k in range(3)]
            outputs = driver.outputs_alone(kernels[-1], interpret(kernels[-1], arrays))
            calls.append(driver.Call(number, arrays, outputs))
    sanitized(batch, tmp_path, kind, kernels, calls)


EMPTY_WINDOW = """
def f(x, w):
    y = output_tensor((w.shape[0], 70), x.dtype)
    for o in range(w.shape[0]):
        for i in range(70):
            for c in range(x.shape[0]):
                for p in range(w.shape[1]):
                    y[o, i] += x[c, i + p] * w[o, p]
    return y
"""
EXCLUDED = """
def f(x, w):
    y = output_tensor((w.shape[0],), x.dtype)
    for o in range(w.shape[0]):
        total = 0.0
        for g in range(8):
            total += x[{index}, 0] * w[o, 0] if {condition} else 0.0
        y[o] = total
    return y
"""
EDGES = [  # what the iterations that read exclude is outside: its text, and sizes of x and w
    (EMPTY_WINDOW, (3, 0), (9, 0)),
    (EXCLUDED.format(index="g * w.shape[0] + o", condition="g < 4"), (156, 1), (39, 1)),
    (EXCLUDED.format(index="(g - 4) * w.shape[0] + o", condition="g >= 4"), (156, 1), (39, 1)),
    (EXCLUDED.format(index="g * w.shape[0] + o - 3", condition="g <= 3 and o > 2"), (156, 1), (39, 1)),
]


@pytest.mark.slow
def test_what_is_not_read_is_not_touched(batch, generate, tmp_path):
    kernels, calls = [], []
    for source, *shapes in EDGES:
        kernel = parse(generate.function_of(source), [("float32", 2)] * 2, {})
        arrays = [np.ones(shape, "float32") for shape in shapes]
        calls.append(driver.Call(len(kernels), arrays, interpret(kernel, arrays)))
        kernels.append(kernel)
    sanitized(batch, tmp_path, "asan", kernels, calls)
