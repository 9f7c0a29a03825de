"""CUDA sources: compiled if nvcc is installed, never run on a GPU."""

import ctypes
import shutil
import subprocess

import pytest

from polyop.build import build, compilers, cuda
from polyop.core.errors import BuildError

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")

SCALE = """
#include <cstdint>
#include "polyop/abi.h"
__global__ void scale(const float *x, float *y, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
extern "C" int Scale(int, void **params, int *, int64_t **shapes, const char **, void *stream, void *) {
  scale<<<1, 32, 0, static_cast<cudaStream_t>(stream)>>>((float *)params[0], (float *)params[1], shapes[0][0]);
  return cudaGetLastError();
}
extern "C" int answer() { return 42; }
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.slow
@needs_nvcc
def test_cuda_and_cxx_in_one_library(tmp_path):
    folder = tmp_path / "a b"
    folder.mkdir()
    (folder / "n.h").write_text("#define N 1\n")
    (folder / "part.cu").write_text('#include "n.h"\nextern "C" int part() { return N; }\n' + SCALE)
    whole = 'extern "C" int part();\nextern "C" int whole() { return part() + 1; }'
    options = {
        "code": whole,
        "flags": ["-Wall", "-DUSED"],
        "cuda_architectures": ["sm_90"],
        "link_flags": [f"-Wl,-rpath,{folder}"],
    }
    built = build([folder / "part.cu"], **options)
    library = ctypes.CDLL(str(built))
    assert (library.whole(), library.answer()) == (2, 42)
    assert hasattr(library, "Scale")
    assert str(folder).encode() in built.read_bytes()  # the run-time path, its space kept
    assert build([folder / "part.cu"], **options) == built
    (folder / "n.h").write_text("#define N 2\n")
    assert build([folder / "part.cu"], **options) != built


@needs_nvcc
def test_compile_error_of_nvcc(tmp_path):
    source = tmp_path / "bad.cu"
    source.write_text("__global__ void f() {\n  missing_name;\n}\n")
    with pytest.raises(
        BuildError, match=r"bad\.cu: cannot be compiled\n  defined at .*bad\.cu:2\n(.|\n)*missing_name"
    ):
        build([source], cuda_architectures=["90"])


@needs_nvcc
@pytest.mark.parametrize("name", ["sm_90", "compute_90", "90", "9.0"])
def test_spellings_of_an_architecture(name):
    nvcc = compilers.find("cuda")
    assert cuda.architecture_flags(nvcc, [name]) == [
        "-gencode=arch=compute_90,code=sm_90",
        "-gencode=arch=compute_90,code=compute_90",
    ]


@needs_nvcc
def test_several_architectures_and_ptx_of_the_newest():
    flags = cuda.architecture_flags(compilers.find("cuda"), ["sm_90a", "sm_80"])
    assert flags == [
        "-gencode=arch=compute_90a,code=sm_90a",
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90a,code=compute_90a",
    ]


@needs_nvcc
def test_default_architectures_are_those_the_toolkit_knows():
    nvcc = compilers.find("cuda")
    listed = subprocess.run(
        [*nvcc.command, "--list-gpu-arch"], capture_output=True, text=True, check=True
    ).stdout.split()
    flags = cuda.architecture_flags(nvcc, None)
    assert flags
    assert {flag.split("arch=")[1].split(",")[0] for flag in flags} <= set(listed)
    assert sum("code=compute_" in flag for flag in flags) == 1


def test_without_a_gpu_code_is_for_all_usual_ones(tmp_path, monkeypatch):
    usual = {"V100": 70, "T4": 75, "A100": 80, "A10": 86, "L4": 89, "H100": 90, "B200": 100, "RTX 5090": 120}
    program = tmp_path / "nvcc"  # a toolkit that knows all GPUs but the oldest, as those of today
    program.write_text("#!/bin/sh\nprintf 'compute_%s\\n' 75 80 86 87 88 89 90 100 103 110 120 121\n")
    program.chmod(0o755)
    monkeypatch.setattr(cuda, "_own_architectures", tuple)
    flags = cuda.architecture_flags(compilers.Compiler((str(program),), "nvcc", "release 13.0"), None)
    codes = [flag.rpartition("code=")[2] for flag in flags]
    assert codes == [*(f"sm_{number}" for name, number in usual.items() if name != "V100"), "compute_120"]


@needs_nvcc
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hopper", "must be written like sm_90, but got 'hopper'"),
        ("sm_20", r"must be one that the toolkit knows, but got sm_20\n  CUDA \d+\.\d+ knows sm_"),
    ],
)
def test_unknown_architecture(name, message):
    with pytest.raises(BuildError, match=f"CUDA architecture: {message}"):
        build(code=SCALE, language="cuda", cuda_architectures=[name])


def test_no_nvcc(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDACXX", str(tmp_path / "nvcc"))
    with pytest.raises(
        BuildError,
        match=r"CUDACXX=.*nvcc: must name a program that exists\n  install the CUDA toolkit, or name nvcc in CUDACXX",
    ):
        build(code=SCALE, language="cuda")
