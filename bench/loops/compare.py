"""Time a program of the tables and its peers alternately, and compute its bound.

Memory for results is allocated beforehand, so that the loop nest is timed and not the page faults of new
arrays.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from measure import settle

from polyop import dtype
from polyop.bench.roofline import bandwidth, measure_roofs
from polyop.core.spec import Spec
from polyop.kernels.loop.kernel import LoopKernel
from polyop.loops.frontend.parse import outline

from . import peers
from .table import Row, results

ATTRIBUTE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class _Value(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int32),
        ("depth", ctypes.c_int32),
        ("count", ctypes.c_size_t),
        ("ints", ctypes.POINTER(ctypes.c_int64)),
        ("floats", ctypes.POINTER(ctypes.c_double)),
    )


class _Extra(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("functions", ctypes.c_void_p),
        ("state", ctypes.c_void_p),
    )


class Direct:
    """A loop kernel as a call of its C function, without a framework; results are allocated once."""

    def __init__(self, row: Row, arguments: tuple[Any, ...]) -> None:
        tensors = [a for a in arguments if isinstance(a, np.ndarray)]
        names = outline(row.kernel).parameters
        self.attributes = dict(zip(names[len(tensors) :], arguments[len(tensors) :], strict=True))
        self.kernel = LoopKernel(row.kernel, tuple(self.attributes))
        specs = [Spec(a.shape, dtype(a.dtype.name), "cpu") for a in tensors]
        typed = self.kernel.typed(specs, self.attributes)
        shapes = self.kernel.infer_shapes(specs, self.attributes, 0)
        types = self.kernel.infer_types(specs, self.attributes, 0)
        self.outputs = [np.zeros(s, t.numpy) for s, t in zip(shapes, types, strict=True)]
        everything = [*tensors, *self.outputs]
        address = self.kernel.library(typed)._address
        self.function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, *[ctypes.c_void_p] * 6)(address)
        self.count = len(everything)
        self.pointers = (ctypes.c_void_p * self.count)(*[a.ctypes.data for a in everything])
        self.sizes = [(ctypes.c_int64 * max(1, a.ndim))(*a.shape) for a in everything]
        self.shapes = (ctypes.c_void_p * self.count)(*[ctypes.addressof(s) for s in self.sizes])
        self._alive = tensors
        self._make_extra()

    def __call__(self) -> None:
        """Run the kernel once."""
        if self.function(self.count, self.pointers, None, self.shapes, None, None, ctypes.byref(self.extra)):
            raise RuntimeError(f"{self.kernel} failed")

    def _make_extra(self) -> None:
        numbers = {name.encode(): value for name, value in self.attributes.items()}

        def find(_: Any, name: bytes, value: int) -> int:
            number = numbers[name]
            out = _Value.from_address(value)
            if isinstance(number, float):
                self._float = ctypes.c_double(number)
                out.kind, out.floats = 3, ctypes.pointer(self._float)
            else:
                self._int = ctypes.c_int64(number)
                out.kind, out.ints = 2, ctypes.pointer(self._int)
            return 0

        self._find = ATTRIBUTE(find)
        self._table = (ctypes.c_void_p * 6)(ctypes.cast(self._find, ctypes.c_void_p))
        self.extra = _Extra(1, ctypes.sizeof(_Extra), ctypes.cast(self._table, ctypes.c_void_p), None)


@dataclass
class Times:
    """The seconds of each turn, by contestant. ``bound`` is the least time that the machine allows."""

    name: str
    bound: float
    limit: str
    seconds: dict[str, list[float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def median(self, who: str) -> float:
        """Return the median of one contestant."""
        return statistics.median(self.seconds[who])

    def best_peer(self) -> str:
        """Return the fastest peer."""
        return min((w for w in self.seconds if w != "polyop"), key=self.median)


def compare_program(name: str, torch: bool) -> Times:
    """Return :func:`compare` of the program of this name."""
    from . import npbench

    return compare(npbench.ROWS[name], torch=torch)


def compare(row: Row, *, torch: bool = True, turns: int = 9) -> Times:
    """Return the times of a program and of its peers; raises ``RuntimeError`` if results differ."""
    arguments = row.arguments(row.bench)
    initial = {i: arguments[i].copy() for i in row.updates}

    def reset() -> None:
        for i, value in initial.items():
            arguments[i][...] = value

    reset()
    expected, new = results(row, arguments)
    expected = tuple(np.array(e) for e in expected)
    spare = [np.zeros_like(expected[i]) for i in new]
    times = Times(row.name, *bound(row))
    contestants = _contestants(row, arguments, spare, times, torch=torch)
    for who, run in contestants.items():
        reset()
        run()  # compiles, warms up
        if who == "polyop":
            _agree(row, arguments, run, expected, new)
        times.seconds[who] = []
    for turn in range(turns):
        order = list(contestants) if turn % 2 else list(contestants)[::-1]
        for who in order:
            settle(lambda who=who: (reset(), contestants[who]()))
            reset()
            start = time.perf_counter()
            contestants[who]()
            times.seconds[who].append(time.perf_counter() - start)
    return times


def _contestants(
    row: Row, arguments: tuple[Any, ...], spare: list[Any], times: Times, *, torch: bool
) -> dict[str, Callable[[], Any]]:
    contestants: dict[str, Callable[[], Any]] = {"polyop": Direct(row, arguments)}
    contestants["NumPy"] = lambda: row.numpy(*arguments)
    try:
        jitted = peers.jit(row.numba)
        contestants["Numba"] = lambda: jitted(*arguments, *spare)
    except ImportError:
        times.missing["Numba"] = "not installed"
    if isinstance(row.torch, str) or not torch:
        times.missing["torch.compile"] = row.torch if isinstance(row.torch, str) else "not asked for"
    else:
        import torch as framework

        compiled = row.torch(framework.compile)
        tensors = [framework.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments]
        contestants["torch.compile"] = lambda: compiled(*tensors)
    return contestants


def _agree(row: Row, arguments: Any, run: Any, expected: tuple[Any, ...], new: list[int]) -> None:
    fresh = iter(run.outputs)
    updates = iter(row.updates)
    for position, reference in enumerate(expected):
        result = next(fresh) if position in new else arguments[next(updates)]
        tolerance = 1e-3 if row.dtype == "float32" else 1e-8
        if not np.allclose(result, reference, rtol=tolerance, atol=tolerance):
            raise RuntimeError(f"{row.name}: the compiled kernel and NumPy disagree")


def bound(row: Row) -> tuple[float, str]:
    """Return the least time that the machine allows, and the resource that limits it."""
    size = np.dtype(row.dtype).itemsize
    rows = []
    for one in row.bounds:
        amount = one.amount(size, **row.bench)
        if one.unit == "bytes":
            rows.append((amount / bandwidth(one.level), f"{one.level} bandwidth"))
        elif one.unit == "flops":
            rows.append((amount / measure_roofs().flops_of(row.dtype), "multiply-adds"))
    return max(rows) if rows else (0.0, "nothing measured")
