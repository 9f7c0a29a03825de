"""Run one kernel of one framework, in a process of its own: a crash ends this process alone.

    python worker.py FRAMEWORK FUNCTION SIZE

The first line of JSON is what the first calls gave. With the size ``timed`` it then answers each line
``forward SECONDS`` or ``gradient SECONDS`` with the seconds per call of a slice that is about so long.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]

from problems import PROBLEMS, Problem  # noqa: E402 - beside this file

ENOUGH = 1e-3
"""A result is right up to this, relative to its largest element: all frameworks compute in float32."""


def main(framework: str, function: str, size: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what frameworks print is no answer
    one_cpu()
    problem = PROBLEMS[function.removesuffix("_other")]
    inputs, weight = problem.inputs(size), problem.cotangent(size)
    expected = problem.value(inputs)
    module = importlib.import_module(f"kernels_{framework}")
    start = time.perf_counter()
    found: dict[str, Any] = {}
    calls: dict[str, Callable[[], Any]] = {}
    try:
        calls["forward"], gradient = getattr(module, function)(*inputs, weight)
        result = array(calls["forward"]())
        found["forward_s"] = time.perf_counter() - start
        found["forward_error"] = error_of(result, expected)
        print(json.dumps({"forward_s": found["forward_s"]}), file=answers)
        if gradient is not None:
            calls["gradient"] = gradient
            gradients = [array(g) for g in gradient()]
            found["both_s"] = time.perf_counter() - start
            found["gradient_error"] = gradient_error(problem, size, gradients)
    except Exception as problem_met:  # noqa: BLE001 - a refusal is a result
        calls.pop("gradient", None)
        found["refused"] = first_line(problem_met)
    print(json.dumps(found), file=answers)
    if size == "timed":
        answer_times(calls, answers)


def one_cpu() -> None:
    """Keep the threads of every framework on one CPU; what is freed is kept, as ``make bench`` does."""
    from measure import keep_memory

    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    keep_memory()


def array(value: Any) -> np.ndarray:
    """Return the array of a framework as NumPy's."""
    for name in ("to_numpy", "numpy"):
        if hasattr(value, name):
            return np.asarray(getattr(value, name)())
    return np.asarray(value)


def error_of(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest error, relative to the largest element; infinite for NaN."""
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    return error if np.isfinite(error) else float("inf")


def gradient_error(problem: Problem, size: str, gradients: list[np.ndarray]) -> float:
    """Return the largest error of the gradients: of each element, or of one directional derivative."""
    if size == "small":
        expected = problem.gradients(size)
        return max(error_of(g, e) for g, e in zip(gradients, expected, strict=True))
    directions, expected_slope = problem.along(size)
    slope = sum(float((g * d).sum()) for g, d in zip(gradients, directions, strict=True))
    error = abs(slope - expected_slope) / abs(expected_slope)
    return error if np.isfinite(error) else float("inf")


def first_line(problem: Exception) -> str:
    """Return the kind of an error and the first line of its text."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return ": ".join([type(problem).__name__, *lines[:1]])


def answer_times(calls: dict[str, Callable[[], Any]], answers: Any) -> None:
    """Answer each request for a time."""
    counts: dict[str, int] = {}
    for line in sys.stdin:
        what, seconds = line.split()
        call = calls[what]
        if what not in counts:
            timer = timeit.Timer(call)
            timer.timeit(1)
            counts[what] = max(1, int(float(seconds) / timer.timeit(1)))
        elapsed = timeit.timeit(call, number=counts[what]) / counts[what]
        print(json.dumps(elapsed), file=answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
