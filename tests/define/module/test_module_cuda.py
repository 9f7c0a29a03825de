"""A CUDA module: compiled and traced here; run only where there is a GPU."""

import pathlib
import shutil

import numpy as np
import pytest
import torch

from polyop import CustomOpBuilder
from polyop.core.errors import NoKernelError

SOURCE = pathlib.Path(__file__).parents[2] / "sources" / "module_cuda.cu"

pytestmark = pytest.mark.skipif(
    shutil.which("nvcc") is None and not pathlib.Path("/usr/local/cuda/bin/nvcc").exists(),
    reason="not run: nvcc is not installed",
)


@pytest.fixture(scope="session")
def module():
    return CustomOpBuilder("cuda_module", [SOURCE], backend="GPU").load()


@pytest.mark.slow
def test_it_compiles_and_its_shapes_are_derived(module):
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        (out,) = module.add_one.torch(torch.empty(2, 3, device="cuda"))
    assert (out.shape, out.dtype, out.device.type) == ((2, 3), torch.float32, "cuda")


@pytest.mark.slow
def test_tensors_on_the_cpu_are_refused_in_words(module):
    with pytest.raises(NoKernelError, match="runs on cuda, and the tensors are on cpu"):
        module.add_one(np.ones(2, np.float32))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="not run: PyTorch sees no CUDA device")
def test_on_the_device(module):
    x = torch.arange(1000.0, device="cuda")
    assert torch.equal(module.add_one(x), x + 1)
