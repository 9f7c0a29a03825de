"""Derived gradients beside PyTorch's and JAX's own, and beside C written by hand."""

import functools
import os
import tempfile
import warnings
from collections.abc import Callable

import gradients
from gradients import compare as comparison
from kernels import FOLDER, need_torch
from loops.compare import NARROW, OURS, Times, has_narrow
from measure import Measured, Missing, Row, Settings, fresh_process, seconds, summary

TURNS = 15

COLD = """
import sys, time
sys.path.insert(0, FOLDER)
import numpy as np
import gradients
from gradients.contestants import Direct
program = gradients.PROGRAMS[NAME]
arguments = program.arguments(program.small)
results = (np.zeros(RESULT, program.dtype),)
start = time.perf_counter()
Direct(program, arguments, results)
print(time.perf_counter() - start)
"""
"""Derives, schedules and compiles, imports included. The data is small; the kernel is the same."""


@functools.cache
def times(name: str, turns: int, kind: Callable[..., Times]) -> Times:
    need_torch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(gradients.PROGRAMS[name], turns)


def beside(
    name: str,
    peer: str,
    settings: Settings,
    kind: Callable[..., Times] = comparison.beside_frameworks,
    ours: str = "polyop",
) -> Measured:
    """Measure beside a peer, or beside the best peer if none is named."""
    measured = times(name, min(TURNS, settings.rounds // 3), kind)
    peer = peer or measured.best_peer()
    if peer in measured.missing:
        raise Missing(f"{peer} is {measured.missing[peer]}")
    return summary(measured.seconds[ours], measured.seconds[peer])


def compile_cold(name: str, settings: Settings) -> Measured:
    program = gradients.PROGRAMS[name]
    result = program.torch(*map(need_torch().from_numpy, program.arguments(program.small))).shape
    code = COLD.replace("FOLDER", repr(str(FOLDER))).replace("NAME", repr(name))
    runs = []
    for _ in range(min(3, settings.processes)):
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "XDG_CACHE_HOME": folder}
            runs.append(fresh_process(code.replace("RESULT", repr(tuple(result))), env=env))
    return seconds(runs)


def rows_of(name: str) -> list[Row]:
    title = f"gradients: {name}"
    table = [
        Row(title, "the best of PyTorch and JAX", 1.0, functools.partial(beside, name, "")),
        Row(title, "PyTorch's own", None, functools.partial(beside, name, "PyTorch")),
        Row(title, "JAX's own, jitted", None, functools.partial(beside, name, "JAX")),
    ]
    narrow, bar = OURS[1], gradients.PROGRAMS[name].both_ways
    if has_narrow():
        measure = functools.partial(beside, name, "", ours=narrow)
        table.append(Row(f"{title}, {NARROW}", "the best of PyTorch and JAX", 1.0, measure))
    if bar:
        measure = functools.partial(beside, name, "PyTorch", kind=comparison.both_ways)
        table.append(Row(f"{title}, forward + backward", "PyTorch's own", bar, measure))
    if bar and has_narrow():
        measure = functools.partial(beside, name, "PyTorch", kind=comparison.both_ways, ours=narrow)
        table.append(Row(f"{title}, forward + backward, {NARROW}", "PyTorch's own", bar, measure))
    if gradients.PROGRAMS[name].written:
        kind = comparison.beside_written
        table.append(
            Row(
                f"{title}, kernel", "C written by hand", 1.25, functools.partial(beside, name, "C", kind=kind)
            )
        )
    return [*table, Row(f"{title}, compile cold", "", 1.0, functools.partial(compile_cold, name), "s")]


def rows() -> list[Row]:
    return [row for name in gradients.PROGRAMS for row in rows_of(name)]
