"""Time a row and its peer alternately, in many short slices, and take the median of the ratios."""

from __future__ import annotations

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

from polyop.bench.timing import Spread, interleaved, keep_memory

__all__ = ["keep_memory"]  # the rows import it from here
FOLDER = Path(__file__).resolve().parent
BYTECODE = FOLDER / "build" / "bytecode"
SETTLE_S = 0.15  # longer than threads of OpenMP and OpenBLAS spin after a loop


class Missing(Exception):  # noqa: N818 - a row that cannot be measured is no error
    """A row cannot be measured on this machine; the text is the reason."""


@dataclass(frozen=True)
class Settings:
    """How long to measure: ``rounds`` of two slices of ``slice_s`` seconds, or new ``processes``."""

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
    """One line of the table: what is measured, its peer, and the bar that the result must not exceed.

    ``unit`` is ``"x"`` (a ratio to the peer) or ``"s"`` (seconds). A row without a ``bar`` only informs.
    """

    name: str
    beside: str
    bar: float | None
    measure: Callable[[Settings], Measured]
    unit: str = "x"


@dataclass(frozen=True)
class Timed:
    """A statement and its variables; ``timeit`` compiles it, which saves the call of a lambda."""

    statement: str
    variables: Mapping[str, Any]

    def timer(self) -> timeit.Timer:
        """Return a timer of the statement."""
        return timeit.Timer(self.statement, globals=dict(self.variables))


def summary(ours: list[float], peer: list[float]) -> Measured:
    """Return the median of the ratios, each of two times that were measured one after the other."""
    ratios = Spread.of([a / b for a, b in zip(ours, peer, strict=True)])
    return Measured(ratios.median, ratios.low, ratios.high, statistics.median(ours), statistics.median(peer))


def seconds(times: list[float]) -> Measured:
    """Return the median of times without a peer."""
    measured = summary(times, [1.0] * len(times))
    return Measured(measured.value, measured.low, measured.high, measured.value)


def beside(ours: Timed, peer: Timed) -> Callable[[Settings], Measured]:
    """Return a function that measures two statements alternately."""

    def measure(settings: Settings) -> Measured:
        return summary(*interleaved((ours.timer(), peer.timer()), settings.rounds, settings.slice_s))

    return measure


def fresh_process(code: str, *arguments: str, env: Mapping[str, str] | None = None) -> float:
    """Return the number that ``code`` prints in a new interpreter, which has bytecode files as after pip."""
    return float(output_of(code, *arguments, env=env))


def output_of(code: str, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Return what ``code`` prints in such an interpreter."""
    variables = {**(os.environ if env is None else env), "PYTHONPYCACHEPREFIX": str(BYTECODE)}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{code!r} failed:\n{done.stderr}")
    return done.stdout


def settle(run: Callable[[], Any]) -> None:
    """Call a contestant, untimed, until the threads of the previous one sleep.

    Threads of OpenMP and OpenBLAS spin for a while after a loop, on CPUs that the next contestant needs.
    Waiting without work is worse: meanwhile the system may move all threads to one CPU.
    """
    end = time.perf_counter() + SETTLE_S
    run()
    while time.perf_counter() < end:
        run()
