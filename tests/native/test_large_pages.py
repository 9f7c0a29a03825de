"""Large results lie on large pages, where the system has them: each page of new memory costs a fault."""

import mmap
import pathlib
import re

import numpy as np
import pytest

import polyop

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@polyop.kernel(name="large_pages::twice")
def twice(x):
    y = np.zeros(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2
    return y


def asks_for_large_pages(address):
    """Return whether the mapping of an address has the flag that madvise sets."""
    text = pathlib.Path("/proc/self/smaps").read_text(errors="replace")  # a file may have any name
    for begin, end, flags in re.findall(r"^(\w+)-(\w+) .*?^VmFlags:(.*?)$", text, re.M | re.S):
        if int(begin, 16) <= address < int(end, 16):
            return "hg" in flags.split()
    raise AssertionError(f"{address:#x} is in no mapping")


@pytest.fixture
def pages():
    """Skip where the system knows no large pages."""
    try:
        with mmap.mmap(-1, 1 << 22) as memory:
            memory.madvise(mmap.MADV_HUGEPAGE)
    except (AttributeError, OSError) as problem:
        pytest.skip(f"the system has no large pages: {problem}")


@pytest.mark.parametrize("mode", ["plain", "gradient", "compiled"])
@pytest.mark.usefixtures("pages")
def test_a_large_result_of_pytorch(mode):
    x = torch.ones(16 << 20, requires_grad=mode == "gradient")
    assert not asks_for_large_pages(x.data_ptr() + x.nbytes // 2)  # PyTorch itself does not ask
    result = torch.compile(twice, backend="eager")(x) if mode == "compiled" else twice(x)
    assert asks_for_large_pages(result.data_ptr() + result.nbytes // 2)
    if mode == "gradient":
        result.sum().backward()
        assert asks_for_large_pages(x.grad.data_ptr() + x.nbytes // 2)
    assert result[-1] == 2


@pytest.mark.usefixtures("pages")
def test_a_small_result_does_not():
    assert not asks_for_large_pages(twice(torch.ones(1 << 16)).data_ptr())


@pytest.mark.usefixtures("pages")
def test_a_large_result_of_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    result = jax.jit(twice)(np.ones(16 << 20, np.float32)).block_until_ready()
    assert asks_for_large_pages(result.unsafe_buffer_pointer() + result.nbytes // 2)
