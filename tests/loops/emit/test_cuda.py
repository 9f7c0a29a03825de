"""Loop kernels in CUDA: run in an emulation of blocks and threads, and compiled by nvcc.

No GPU is used: what is emitted is compiled, not run on hardware.
"""
# ruff: noqa: F821 - the words of the language

import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from loop_samples.reference import close, expected, typed
from polyop.core.errors import KernelError
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret

ORDERS = (1, 2, 3)
EACH = 25
HIP = ["clang++", "-x", "hip", "-nogpulib", "--rocm-path=/usr"]
needs_hip = pytest.mark.skipif(
    shutil.which("clang++") is None or not Path("/usr/include/hip/hip_runtime.h").exists(),
    reason="no compiler or headers of HIP: apt-get install clang libamdhip64-dev",
)
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")


@pytest.fixture(scope="session")
def table(emulate, programs):
    """The library of all programs of the table."""
    return emulate.build(emulate.text(map(typed, programs.PROGRAMS)))


@pytest.fixture(scope="session")
def checked_table(emulate, programs):
    """The same in the authors' order, with every index checked."""
    return emulate.build(emulate.text(map(typed, programs.PROGRAMS), checked=True))


@pytest.mark.slow
def test_emulated_is_interpreted(program, table, emulate, batch, programs, record_property):
    number = programs.PROGRAMS.index(program)
    run = batch.bound(program.function, program.rows, program.attributes, table, number)
    for index, sizes in enumerate(program.sizes()):
        arrays, bits = program.arrays(sizes), set()
        for order in ORDERS:
            with emulate.order(order):
                results = run(*(a.copy() for a in arrays))
            for one, other in zip(expected(program, index), results, strict=True):
                close(one, other, program.rough, f"{sizes}, order {order}")
            bits.add(b"".join(a.tobytes() for a in results))
        assert len(bits) == 1, f"{sizes}: the order of threads changes the result"
    assert emulate.count(table, "live") == 0
    record_property("target", "cuda: ran in an emulation of threads")


def signs(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 1 / sign(x[i])
    return y


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_sign_of_minus_zero_is_plus_zero(dtype, emulate, batch, programs):
    program = programs.Program(signs, f"{dtype} n")
    run = batch.bound(signs, program.rows, {}, emulate.build(emulate.text([typed(program)])), 0)
    x = np.array([-0.0, 0.0, -2.0, 3.0, np.nan], dtype)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(run(x)[0], 1 / np.sign(x))


@pytest.mark.slow
def test_checked_is_interpreted(program, checked_table, batch, programs):
    number = programs.PROGRAMS.index(program)
    run = batch.bound(program.function, program.rows, program.attributes, checked_table, number)
    for index, sizes in enumerate(program.sizes()[:-3]):
        results = run(*program.arrays(sizes))
        for one, other in zip(expected(program, index), results, strict=True):
            close(one, other, program.rough, str(sizes))


@pytest.mark.slow
def test_random_programs(generate, emulate, batch):
    samples = [generate.Generator(random.Random(f"cuda {k}")) for k in range(EACH)]
    functions = [program.function() for program in samples]
    kernels = [parse(f, p.types, {}) for f, p in zip(functions, samples, strict=True)]
    path = emulate.build(emulate.text(kernels))
    compared = 0
    for k, (program, kernel) in enumerate(zip(samples, kernels, strict=True)):
        run = batch.bound(functions[k], program.types, {}, path, k)
        for ragged in (False, False, True):
            arrays = program.arrays(ragged=ragged)
            try:
                wanted = interpret(kernel, arrays)
            except IndexError:
                with pytest.raises(KernelError, match="which has size"):
                    run(*(a.copy() for a in arrays))
                continue
            if not generate.exact(wanted, program.dtype):
                continue
            for order in ORDERS:
                with emulate.order(order):
                    results = run(*(a.copy() for a in arrays))
                for one, other in zip(wanted, results, strict=True):
                    np.testing.assert_array_equal(one, other, err_msg=program.text)
            compared += 1
    assert compared > EACH
    assert emulate.count(path, "live") == 0


@pytest.mark.slow
@needs_hip
@pytest.mark.parametrize(("architecture", "every"), [("gfx90a", 1), ("gfx1030", 4)])
def test_a_compiler_of_hip_takes_the_table(architecture, every, programs, emulate, tmp_path, record_property):
    """Waves of gfx90a have 64 threads, and those of gfx1030 32."""
    source, text = tmp_path / "all.hip", tmp_path / "all.s"
    source.write_text(emulate.text(map(typed, programs.PROGRAMS[::every])))
    command = [
        *HIP,
        f"--offload-arch={architecture}",
        "-std=c++17",
        "-O1",
        "-w",
        f"-I{emulate.INCLUDE}",
        source,
    ]
    for part in (["--cuda-device-only", "-S", "-o", text], ["--cuda-host-only", "-fsyntax-only"]):
        done = subprocess.run([*command, *part], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
    assert f'.amdgcn_target "amdgcn-amd-amdhsa--{architecture}"' in text.read_text()
    assert "polyop_loops_loops_0" in text.read_text()
    record_property("target", "hip: compiled by clang")


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize(("architecture", "every"), [(90, 1), (80, 4)])
def test_nvcc_compiles_the_table(architecture, every, programs, emulate, tmp_path, record_property):
    source, object_file = tmp_path / "all.cu", tmp_path / "all.o"
    source.write_text(emulate.text(map(typed, programs.PROGRAMS[::every])))
    flags = ["-std=c++17", "-O1", f"-arch=sm_{architecture}", "-Werror=all-warnings", f"-I{emulate.INCLUDE}"]
    done = subprocess.run(
        ["nvcc", *flags, "-c", source, "-o", object_file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:4000]
    assert b"loops_0" in object_file.read_bytes()
    record_property("target", "cuda: compiled by nvcc")
