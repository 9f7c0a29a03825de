"""An operator library in CUDA: compiled, traced and run on the CPU here; on a GPU where there is one."""

import pathlib
import shutil

import numpy as np
import pytest
import torch

from polyop.core.errors import PolyopError
from polyop.define.library.load import load_library

SOURCE = pathlib.Path(__file__).parents[2] / "sources" / "library_cuda.cu"

pytestmark = pytest.mark.skipif(
    shutil.which("nvcc") is None and not pathlib.Path("/usr/local/cuda/bin/nvcc").exists(),
    reason="not run: nvcc is not installed",
)


@pytest.fixture(scope="session")
def lib():
    return load_library(SOURCE)


@pytest.mark.slow
def test_one_library_serves_both_devices(lib):
    from torch._subclasses import FakeTensorMode

    x = np.array([1.0, 2.0], np.float32)
    np.testing.assert_array_equal(lib.add_one(x), x + 1)
    np.testing.assert_array_equal(lib.add_one.vjp(x)[1](x)[0], x)
    with FakeTensorMode():
        out = lib.add_one.torch(torch.empty(2, 3, device="cuda"))
    assert (out.shape, out.dtype, out.device.type) == ((2, 3), torch.float32, "cuda")
    assert [kernel.device for kernel in lib.add_one.operator.kernels] == ["cpu", "cuda"]


@pytest.mark.slow
def test_a_device_without_a_function(lib):
    from torch._subclasses import FakeTensorMode

    rule = "libcuda::cpu_only has no implementation for CUDA; it has those for CPU"
    with FakeTensorMode(), pytest.raises(PolyopError, match=rule):
        lib.cpu_only.torch(torch.empty(2, device="cuda"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="not run: PyTorch sees no CUDA device")
def test_on_the_device(lib):
    x = torch.arange(1000.0, device="cuda", requires_grad=True)
    out = lib.add_one(x)
    assert torch.equal(out.detach(), x.detach() + 1)
    out.sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))
