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
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import polyop

SOURCES = pathlib.Path(__file__).parents[1] / "sources"
SANITIZED = "POLYOP_SANITIZED" in os.environ
pytestmark = [] if SANITIZED else [pytest.mark.slow(more=10)]

SLACK, KEYS_SLACK = 384 << 10, 1 << 20
"""Allowed growth of the heap in bytes, for any number of calls, and where each call has a new key.

A table of 8,192 prepared calls goes on growing for some 80,000 calls: entries that it uses again keep their
room."""
PER_CALL = 1
"""Allowed growth in bytes per call; malloc's smallest block has 32. In 200,000 calls one block in nine is seen."""
RESIDENT_SLACK = 32 << 20
"""Allowed growth of resident memory in bytes. It also counts memory mapped without malloc, by pages.

Tensors of many sizes leave gaps between them: PyTorch's grows by 9 MB where its heap grows by 0.1 MB."""

PYTHON = "Python function"
KEYS = ("other shapes", "other attributes")
Work = Callable[[int], object]
Rows = Iterator[tuple[str, int, Work]]


class HeapUse(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in [
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        ]
    )


def heap_bytes() -> int:
    """Return the bytes allocated by malloc, Python's objects included: see ``measured``."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = HeapUse
    use = mallinfo2()
    return int(use.uordblks + use.hblkhd)


def resident_bytes() -> int:
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(work: Work, times: int) -> tuple[int, int]:
    """Return the growth of the heap and of resident memory in bytes, over the last 80 % of the calls.

    It is twice that of the half that grew less: what happens once, such as a table that gets larger, is no leak.
    """
    work(times // 5)
    halves = []
    for _ in range(2):
        gc.collect()
        heap, resident = heap_bytes(), resident_bytes()
        work(times * 2 // 5)
        gc.collect()
        halves.append((heap_bytes() - heap, resident_bytes() - resident))
    (heap, resident), other = halves
    return 2 * min(heap, other[0]), 2 * min(resident, other[1])


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


@functools.cache
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
        PYTHON: polyop.operator(
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


def all_sizes() -> Iterator[tuple[int, int]]:
    """Return 160,000 shapes; large ones come from the start on."""
    sizes = list(itertools.product(range(1, 401), range(1, 401)))
    random.Random(0).shuffle(sizes)
    return iter(sizes)


def keys(x: object, narrow: Callable[[int, int], object]) -> Rows:
    """Calls that evict the oldest prepared entries: of a kernel that keeps data, 128 are kept."""

    def shapes(times: int) -> None:
        for rows, columns in itertools.islice(sizes, times):
            tensor = narrow(rows, columns)
            workspace()(tensor, tensor)

    sizes = all_sizes()
    values = itertools.count()

    def attributes(times: int) -> None:
        for value in itertools.islice(values, times):
            workspace()(x, x, float(value))

    yield "other shapes", 40_000, shapes
    yield "other attributes", 60_000, attributes


def errors(x: object, call: Callable[..., object], times: int) -> Rows:
    """Calls that raise; ``call`` is a function that calls ``fails()``."""
    yield "a kernel that fails", times, refusals(call, x)
    for name, args in {"none": (), "one more": (x, x), "a string": ("x",), "None": (None,)}.items():
        yield f"wrong arguments: {name}", times // 4, refusals(fails(), *args)


def eager(x: object, narrow: Callable[[int, int], object]) -> Rows:
    """Calls of every kind of kernel and of arguments; new keys; errors."""
    for kind, op in squares().items():
        yield kind, 20_000 if kind == PYTHON else 200_000, calls(op, x)
    two = "leaks::two(Tensor x, Tensor y) -> (Tensor, Tensor)"
    every = "leaks::every(Tensor[] xs) -> Tensor"
    yield "two outputs", 100_000, calls(polyop.operator(two, source("sum_and_difference"), infer="x"), x, x)
    add_all = polyop.operator(every, source("add_all"), infer=lambda xs: xs[0])
    yield "a list", 100_000, calls(add_all, [x] * 20)
    yield "attributes and a workspace", 100_000, calls(workspace(), x, x, 0.25)
    yield from keys(x, narrow)
    yield from errors(x, fails(), 100_000)


def dropped(times: int) -> None:
    """Operators that are dropped after a call."""
    for _ in range(times):
        polyop.Custom(lambda x: x + 1, lambda x: x, lambda x: x, "pyfunc")(np.ones(3, np.float32))
    gc.collect()
    assert sum(type(bound) is polyop.Custom for bound in polyop.BoundOperator.alive()) <= 2


def numpy_rows() -> Rows:
    large = np.ones(400 * 400, np.float32)
    yield from eager(
        np.ones(8, np.float32), lambda rows, columns: large[: rows * columns].reshape(rows, columns)
    )
    yield "operators that are dropped", 10_000, dropped


def torch_rows() -> Rows:
    import torch

    torch.set_num_threads(1)
    large = torch.ones(400 * 400)
    x = torch.ones(8)
    yield from eager(x, lambda rows, columns: large[: rows * columns].view(rows, columns))

    def both_ways(function: Callable[..., object]) -> None:
        function(torch.ones(8, requires_grad=True)).backward(x)

    for kind, op in squares().items():
        few = 10_000 if kind == PYTHON else 100_000
        yield f"{kind}, backward", few, calls(both_ways, op)
        yield f"{kind}, torch.ops", 20_000 if kind == PYTHON else 200_000, calls(op.torch, x)
        yield f"{kind}, torch.ops, backward", few // 4, calls(both_ways, op.torch)


def jax_rows() -> Rows:
    import jax
    import jax.numpy as jnp

    x = jnp.ones(8, np.float32)

    def inside(step: Callable[..., object]) -> Work:
        """Calls inside one program, which JAX itself runs."""
        loop = jax.jit(lambda x, times: jax.lax.fori_loop(0, times, lambda _, x: step(x), x))
        return lambda times: loop(x, times).block_until_ready()

    def until_ready(function: Callable[..., object]) -> Work:
        return calls(lambda: function(x).block_until_ready())

    for kind, op in squares().items():
        few = 10_000 if kind == PYTHON else 100_000
        gradient = jax.grad(lambda x, op=op: op(x).sum() / 2)
        yield f"{kind}, in a program", 200_000 if few == 100_000 else 20_000, inside(op)
        yield f"{kind}, backward", few, inside(gradient)
        yield f"{kind}, jit", few, until_ready(jax.jit(op))
        yield f"{kind}, eager", few // 5, until_ready(op)
    failing = jax.jit(fails())
    yield from errors(x, lambda x: failing(x).block_until_ready(), 5_000)


def onnx_rows() -> Rows:
    import onnx
    import onnxruntime

    from polyop.graph.onnx import session_options

    make = onnx.helper
    kind = make.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)

    def session(op: object, length: int = 100) -> Any:
        """Return a session with a chain of calls."""
        domain, name = op.name.split("::")
        nodes = [make.make_node(name, [f"x{k}"], [f"x{k + 1}"], domain=domain) for k in range(length)]
        values = [make.make_value_info(f"x{k}", kind) for k in range(length + 1)]
        graph = make.make_graph(nodes, "g", values[:1], values[-1:], value_info=values[1:-1])
        imports = [make.make_opsetid("", 18), make.make_opsetid(domain, 1)]
        model = make.make_model(graph, opset_imports=imports, ir_version=8)
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        return onnxruntime.InferenceSession(model.SerializeToString(), session_options(options))

    def run(running: Any, x: object) -> object:
        return running.run(None, {"x0": x})

    def chain(running: Any) -> Work:
        return lambda times: calls(run, running, x)(times // 100)

    x, large = np.ones(8, np.float32), np.ones(400 * 400, np.float32)
    for name, op in squares().items():
        yield name, 100_000 if name == PYTHON else 200_000, chain(session(op))
    one = session(squares()["C kernel"], 1)
    sizes = all_sizes()

    def shapes(times: int) -> None:
        for rows, columns in itertools.islice(sizes, times):
            run(one, large[: rows * columns].reshape(rows, columns))

    yield "other shapes", 50_000, shapes
    yield "sessions", 2_000, calls(lambda: run(session(squares()["C kernel"], 1), x))
    yield "a kernel that fails", 20_000, refusals(run, session(fails(), 1), x)


def mindspore_rows() -> Rows:
    import mindspore

    x = mindspore.Tensor(np.ones(8, np.float32))
    large = mindspore.Tensor(np.ones(400 * 400, np.float32))
    yield from eager(x, lambda rows, columns: large[: rows * columns].reshape(rows, columns))
    for kind, op in squares().items():
        gradient = mindspore.grad(lambda x, op=op: op(x).sum())
        yield f"{kind}, backward", 10_000, calls(gradient, x)


HOSTS = {
    "NumPy": ("numpy", numpy_rows),
    "PyTorch": ("torch", torch_rows),
    "JAX": ("jax", jax_rows),
    "ONNX Runtime": ("onnxruntime", onnx_rows),
    "MindSpore": ("mindspore", mindspore_rows),
}
"""Host -> the module that it needs, and its rows."""


@pytest.mark.parametrize("host", HOSTS)
def test_memory_stays_flat(host: str) -> None:
    pytest.importorskip(HOSTS[host][0], reason=f"{host} is not installed")
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
        for name, times, heap, resident, _ in rows
        if int(heap) > (KEYS_SLACK if name in KEYS else SLACK) + PER_CALL * int(times)
        or int(resident) > RESIDENT_SLACK
    ]
    assert rows
    assert SANITIZED or not grew, "\n".join(grew)  # the sanitizer's allocator keeps freed memory


if __name__ == "__main__":
    for name, times, work in HOSTS[sys.argv[1]][1]():
        count = times // 100 if SANITIZED else times
        start = time.monotonic()
        print(name, count, *growth(work, count), f"{time.monotonic() - start:.1f} s", sep="\t", flush=True)
