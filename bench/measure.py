"""How the rows are timed: beside their peer, in turn, many short slices, the median ratio."""

from __future__ import annotations

import ctypes
import os
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BYTECODE = Path(__file__).resolve().parent / "build" / "bytecode"
TRIM_THRESHOLD, MMAP_MAX = -1, -4
"""Of malloc.h: when memory at the end of the heap is given back, and how many pieces lie outside it."""
SETTLE_S = 0.15


class Missing(Exception):  # noqa: N818 - says what a row lacks here; not a failure
    """A row cannot be measured on this machine; the text says what it lacks."""


@dataclass(frozen=True)
class Settings:
    """How long to measure: rounds of two slices of ``slice_s`` seconds; ``processes`` fresh ones."""

    rounds: int = 61
    slice_s: float = 0.004
    processes: int = 11


@dataclass(frozen=True)
class Measured:
    """A median ratio (or seconds), its 10th and 90th percentile, and the median times behind it."""

    value: float
    low: float
    high: float
    ours_s: float
    peer_s: float | None = None


@dataclass(frozen=True)
class Row:
    """One line of the table: what is timed, beside what, and at most how much of it.

    ``unit`` is ``"x"`` (times the peer) or ``"s"`` (seconds). Without a ``bar`` the row is
    there to be looked at.
    """

    name: str
    beside: str
    bar: float | None
    measure: Callable[[Settings], Measured]
    unit: str = "x"


@dataclass(frozen=True)
class Timed:
    """A statement and its variables: timed in a compiled loop, so that no lambda is in the way."""

    statement: str
    variables: Mapping[str, Any]

    def timer(self) -> timeit.Timer:
        """Return a timer of the statement."""
        return timeit.Timer(self.statement, globals=dict(self.variables))


def calls_per_slice(timer: timeit.Timer, slice_s: float) -> int:
    """Return how many calls take about ``slice_s``; also warms up."""
    timer.timeit(10)  # the first call prepares; it must not be taken for a usual one
    number = 1
    while (spent := timer.timeit(number)) < slice_s / 4:
        number *= 2
    return max(1, int(number * slice_s / spent))


def summary(ours: list[float], peer: list[float]) -> Measured:
    """Return the median of the ratios of neighbours in time."""
    ratios = sorted(a / b for a, b in zip(ours, peer, strict=True))
    last = len(ratios) - 1
    return Measured(
        statistics.median(ratios),
        ratios[round(0.1 * last)],
        ratios[round(0.9 * last)],
        statistics.median(ours),
        statistics.median(peer),
    )


def seconds(times: list[float]) -> Measured:
    """Return the median of times that stand alone."""
    found = summary(times, [1.0] * len(times))
    return Measured(found.value, found.low, found.high, found.value)


def beside(ours: Timed, peer: Timed) -> Callable[[Settings], Measured]:
    """Return a measurement of two statements in turn."""

    def measure(settings: Settings) -> Measured:
        timers = ours.timer(), peer.timer()
        counts = tuple(calls_per_slice(timer, settings.slice_s) for timer in timers)
        times: tuple[list[float], list[float]] = ([], [])
        for turn in range(settings.rounds):
            for which in (0, 1) if turn % 2 else (1, 0):
                times[which].append(timers[which].timeit(counts[which]) / counts[which])
        return summary(*times)

    return measure


def fresh_process(code: str, *, env: Mapping[str, str] | None = None) -> float:
    """Return the number that ``code`` prints in a new interpreter; it keeps bytecode, as pip does."""
    own = {**(os.environ if env is None else env), "PYTHONPYCACHEPREFIX": str(BYTECODE)}
    own.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, "-c", code], env=own, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{code!r} failed:\n{done.stderr}")
    return float(done.stdout)


def settle(run: Callable[[], Any]) -> None:
    """Call a contestant, not timed, until threads of the one before have gone to sleep.

    Those of OpenMP and OpenBLAS spin for a while after a loop, on CPUs that the next one needs. To wait for
    that without work is worse: a machine may put all threads on one CPU meanwhile.
    """
    end = time.perf_counter() + SETTLE_S
    run()
    while time.perf_counter() < end:
        run()


def keep_memory() -> None:
    """Have the C library keep memory that was freed, as a program has it that runs for a while.

    Else it is chance who of several in one process is given pages that the system must clear first.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):  # glibc
        library.mallopt(TRIM_THRESHOLD, 2**30)
        library.mallopt(MMAP_MAX, 0)
