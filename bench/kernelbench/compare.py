"""Time a problem beside PyTorch, once the results agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gradients.compare import agree, in_turn, timed
from gradients.table import incoming
from loops.compare import Times

from .table import Problem

LIMIT_S = 20
"""For a row, compiled: some of the loops take a hundred times as long as the peer."""


def compare_problem(number: int, gradient: bool, turns: int) -> Times:
    """Return the times of a call, or of a call with its gradients, in polyop and in PyTorch."""
    from .rows import PROBLEMS

    problem = PROBLEMS[number]
    make = with_gradients if gradient else calls
    runs = {"polyop": make(problem, problem.ours()), "PyTorch": make(problem, problem.theirs())}
    right = make(problem, problem.theirs(truth=True))
    what = "the gradient" if gradient else "the result"
    agree(problem, "polyop", arrays(runs["polyop"]()), arrays(right()), what)
    times = Times(problem.title, 0.0, "")
    times.seconds.update(in_turn(runs, turns_within(LIMIT_S, runs, turns)))
    return times


def turns_within(limit_s: float, runs: Mapping[str, Callable[[], Any]], turns: int) -> int:
    """Return as many turns as the limit allows, at least 3. A turn runs each call twice, once untimed."""
    of_one = 2 * sum(timed(run, 1) for run in runs.values())
    return max(min(turns, 3), min(turns, int(limit_s / of_one)))


def calls(problem: Problem, function: Callable[..., Any]) -> Callable[[], Sequence[Any]]:
    """Return the call, as a function without arguments; it returns the output."""
    import torch

    tensors = [torch.from_numpy(x) for x in problem.inputs("timed")]
    return lambda: (function(*tensors),)


def with_gradients(problem: Problem, function: Callable[..., Any]) -> Callable[[], Sequence[Any]]:
    """Return the call with its gradients, which the function returns."""
    import torch

    inputs = problem.inputs("timed")
    smooth = problem.smooth(inputs)
    tensors = [torch.from_numpy(x).requires_grad_(i in smooth) for i, x in enumerate(inputs)]
    leaves = [tensors[i] for i in smooth]
    arriving = torch.from_numpy(incoming(tuple(function(*tensors).shape), problem.dtype))
    return lambda: torch.autograd.grad(function(*tensors), leaves, arriving)


def arrays(tensors: Sequence[Any]) -> list[Any]:
    """Return tensors as arrays."""
    return [np.asarray(x) for x in tensors]
