"""PyTorch's profiler shows an operator by its name, and its counter has the operations of loops."""

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

import polyop


@polyop.kernel
def profiled_matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)  # noqa: F821 - a word of the language
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def matrices():
    return torch.rand(4, 5, requires_grad=True), torch.rand(5, 6, requires_grad=True)


@pytest.mark.parametrize("mode", ["eager", "differentiated"])
def test_ranges_have_the_name_of_the_operator(mode):
    a, b = matrices()
    profiled_matmul(a, b).sum().backward()  # compiled before
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        out = profiled_matmul(a if mode == "differentiated" else a.detach(), b)
        if mode == "differentiated":
            out.sum().backward()
    counts = {event.key: event.count for event in profiler.key_averages()}
    assert counts[profiled_matmul.name] >= 1
    assert (f"{profiled_matmul.name}__backward" in counts) == (mode == "differentiated")


def counted(call):
    """Return the operations of a call, by the operator's name."""
    with FlopCounterMode(display=False) as counter:
        call()
    return {str(packet): flops for packet, flops in counter.get_flop_counts()["Global"].items()}


def test_operations_of_a_call_and_of_its_derived_gradient():
    a, b = matrices()
    name = profiled_matmul.name.replace("::", ".")
    for _ in range(2):  # the counter is active when PyTorch first hears of the operators, and then not
        flops = counted(lambda: profiled_matmul(a, b).sum().backward())
        assert flops[name] == 2 * 4 * 5 * 6 == counted(lambda: torch.mm(a, b))["aten.mm"]
        assert flops[f"{name}__backward"] == 2 * flops[name]


def test_an_operator_that_is_no_loops_has_no_count():
    op = polyop.operator("profiled::twice(Tensor x) -> Tensor", lambda x: 2 * x, infer="x")
    assert counted_or_none(lambda: op(torch.ones(3))) == 0


def counted_or_none(call):
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


@polyop.kernel
def divided_sum(x, k: int):
    y = np.zeros((1,), x.dtype)
    if k != 0:
        for i in range(x.shape[0] // k):
            y[0] += x[i]
    return y


def test_a_range_that_divides_by_zero_and_never_runs():
    assert counted_or_none(lambda: divided_sum(torch.ones(6), 2)) > 0
    with FlopCounterMode(display=False):
        assert divided_sum(torch.ones(6), 0) == 0
