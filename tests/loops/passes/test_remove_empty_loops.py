# ruff: noqa: B007, F821, F841 - kernels, whose words are no names here and whose loops do nothing
"""Empty loops and conditions are removed, but the indices that they read are still checked."""

import numpy as np
import pytest

from polyop import Custom
from polyop.core.errors import KernelError
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import For, statements
from polyop.loops.pipeline import schedule

pytestmark = pytest.mark.filterwarnings("error")  # a pass that fails gives a FallbackWarning


def passes_over(x, sizes):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2
        for j in range(sizes[5]):
            pass
    for j in range(x.shape[0]):
        pass
    return y


def asks(x, sizes):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2
        if sizes[5] > i:
            pass
        else:
            pass
    return y


def names_an_index(x, sizes):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2
        for j in range(sizes[i]):
            k = j + 1
    return y


def never_inside(x, sizes):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2
    for i in range(1, x.shape[0] - 1):
        if not (i + 1 < x.shape[0]):
            y[i] += x[i] * sizes[0]
    return y


def never_in_any(x, sizes):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2
    for i in range(1, x.shape[0] - 1):
        for j in range(sizes[i]):
            if not (i + 1 < x.shape[0]):
                y[i] += x[i] * j
    return y


KERNELS = [passes_over, asks, names_an_index, never_inside, never_in_any]


@pytest.mark.parametrize("function", KERNELS)
@pytest.mark.parametrize("length", [0, 1, 2, 5, 40])
def test_equal_to_the_function_run_as_python(function, length):
    x, sizes = np.arange(length, dtype="float32"), np.arange(3, length + 9)
    np.testing.assert_array_equal(Custom(function, func_type="akg")(x, sizes), x * 2)


@pytest.mark.parametrize("function", [passes_over, asks, names_an_index, never_in_any])
def test_an_index_that_an_empty_loop_reads_is_checked(function):
    with pytest.raises(KernelError, match=r"dimension 0 of sizes, which has size 2"):
        Custom(function, func_type="akg")(np.ones(8, "float32"), np.ones(2, "int64"))


@pytest.mark.slow(2)
@pytest.mark.parametrize("function", KERNELS)
def test_the_gradient_is_that_of_the_other_statements(function):
    torch = pytest.importorskip("torch", reason="its gradients are of PyTorch's tensors")
    x = torch.arange(6, dtype=torch.float64, requires_grad=True)
    y = Custom(function, func_type="akg")(x, torch.arange(3, 15))
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [2.0] * 6


def test_a_loop_that_does_nothing_and_reads_nothing_is_removed():
    kernel = parse(passes_over, [("float32", 1), ("int64", 1)], {})
    before, after = (
        [s.var for s in statements(k.body) if isinstance(s, For)] for k in (kernel, schedule(kernel).kernel)
    )
    assert len(before) == 3
    assert after == before[:2]
