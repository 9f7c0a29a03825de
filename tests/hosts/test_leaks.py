"""Long runs keep memory flat: a call leaves nothing behind but its results.

Each host's rows run in a process of its own, which is this file run as a program; the rows are functions
below, one for each host.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import itertools
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import polyop

SOURCES = pathlib.Path(__file__).parents[1] / "sources"
SANITIZED = "POLYOP_SANITIZED" in os.environ
pytestmark = [] if SANITIZED else [pytest.mark.exhaustive]

SLACK = 128 << 10
"""By how many bytes the heap may grow whatever the number of calls: allocators' slack, counters, caches."""
PER_CALL = 1
"""By how many bytes a call may grow it: less than what malloc or Python make for the smallest object."""
RESIDENT_SLACK = 8 << 20
"""By how many bytes resident memory may grow: it counts what is mapped without malloc, too, but by pages."""

Work = Callable[[int], object]
Rows = Iterator[tuple[str, int, Work]]


class HeapUse(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    )


def heap_bytes() -> int:
    """Return how many bytes are allocated by malloc; Python's objects are among them, see ``measured``."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = HeapUse
    use = mallinfo2()
    return int(use.uordblks + use.hblkhd)


def resident_bytes() -> int:
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(work: Work, times: int) -> tuple[int, int]:
    """Return by how many bytes the heap and resident memory grow in the last 80 % of the calls."""
    work(times // 5)
    gc.collect()
    heap, resident = heap_bytes(), resident_bytes()
    work(times - times // 5)
    gc.collect()
    return heap_bytes() - heap, resident_bytes() - resident


def calls(function: Callable[..., object], *args: object) -> Work:
    def work(times: int) -> None:
        for _ in itertools.repeat(None, times):
            function(*args)

    return work


def refusals(function: Callable[..., object], *args: object) -> Work:
    def work(times: int) -> None:
        for _ in itertools.repeat(None, times):
            try:
                function(*args)
            except Exception:
                continue
            raise AssertionError("the call did not fail")

    return work


@polyop.kernel
def loop_square(x):
    out = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of loop kernels
    for i in range(x.shape[0]):
        out[i] = x[i] * x[i]
    return out


def source(name: str) -> object:
    return polyop.source(SOURCES / "kernels.c", function=name)


def squares() -> dict[str, Callable[..., object]]:
    """Return x * x with a gradient, by a kernel of each kind."""
    c_grad = polyop.operator(
        "leaks::c_grad(Tensor x, Tensor out, Tensor dout) -> Tensor", source("square_grad"), infer="x"
    )
    python_grad = polyop.operator(
        "leaks::python_grad(Tensor x, Tensor dout) -> Tensor", lambda x, dout: 2 * x * dout, infer="x"
    )
    return {
        "C kernel": polyop.operator(
            "leaks::c(Tensor x) -> Tensor", source("square"), infer="x", gradient=lambda x, out, dout: (c_grad(x, out, dout),)
        ),
        "loop kernel": polyop.operator("leaks::loop(Tensor x) -> Tensor", loop_square, infer="x"),
        "C++ module": polyop.CustomOpBuilder(
            "leaks_module", [str(SOURCES / "module_gradients.cpp")], backend="CPU"
        ).load().square,
        "Python function": polyop.operator(
            "leaks::python(Tensor x) -> Tensor", lambda x: x * x, infer="x", gradient=lambda x, out, dout: (python_grad(x, dout),)
        ),
    }  # fmt: skip


@functools.cache
def fails() -> Callable[..., object]:
    return polyop.operator("leaks::fails(Tensor x) -> Tensor", source("fails_with_words"), infer="x")


@functools.cache
def workspace() -> Callable[..., object]:
    """An operator with attributes, whose kernel keeps data and has a workspace."""
    schema = "leaks::workspace(Tensor x, Tensor y, float scale=0.5, float[] paddings=[4.0]) -> Tensor"
    return polyop.operator(schema, f"{SOURCES / 'add_with_attr.cc'}:AddWithAttr", infer="x")


def keys(x: object, narrow: Callable[[int, int], object]) -> Rows:
    """Calls that evict the oldest prepared entries, of which 128 are kept."""
    sizes = itertools.product(range(1, 400), range(1, 400))

    def shapes(times: int) -> None:
        for rows, columns in itertools.islice(sizes, times):
            tensor = narrow(rows, columns)
            workspace()(tensor, tensor)

    values = itertools.count()

    def attributes(times: int) -> None:
        for value in itertools.islice(values, times):
            workspace()(x, x, float(value))

    yield "other shapes", 100_000, shapes
    yield "other attributes", 30_000, attributes


def errors(x: object) -> Rows:
    yield "a kernel that fails", 100_000, refusals(fails(), x)
    for name, args in (("none", ()), ("one more", (x, x)), ("a string", ("x",)), ("None", (None,))):
        yield f"wrong arguments: {name}", 20_000, refusals(fails(), *args)


def numpy_rows() -> Rows:
    x = np.ones(8, np.float32)
    for kind, op in squares().items():
        yield kind, 200_000 if kind == "Python function" else 1_000_000, calls(op, x)
    two = polyop.operator(
        "leaks::two(Tensor x, Tensor y) -> (Tensor, Tensor)", source("sum_and_difference"), infer="x"
    )
    every = polyop.operator(
        "leaks::every(Tensor[] xs) -> Tensor", source("add_all"), infer=lambda xs: xs[0]
    )
    yield "attributes and a workspace", 300_000, calls(workspace(), x, x, 0.25)
    yield "two outputs", 300_000, calls(two, x, x)
    yield "a list", 300_000, calls(every, [x] * 20)
    large = np.ones(400 * 400, np.float32)
    yield from keys(x, lambda rows, columns: large[: rows * columns].reshape(rows, columns))
    yield from errors(x)
    yield "operators that are dropped", 3_000, dropped


def dropped(times: int) -> None:
    for _ in range(times):
        op = polyop.Custom(lambda x: x + 1, lambda x: x, lambda x: x, "pyfunc")
        op(np.ones(3, np.float32))
    gc.collect()
    alive = sum(1 for bound in polyop.BoundOperator.alive() if type(bound) is polyop.Custom)
    assert alive <= 2, alive


HOSTS = {"NumPy": numpy_rows}


@pytest.mark.parametrize("host", HOSTS)
def test_memory_stays_flat(host: str) -> None:
    done = subprocess.run(
        [sys.executable, __file__, host],
        env={**os.environ, "PYTHONMALLOC": "malloc", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    grew = [
        f"{name}: {times} calls grew the heap by {heap} bytes, resident memory by {resident}"
        for name, times, heap, resident in rows
        if int(heap) > SLACK + PER_CALL * int(times) or int(resident) > RESIDENT_SLACK
    ]
    assert rows
    assert SANITIZED or not grew, "\n".join(grew)  # the sanitizer's allocator keeps what is freed


if __name__ == "__main__":
    import time

    for name, times, work in HOSTS[sys.argv[1]]():
        times = times // 100 if SANITIZED else times
        start = time.time()
        print(name, times, *growth(work, times), sep="\t", flush=True)
        print(name, round(time.time() - start, 1), file=sys.stderr)
