"""HIP sources: compiled by clang if the headers of HIP are installed, never run on a GPU."""

import shutil
from pathlib import Path

import pytest

import polyop
from polyop.build import build, compilers
from polyop.core.errors import BuildError
from polyop.loops.library.options import Options, language_of

CLANG = Path(shutil.which("clang++") or "none").resolve()
NEEDED = [
    CLANG.with_name("clang-offload-bundler"),
    CLANG.with_name("ld.lld"),
    Path("/usr/include/hip/hip_runtime.h"),
]
needs_hip = pytest.mark.skipif(
    not all(file.exists() for file in NEEDED),
    reason="no compiler or headers of HIP: apt-get install clang clang-tools lld libamdhip64-dev",
)
SCALE = """
#include <hip/hip_runtime.h>
#include <cstdint>
#include "polyop/abi.h"
// HIP's own threadIdx.x needs the device's library
__device__ int64_t threadIdx_x() { return __builtin_amdgcn_workitem_id_x(); }
__global__ void scale(const float *x, float *y, int64_t n) {
  const int64_t i = threadIdx_x();
  if (i < n) y[i] = 2 * x[i];
}
extern "C" int Scale(int, void **params, int *, int64_t **shapes, const char **, void *stream, void *) {
  scale<<<1, 32, 0, static_cast<hipStream_t>(stream)>>>((float *)params[0], (float *)params[1], shapes[0][0]);
  return hipGetLastError();
}
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.slow
@needs_hip
def test_a_source_is_built_for_gpus(tmp_path, monkeypatch):
    monkeypatch.setenv("HIPCXX", "clang++ --rocm-path=/usr -nogpulib --offload-arch=gfx90a")
    file = tmp_path / "scale.hip"
    file.write_text(SCALE)
    library = Path(build(file, link_flags=["-lamdhip64"])).read_bytes()
    assert b"Scale" in library and b"gfx90a" in library and b"libamdhip64.so" in library


@pytest.mark.slow
@needs_hip
def test_a_source_is_a_kernel_for_the_devices_that_pytorch_calls_cuda(tmp_path, monkeypatch):
    monkeypatch.setenv("HIPCXX", "clang++ --rocm-path=/usr -nogpulib --offload-arch=gfx90a")
    kernel = polyop.source(function="Scale", code=SCALE, language="hip", link_flags=["-lamdhip64"])
    assert kernel.device == "cuda"


def test_without_a_compiler_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(compilers, "_TOOLKITS", {})
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("HIPCXX", raising=False)
    (tmp_path / "scale.hip").write_text(SCALE)
    words = r"no HIP compiler was found \(tried hipcc\)\n  install ROCm, or name a compiler of HIP in HIPCXX"
    with pytest.raises(BuildError, match=words):
        build(tmp_path / "scale.hip")


@pytest.mark.parametrize(
    ("programs", "language"), [("nvcc", "cuda"), ("hipcc", "hip"), ("nvcc hipcc", "cuda")]
)
def test_loop_kernels_are_hip_where_only_hip_has_a_compiler(programs, language, tmp_path, monkeypatch):
    monkeypatch.setattr(compilers, "_TOOLKITS", {})
    for name in ("CUDA_HOME", "CUDA_PATH", "CUDACXX", "HIPCXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    for program in programs.split():
        (tmp_path / program).touch(mode=0o755)
    assert language_of(Options("cuda")) == language
    monkeypatch.setenv("CUDACXX", "/no/such/nvcc")
    assert language_of(Options("cuda")) == "cuda"  # its error says that it does not exist


def test_what_a_build_of_hip_cannot_have(tmp_path, monkeypatch):
    monkeypatch.setenv("HIPCXX", "c++")
    monkeypatch.setenv("CUDACXX", "c++")
    files = {"a.hip": SCALE, "b.cu": "int b;", "c.cc": "#include <torch/library.h>\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    hip, cuda, pytorch = (tmp_path / name for name in files)
    with pytest.raises(BuildError, match="is HIP, and other sources of this build are CUDA\n  build two lib"):
        build([hip, cuda])
    with pytest.raises(
        BuildError, match="c.cc includes PyTorch's headers: PyTorch for ROCm is not supported"
    ):
        build([hip, pytorch])
    with pytest.raises(BuildError, match="a.hip: is HIP, and torch=True: PyTorch for ROCm is not supported"):
        build(hip, torch=True)
    with pytest.raises(BuildError, match='is HIP, and CUDA architectures are given\n  HIPCXX="hipcc --off'):
        build(hip, cuda_architectures=["sm_90"])
