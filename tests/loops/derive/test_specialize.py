# ruff: noqa: F821 - kernels, whose words are no names here
"""Kernels for given values of the attributes that scale, divide or bound a window."""

import warnings

import numpy as np
import pytest
import torch

import polyop
from polyop.core.errors import FallbackWarning
from polyop.kernels.loop.kernel import LoopKernel
from polyop.loops.derive.specialize import MAX_SPECIALIZED, attributes_to_specialize
from polyop.loops.frontend.parse import parse


def max_pool(x, window: int = 3, stride: int = 2):
    y = output_tensor((x.shape[0], (x.shape[1] - window) // stride + 1), x.dtype)
    for i in range(x.shape[0]):
        for j in range((x.shape[1] - window) // stride + 1):
            largest = x[i, j * stride]
            for k in range(window):
                largest = max(largest, x[i, j * stride + k])
            y[i, j] = largest
    return y


def smooth(x, radius: int, strength: float):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for k in range(2 * radius + 1):
            if i + k - radius >= 0 and i + k - radius < x.shape[0]:
                y[i] += strength * x[i + k - radius]
    return y


def every(x, step: int):
    y = output_tensor(x.shape, x.dtype)
    for i in range(0, x.shape[0], step):
        y[i] = x[i]
    return y


def repeated(x, times: int, power: int):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
    for _t in range(times):
        for i in range(x.shape[0]):
            y[i] = y[i] * x[i] + power * power
    return y


def hashed(x, step: int):
    y = output_tensor(x.shape, "int64")
    for i in range(x.shape[0]):
        y[i] = i // step + step * 0x4000000000000000 * step + (step << 62)
    return y


CHOSEN = {
    max_pool: {"window", "stride"},
    smooth: {"radius"},
    every: {"step"},
    repeated: set(),  # how often a loop runs, and a number among numbers
}


@pytest.mark.parametrize("function", CHOSEN)
def test_which_attributes(function):
    names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    rank = 2 if function is max_pool else 1
    kinds = {name: float if name == "strength" else int for name in names}
    assert attributes_to_specialize(parse(function, [("float32", rank)], kinds)) == CHOSEN[function]


@pytest.mark.slow
def test_values_beside_python():
    operator = polyop.kernel(name="specialize::max_pool")(max_pool)
    x = np.random.default_rng(0).normal(size=(3, 23)).astype(np.float32)
    for window, stride in ((1, 1), (2, 3), (3, 2), (5, 1), (70, 2), (23, 64), (23, 70)):
        if window <= x.shape[1]:
            ours = np.asarray(operator(x, window, stride))
            np.testing.assert_array_equal(ours, operator.python(x, window, stride))


@pytest.mark.slow
def test_gradients_for_several_values_beside_torch():
    operator = polyop.kernel(name="specialize::max_pool_too")(max_pool)
    for window, stride in ((3, 2), (2, 2), (4, 1)):
        x = torch.randn(3, 23, requires_grad=True)
        peer = torch.nn.functional.max_pool1d(x[:, None], window, stride)[:, 0]
        weights = torch.randn(peer.shape)
        (expected,) = torch.autograd.grad(peer, x, weights)
        (found,) = torch.autograd.grad(operator(x, window, stride), x, weights)
        torch.testing.assert_close(found, expected)


def test_constants_that_wrap_around_do_so_in_kernels_of_their_own_too():
    bound, x = polyop.kernel(hashed), np.zeros(9)
    for step in (3, 4, 64, 1000):
        exact = [i // step + step * 2**62 * step + (step << 62) for i in range(9)]
        np.testing.assert_array_equal(bound(x, step), [(e + 2**63) % 2**64 - 2**63 for e in exact])


def test_the_text_has_the_values():
    kernel = LoopKernel(max_pool, ("window", "stride"))
    x = polyop.core.spec.Spec((3, 23), polyop.dtype("float32"))
    assert "k->stride" not in kernel.source([x], {"window": 3, "stride": 2})
    assert "k->stride" in kernel.source([x], {"window": 3, "stride": 1000})


def test_explain_says_which_values_have_kernels_of_their_own():
    kernel = LoopKernel(max_pool, ("window", "stride"))
    x = polyop.core.spec.Spec((3, 23), polyop.dtype("float32"))
    limits = f"a value from 1 to 64 has a kernel of its own, {MAX_SPECIALIZED} kernels at most; other values share one"
    lines = kernel.explain([x], {"window": 3, "stride": 2})
    assert any(line.startswith(f"window and stride: {limits}") for line in lines)
    lines = kernel.explain([x], {"window": 3, "stride": 1000})
    assert any(line.startswith(f"window: {limits}") for line in lines)
    assert any(line.startswith(f"stride=1000 shares a kernel with other values: {limits}") for line in lines)
    lines = kernel.of_all_values().explain([x], {"window": 3, "stride": 2})
    assert not any("kernel of its own" in line for line in lines)


def test_too_many_values_share_one_kernel_and_say_so():
    kernel = LoopKernel(every, ("step",))
    x = polyop.core.spec.Spec((100,), polyop.dtype("float32"))
    made = {id(kernel.typed([x], {"step": step})) for step in range(1, MAX_SPECIALIZED + 1)}
    assert len(made) == MAX_SPECIALIZED
    with pytest.warns(FallbackWarning, match=f"compiled for {MAX_SPECIALIZED} values of step; others share"):
        shared = kernel.typed([x], {"step": MAX_SPECIALIZED + 1})
    assert "step" in shared.attributes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kernel.typed([x], {"step": MAX_SPECIALIZED + 2}) is shared
        assert id(kernel.typed([x], {"step": 1})) in made


def test_a_package_serves_all_values():
    kernel = LoopKernel(every, ("step",))
    x = polyop.core.spec.Spec((100,), polyop.dtype("float32"))
    assert "step" not in kernel.typed([x], {"step": 3}).attributes
    assert "step" in kernel.of_all_values().typed([x], {"step": 3}).attributes
    assert "step" not in kernel.typed([x], {"step": 3}).attributes
