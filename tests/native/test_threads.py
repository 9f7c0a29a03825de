"""Threads and forked processes call one operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyop
from in_threads import in_threads

SHAPES, CALLS = 20_000, 1500  # more shapes come than the core keeps prepared kernels


@pytest.fixture(scope="session")
def twice(library: Path) -> Any:
    return polyop.operator("threads::twice(Tensor x) -> Tensor", f"{library}:twice", infer="x")


@pytest.fixture(scope="session")
def scale(library: Path) -> Any:
    return polyop.operator("threads::scale(Tensor x, float by=2.0) -> Tensor", f"{library}:scale", infer="x")


@pytest.fixture(scope="session")
def fails(library: Path) -> Any:
    return polyop.operator("threads::fails(Tensor x) -> Tensor", f"{library}:fails", infer="x")


def test_values_are_right_while_entries_are_evicted(twice: Any) -> None:
    def work(number: int) -> None:
        generator = np.random.default_rng(number)
        for size in generator.integers(1, SHAPES, CALLS):
            x = np.full(size, number + size, np.float32)
            result = twice(x)
            assert result.shape == (size,)
            assert (result == 2 * (number + size)).all()

    in_threads(work)
    assert twice.prepared() == 8192


def test_workspaces_are_not_shared(scale: Any) -> None:
    def work(number: int) -> None:
        x = np.arange(1000, dtype=np.float32)
        for _ in range(CALLS):
            assert (scale(x, float(number)) == x * number).all()

    in_threads(work)


def test_forgetting_while_others_call(twice: Any) -> None:
    def work(number: int) -> None:
        x = np.ones(number + 1, np.float32)
        for _ in range(CALLS):
            if number == 0:
                twice.forget()
            assert (twice(x) == 2).all()

    in_threads(work)


def test_errors_stay_with_their_thread(twice: Any, fails: Any) -> None:
    def work(number: int) -> None:
        x = np.ones(number + 1, np.float32)
        for _ in range(CALLS // 5):
            if number % 2:
                assert (twice(x) == 2).all()
                continue
            with pytest.raises(polyop.PolyopError, match=r"the kernel returned 7 \(as it was told to\)"):
                fails(x)

    in_threads(work)


def test_torch_calls_and_gradients(library: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    backward = polyop.operator("threads::back(Tensor g) -> Tensor", f"{library}:twice", infer="g")
    op = polyop.operator(
        "threads::forward(Tensor x) -> Tensor",
        f"{library}:twice",
        infer="x",
        gradient=lambda x, out, g: (backward(g),),
    )

    def work(number: int) -> None:
        for turn in range(CALLS // 5):
            size = 1 + (7 * number + turn) % SHAPES
            x = torch.full((size,), float(number), requires_grad=True)
            result = op(x)
            assert bool((result == 2 * number).all())
            result.sum().backward()
            assert bool((x.grad == 2).all())
            with torch.no_grad():
                assert op(x).grad_fn is None

    in_threads(work)


def test_one_threads_modes_do_not_reach_another(twice: Any) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    x = torch.ones(3)

    def work(number: int) -> None:
        for _ in range(CALLS // 10):
            if number % 2:
                with torch.inference_mode():
                    assert twice(x).is_inference()
            else:
                assert not twice(x).is_inference()

    in_threads(work)


def test_calls_after_a_fork(run_python) -> None:
    code = """
import os, signal, numpy as np, polyop
op = polyop.operator("fork::twice(Tensor x) -> Tensor", os.environ["LIBRARY"] + ":twice", infer="x")
x = np.ones(4, np.float32)
op(x)
child = os.fork()
if child == 0:
    signal.alarm(60)
    right = all((op(np.full(n, 3, np.float32)) == 6).all() for n in range(300))
    again = polyop.operator("fork::later(Tensor x) -> Tensor", os.environ["LIBRARY"] + ":twice", infer="x")
    os._exit(0 if right and (again(x) == 2).all() else 3)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert (op(x) == 2).all()
print("both")
"""
    assert "both" in run_python(code)


@pytest.mark.slow
def test_torch_calls_after_a_fork(run_python) -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    code = """
import os, signal, torch, polyop
op = polyop.operator("fork::twice(Tensor x) -> Tensor", os.environ["LIBRARY"] + ":twice", infer="x",
                     gradient=lambda x, out, grad: (2 * grad,))
op(torch.ones(4))
child = os.fork()
if child == 0:
    signal.alarm(60)
    right = all(bool((op(torch.full((n,), 3.0)) == 6).all()) for n in range(300))
    x = torch.ones(4, requires_grad=True)
    op(x)  # the graph only: PyTorch's own backward threads do not survive a fork
    os._exit(0 if right else 3)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
print("both")
"""
    assert "both" in run_python(code)


def test_fork_in_a_process_with_threads(run_python) -> None:
    code = """
import os, signal, threading, numpy as np, polyop, warnings
warnings.simplefilter("ignore")  # Python 3.12 warns of forks beside threads
op = polyop.operator("fork::twice(Tensor x) -> Tensor", os.environ["LIBRARY"] + ":twice", infer="x")
op(np.ones(3, np.float32))  # a fork in the middle of an import would leave the import's lock taken
stop = threading.Event()
def call():
    while not stop.is_set():
        op(np.ones(3, np.float32))
threads = [threading.Thread(target=call) for _ in range(3)]
for thread in threads: thread.start()
for turn in range(10):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if (op(np.ones(5 + turn, np.float32)) == 2).all() else 3)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
stop.set()
for thread in threads: thread.join()
print("all")
"""
    assert "all" in run_python(code)
