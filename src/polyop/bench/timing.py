"""Time several calls in turns, in many short slices: what disturbs one of them disturbs all."""

from __future__ import annotations

import ctypes
import statistics
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Named = tuple[str, Callable[[], Any]]
ROUNDS, SLICE_S = 21, 0.02
"""How many slices of each call, and the seconds of a slice, where the caller does not say."""
TRIM_THRESHOLD, MMAP_MAX = -1, -4
"""Options of ``mallopt``: when the end of the heap is returned, how many allocations are mapped instead."""


@dataclass(frozen=True)
class Spread:
    """The median of numbers, and the bounds of the 80 % in the middle."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Spread:
        """Return the spread of at least one number.

        >>> Spread.of([3.0, 1.0, 2.0])
        Spread(median=2.0, low=1.0, high=3.0)
        """
        ordered = sorted(numbers)
        last = len(ordered) - 1
        return cls(statistics.median(ordered), ordered[round(0.1 * last)], ordered[round(0.9 * last)])


@dataclass(frozen=True)
class Timing:
    """The seconds per call of each slice, by name, in the order of the calls; the first is compared."""

    slices: Mapping[str, Sequence[float]]

    def __getitem__(self, name: str) -> Spread:
        """Return the spread of the seconds of a call."""
        return Spread.of(self.slices[name])

    def ratio(self, name: str, to: str) -> Spread:
        """Return the spread of the ratios of neighbouring slices: below 1, ``name`` is faster."""
        return Spread.of([a / b for a, b in zip(self.slices[name], self.slices[to], strict=True)])


def calls_per_slice(timer: timeit.Timer, slice_s: float) -> int:
    """Warm up, and return how many calls take about ``slice_s`` seconds.

    The first call prepares the kernel and takes longer than others.
    """
    timer.timeit(1)
    if timer.timeit(1) >= slice_s:
        return 1
    timer.timeit(10)
    number = 1
    while (elapsed := timer.timeit(number)) < slice_s / 4:
        number *= 2
    return max(1, int(number * slice_s / elapsed))


def interleaved(
    timers: Sequence[timeit.Timer], rounds: int, slice_s: float, settle_s: float = 0.0
) -> list[list[float]]:
    """Return the seconds per call of each timer, for each round. Every other round has the reverse order.

    ``settle_s``: for how long a call runs untimed before its slice. Threads of OpenMP and OpenBLAS spin for a
    while after a loop, on CPUs that the next call needs.
    """
    counts = [calls_per_slice(timer, slice_s) for timer in timers]
    times: list[list[float]] = [[] for _ in timers]
    forth = range(len(timers))
    for turn in range(rounds):
        for i in forth if turn % 2 else reversed(forth):
            end = time.perf_counter() + settle_s
            while settle_s and time.perf_counter() < end:
                timers[i].timeit(1)
            times[i].append(timers[i].timeit(counts[i]) / counts[i])
    return times


def measure(
    calls: Sequence[Named], rounds: int = ROUNDS, slice_s: float = SLICE_S, settle_s: float = 0.0
) -> Timing:
    """Return the times of some calls, measured in turns; see :func:`interleaved`.

    >>> calls = [("sum", lambda: sum(range(100))), ("nothing", lambda: None)]
    >>> timing = measure(calls, rounds=3, slice_s=1e-4)
    >>> timing["sum"].median > 0 and timing.ratio("sum", "nothing").low > 0
    True

    An exception of a call is raised.
    """
    timers = [timeit.Timer("call()", globals={"call": call}) for _, call in calls]
    times = interleaved(timers, rounds, slice_s, settle_s)
    return Timing({name: slices for (name, _), slices in zip(calls, times, strict=True)})


def keep_memory() -> None:
    """Make the C library keep freed memory, as it does in a program that has run for a while.

    Otherwise chance decides which contestant gets new pages, which the system must clear first.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):  # glibc
        library.mallopt(TRIM_THRESHOLD, 2**30)
        library.mallopt(MMAP_MAX, 0)
