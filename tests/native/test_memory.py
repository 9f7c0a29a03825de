"""Memory does not grow in long runs: nothing that a call allocates outlives its results."""

from __future__ import annotations

import os

import pytest

# After a warm-up of the same work, resident memory may grow by this much: allocators' slack.
# A leak of 16 bytes per call would show as 16 MB in a million calls.
SLACK_MB = 4
SANITIZED = "POLYOP_SANITIZED" in os.environ

COMMON = """
import gc, os, itertools
import numpy as np
def resident_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
def grown(work, times):
    work(max(times // 10, 1000))
    gc.collect()
    before = resident_mb()
    work(times)
    gc.collect()
    print("grown", resident_mb() - before)
LIBRARY = os.environ["LIBRARY"]
"""
TORCH = """
import torch
torch.set_num_threads(1)
"""
OPERATOR = """
import polyop
op = polyop.operator("mem::twice(Tensor x) -> Tensor", f"{LIBRARY}:twice", infer="x",
                     gradient=lambda x, out, grad: (op(grad),))
scale = polyop.operator("mem::scale(Tensor x, float by=2.0) -> Tensor", f"{LIBRARY}:scale", infer="x")
two = polyop.operator("mem::two(Tensor[] xs) -> (Tensor, Tensor)", f"{LIBRARY}:two", infer=lambda xs: (xs[0], xs[0]))
fails = polyop.operator("mem::fails(Tensor x) -> Tensor", f"{LIBRARY}:fails", infer="x")
"""

WORK = {
    "a NumPy call": (
        1_000_000,
        """
def work(times, x=np.ones(8, np.float32)):
    for _ in itertools.repeat(None, times):
        op(x)
""",
    ),
    "a torch call": (
        1_000_000,
        """
def work(times, x=torch.ones(8)):
    for _ in itertools.repeat(None, times):
        op(x)
""",
    ),
    "forward and backward": (
        100_000,
        """
def work(times, g=torch.ones(8)):
    for _ in itertools.repeat(None, times):
        x = torch.ones(8, requires_grad=True)
        op(x).backward(g)
""",
    ),
    "forward and backward through torch.ops": (
        20_000,
        """
def work(times, g=torch.ones(8)):
    for _ in itertools.repeat(None, times):
        x = torch.ones(8, requires_grad=True)
        op.torch(x).backward(g)
""",
    ),
    "an attribute and a workspace": (
        300_000,
        """
def work(times, x=np.ones(8, np.float32)):
    for _ in itertools.repeat(None, times):
        scale(x, 0.5)
""",
    ),
    "a list and two outputs": (
        300_000,
        """
def work(times, xs=[np.ones(8, np.float32)] * 20):
    for _ in itertools.repeat(None, times):
        two(xs)
""",
    ),
    "shapes that keep changing": (
        30_000,
        """
shapes = itertools.product(range(1, 400), range(1, 400))
def work(times, x=np.ones(400 * 400, np.float32)):
    for rows, columns in itertools.islice(shapes, times):
        scale(x[: rows * columns].reshape(rows, columns))
""",
    ),
    "values of an attribute that keep changing": (
        30_000,
        """
values = itertools.count()
def work(times, x=np.ones(8, np.float32)):
    for value in itertools.islice(values, times):
        scale(x, float(value))
""",
    ),
    "kernels that fail": (
        100_000,
        """
def work(times, x=np.ones(8, np.float32)):
    for _ in itertools.repeat(None, times):
        try:
            fails(x)
        except polyop.PolyopError:
            continue
        raise AssertionError("did not fail")
""",
    ),
    "kernels that fail on torch tensors": (
        50_000,
        """
def work(times, x=torch.ones(8)):
    for _ in itertools.repeat(None, times):
        try:
            fails(x)
        except polyop.PolyopError:
            continue
        raise AssertionError("did not fail")
""",
    ),
    "arguments of the wrong kind": (
        30_000,
        """
def work(times, x=np.ones(8, np.float32)):
    for _ in itertools.repeat(None, times):
        for wrong in ((), (x, x), ("x",), (x, None)):
            try:
                op(*wrong)
            except polyop.PolyopError:
                continue
            raise AssertionError("was taken")
""",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORK)
def test_memory_stays_flat(name: str, run_python) -> None:
    times, code = WORK[name]
    if SANITIZED:  # its allocator keeps what was freed, on purpose; it looks for other mistakes
        times //= 100
    if "torch." in code:
        pytest.importorskip("torch", reason="the torch rows need PyTorch")
    parts = (COMMON, TORCH if "torch." in code else "", OPERATOR, code, f"grown(work, {times})")
    answer = run_python("".join(parts))
    grown = float(answer.split("grown")[1])
    assert grown < SLACK_MB or SANITIZED, f"{name}: {times} times grew memory by {grown:.1f} MB"


@pytest.mark.slow
def test_operators_that_are_dropped_are_freed(run_python) -> None:
    code = """
import weakref
def work(times):
    for number in range(times):
        operator = polyop.Custom(f"{LIBRARY}:twice", lambda x: x, lambda x: x, "aot")
        operator(np.ones(3, np.float32))
grown(work, 3000)
gc.collect()
kept = sum(1 for bound in polyop.BoundOperator.alive() if isinstance(bound, polyop.Custom))
print("kept", kept)
"""
    answer = run_python(COMMON + OPERATOR + code)
    assert float(answer.split("grown")[1].split()[0]) < SLACK_MB or SANITIZED
    assert int(answer.split("kept")[1]) <= 2
