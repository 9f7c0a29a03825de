"""The 100 problems of KernelBench, level 1, as loop kernels beside PyTorch."""

import functools
import warnings

import narrow
from kernelbench import PROBLEMS
from kernelbench.table import Problem
from kernels import need_torch
from measure import Measured, Row, Settings, summary

TURNS = 9


def beside_torch(number: int, settings: Settings, *, gradient: bool) -> Measured:
    need_torch()
    from kernelbench.compare import compare_problem

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured = compare_problem(number, gradient, min(TURNS, settings.rounds // 3))
    return summary(measured.seconds["polyop"], measured.seconds["PyTorch"])


def rows_of(problem: Problem) -> list[Row]:
    kinds = {"": False, ", forward + backward": True} if problem.gradient else {"": False}
    return [
        Row(
            narrow.title(f"kernelbench: {problem.title}{kind}"),
            "PyTorch's own",
            None,
            functools.partial(beside_torch, problem.number, gradient=gradient),
        )
        for kind, gradient in kinds.items()
    ]


def rows() -> list[Row]:
    return [row for problem in PROBLEMS.values() for row in rows_of(problem)]
