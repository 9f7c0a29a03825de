"""Threads, memory, and many calls."""

import gc
import os
import pathlib
import resource
import subprocess
import sys
import threading

import mindspore as ms
import numpy as np
from mindspore import Tensor

import polyop

X = np.arange(4, dtype=np.float32)


def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_mindspore_takes_no_threads_from_kernels():
    """MindSpore sets OMP_NUM_THREADS, as low as 1, if the user did not; the test sets another number."""
    env = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    code = """
import ctypes, mindspore, os, polyop
process = ctypes.CDLL(None)
process.getenv.restype = ctypes.c_char_p
print(process.getenv(b"OMP_NUM_THREADS") is not None, os.environ.get("OMP_NUM_THREADS"))
process.setenv(b"OMP_NUM_THREADS", b"1023", 1)
print(polyop.get_num_threads() <= len(os.sched_getaffinity(0)) < 1023)
"""
    result = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["True None", "True"]


def test_memory_stays_flat(library_file):
    add = polyop.Custom(f"{library_file}:CustomAdd", lambda x, _: x, lambda x, _: x, "aot")
    big = Tensor(np.ones(1000, np.float32))
    x = Tensor(X)

    def calls(count):
        for _ in range(count):
            add(x, x)
            add(big, big)
        gc.collect()
        return resident()

    calls(5000)
    before = calls(1000)
    assert calls(50_000) - before < 4 << 20


def test_memory_of_gradients_stays_flat():
    op = polyop.operator(
        "ms_running::double(Tensor x) -> Tensor",
        lambda x: x * 2,
        infer="x",
        gradient=lambda x, o, g: (2 * g,),
    )
    gradient = ms.grad(lambda x: op(x).sum())
    x = Tensor(np.ones(10_000, np.float32))

    def calls(count):
        for _ in range(count):
            gradient(x)
        gc.collect()
        return resident()

    calls(200)
    before = calls(50)
    assert calls(300) - before < 8 << 20


def test_threads(library_file):
    add = polyop.Custom(f"{library_file}:CustomAdd", lambda x, _: x, lambda x, _: x, "aot")
    wrong = []

    def work(number):
        x = Tensor(np.full(1 + number % 3, number, np.float32))
        right = [(add(x, x).asnumpy() == 2 * number).all() for _ in range(500)]
        wrong.extend(number for one in right if not one)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_graph_that_outlives_the_operator_s_name(library_file):
    def make():
        op = polyop.Custom(f"{library_file}:CustomAdd", lambda x, _: x, lambda x, _: x, "aot")

        @ms.jit
        def call(x):
            return op(x, x)

        call(Tensor(X))
        return call

    call = make()
    gc.collect()
    np.testing.assert_array_equal(call(Tensor(X)).asnumpy(), 2 * X)


def test_constants_that_are_equal_and_of_other_types():
    op = polyop.operator(
        "ms_running::typed(Tensor x, Scalar a) -> Tensor",
        lambda x, a: (x + len(type(a).__name__)).astype(x.dtype),
        infer="x",
    )

    @ms.jit
    def call(x):
        return op(x, 1) + 10 * op(x, 1.0)

    np.testing.assert_array_equal(call(Tensor(X)).asnumpy(), X + 3 + 10 * (X + 5))
