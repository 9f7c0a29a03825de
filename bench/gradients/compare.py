"""Check that gradients agree, and time them alternately."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from loops.compare import Times
from measure import settle

from . import contestants
from .table import Gradient

TOLERANCE = {"float32": 1e-3, "float64": 1e-9}
"""Relative to the greatest element, for sums of a few thousand numbers in another order."""
SLICE_S = 0.02
"""The least time of each contestant in a turn."""


def beside_frameworks(program: Gradient, turns: int) -> Times:
    """Return the times of polyop's gradient, called from PyTorch, and of each framework's own."""
    arguments = program.arguments(program.bench)
    times = Times(program.name, 0.0, "")
    runs = {
        "polyop": contestants.through_torch(program, arguments, ours=True),
        "PyTorch": contestants.through_torch(program, arguments, ours=False),
    }
    try:
        runs["JAX"] = contestants.through_jax(program, arguments)
    except ImportError:
        times.missing["JAX"] = "not installed"
    results = {who: [np.asarray(x) for x in run()] for who, run in runs.items()}
    for who, gradients in results.items():
        agree(program, who, gradients, results["PyTorch"])
    times.seconds.update(in_turn(runs, turns))
    return times


def both_ways(program: Gradient, turns: int) -> Times:
    """Return the times of a call with its gradient in PyTorch: polyop's operator, and PyTorch's own."""
    arguments = program.arguments(program.bench)
    runs = {
        "polyop": contestants.both_ways(program, arguments, ours=True),
        "PyTorch": contestants.both_ways(program, arguments, ours=False),
    }
    results = {who: [np.asarray(x) for x in run()] for who, run in runs.items()}
    for who, gradients in results.items():
        agree(program, who, gradients, results["PyTorch"])
    times = Times(program.name, 0.0, "")
    times.seconds.update(in_turn(runs, turns))
    return times


def beside_written(program: Gradient, turns: int) -> Times:
    """Return the times of the kernels alone, polyop's and the one in C, with results allocated beforehand."""
    arguments = program.arguments(program.bench)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = (np.asarray(contestants.operator(program)(*arguments)),)
        ours = contestants.Direct(program, arguments, results)
    written = contestants.Written(program, arguments, results)
    ours()
    written()
    smooth = program.smooth(arguments)
    agree(program, "polyop", [ours.outputs[i] for i in smooth], written.outputs)
    times = Times(program.name, 0.0, "")
    times.seconds.update(in_turn({"polyop": ours, "C": written}, turns))
    return times


KINDS = {"frameworks": beside_frameworks, "both ways": both_ways, "written": beside_written}
"""What a gradient is timed beside: functions of a program and the number of turns."""


def compare_program(name: str, kind: str, turns: int) -> Times:
    """Return the times of the program of this name."""
    from . import PROGRAMS

    return KINDS[kind](PROGRAMS[name], turns)


def agree(
    program: Any, who: str, results: list[Any], expected: list[Any], what: str = "the gradient"
) -> None:
    """Raise ``RuntimeError`` if two gradients, or other results, of a program differ."""
    for one, other in zip(results, expected, strict=True):
        far = float(np.max(np.abs(one - other))) / max(float(np.max(np.abs(other))), 1e-30)
        if not far <= TOLERANCE[program.dtype]:
            raise RuntimeError(f"{program.name}: {what} of {who} is off by {far:.1e}")


def in_turn(runs: Mapping[str, Callable[[], Any]], turns: int) -> dict[str, list[float]]:
    """Return the seconds of a call in each turn; the order is reversed from turn to turn."""
    seconds: dict[str, list[float]] = {who: [] for who in runs}
    calls = {who: min(20, 1 + int(SLICE_S / timed(run, 1))) for who, run in runs.items()}
    for turn in range(turns):
        for who in list(runs) if turn % 2 else list(runs)[::-1]:
            settle(runs[who])
            seconds[who].append(timed(runs[who], calls[who]))
    return seconds


def timed(run: Callable[[], Any], calls: int) -> float:
    """Return the seconds that one of several calls took."""
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls
