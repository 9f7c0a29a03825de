"""One wheel for several CUDA architectures: compiled by nvcc and listed, not run."""

import pathlib
import re
import shutil
import subprocess

import pytest
from wheel_tools import build, contents, install, run

from polyop.core.errors import ArgumentTypeError
from polyop.wheel import OperatorExtension
from polyop.wheel.audit import audit
from polyop.wheel.build_extension import _link_flags

SETUP = """
from setuptools import setup
from polyop.wheel import BuildExtension, OperatorExtension

setup(
    name="cudaops",
    version="1.0",
    ext_modules=[OperatorExtension("cudaops", ["ops.cpp", "ops.cu"], MORE)],
    cmdclass={"build_ext": BuildExtension},
)
"""
CUDA = """
#include <polyop/library.h>
__global__ void twice(const float* x, float* y, int64_t n) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
polyop::Tensor on_gpu(const polyop::Tensor& x) {
  polyop::Tensor y = polyop::empty_like(x);
  twice<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
POLYOP_LIBRARY_IMPL(cudaops, CUDA, m) { m.impl("twice", &on_gpu); }
"""
CPU = """
#include <polyop/library.h>
POLYOP_LIBRARY(cudaops, m) { m.def("twice(Tensor x) -> Tensor"); }
polyop::Tensor on_cpu(const polyop::Tensor& x) {
  polyop::Tensor y = polyop::empty_like(x);
  for (size_t i = 0; i < y.numel(); ++i) y.data_ptr<float>()[i] = 2 * x.data_ptr<float>()[i];
  return y;
}
POLYOP_LIBRARY_IMPL(cudaops, CPU, m) { m.impl("twice", &on_cpu); }
"""
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="not run: nvcc is not installed")


def project(folder, more):
    for name, text in (("setup.py", SETUP.replace("MORE", more)), ("ops.cu", CUDA), ("ops.cpp", CPU)):
        (folder / name).write_text(text)
    return folder


def listed(wheel):
    return [text for label, text in audit(wheel).facts if label == "CUDA"]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    return build(project(tmp_path_factory.mktemp("cuda"), 'cuda_architectures=["sm_80", "sm_90"]'))


@pytest.mark.slow
@needs_nvcc
def test_a_wheel_for_two_architectures(wheel, tmp_path):
    assert re.fullmatch(r"cudaops-1\.0-py3-none-manylinux_2_\d+_\w+\.whl", wheel.name)
    assert listed(wheel) == ["sm_80, sm_90, compute_90"]
    report = audit(wheel)
    assert not report.breaches
    assert ("operator", "cudaops::twice(Tensor x) -> Tensor  [CPU, CUDA]") in report.facts
    program = "import numpy as np, cudaops; print(cudaops.twice(np.ones(2, np.float32)))"
    assert run("-c", program, PYTHONPATH=str(install(wheel, tmp_path))).stdout == "[2. 2.]\n"


@pytest.mark.slow
@needs_nvcc
def test_cuobjdump_lists_the_same(wheel, tmp_path):
    tool = shutil.which("cuobjdump")
    if tool is None:
        pytest.skip("not run: cuobjdump is not on PATH")
    library = tmp_path / "libcudaops.so"
    library.write_bytes(contents(wheel)["cudaops/libcudaops.so"])

    def listed_by(option):
        done = subprocess.run([tool, option, str(library)], capture_output=True, text=True, check=True)
        return set(re.findall(r"\.(sm_\w+)\.", done.stdout))

    assert listed_by("--list-elf") == {"sm_80", "sm_90"} and listed_by("--list-ptx") == {"sm_90"}


@pytest.mark.slow
@needs_nvcc
def test_the_environment_names_them_too(tmp_path):
    folder = project(tmp_path, "")
    options = ["bdist_wheel", "-d", "dist"]
    run("-W", "ignore", "setup.py", "-q", *options, cwd=folder, POLYOP_CUDA_ARCHITECTURES="sm_90a; 8.6")
    [wheel] = pathlib.Path(folder, "dist").iterdir()
    assert listed(wheel) == ["sm_86, sm_90, compute_90"]


@needs_nvcc
def test_an_architecture_that_the_toolkit_does_not_know(tmp_path):
    folder = project(tmp_path, 'cuda_architectures=["sm_30"]')
    done = run("-W", "ignore", "setup.py", "-q", "build_ext", "--inplace", cwd=folder, check=False)
    assert done.returncode == 1
    assert re.search(
        r"must be one that the toolkit knows, but got sm_30\n +CUDA [\d.]+ knows sm_", done.stderr
    )


@needs_nvcc
def test_device_code_is_linked_for_the_architectures_that_are_asked_for():
    device = OperatorExtension("ops", ["ops.cpp", "ops.cu"], cuda_architectures=["sm_80"])
    assert "-gencode=arch=compute_80,code=sm_80" in _link_flags(device)
    for host in (OperatorExtension("ops", ["ops.cpp"]), OperatorExtension("ops", ["ops.cu"])):
        assert _link_flags(host) == host.link_flags()  # nothing is asked for: the build decides


@pytest.mark.slow
def test_no_cuda_in_a_wheel_for_cpus(tmp_path):
    folder = project(tmp_path, "")
    text = (folder / "setup.py").read_text().replace(', "ops.cu"', "")
    (folder / "setup.py").write_text(text)
    assert listed(build(folder)) == []


def test_options(monkeypatch):
    assert OperatorExtension("a", ["x.cu"]).cuda_architectures is None
    monkeypatch.setenv("POLYOP_CUDA_ARCHITECTURES", " sm_80;90,, 10.0 ")
    assert OperatorExtension("a", ["x.cu"]).cuda_architectures == ["sm_80", "90", "10.0"]
    assert OperatorExtension("a", ["x.cu"], cuda_architectures=["75"]).cuda_architectures == ["75"]
    with pytest.raises(ArgumentTypeError, match=r"must be a list, but got 'sm_80'\n  write \['sm_80'\]"):
        OperatorExtension("a", ["x.cu"], cuda_architectures="sm_80")
