"""Derived gradients beside PyTorch's and JAX's own, and beside C written by hand."""

import functools
import os
import tempfile
import warnings

import gradients
import narrow
from gradients.compare import compare_program
from kernels import FOLDER, need_torch
from loops.compare import Times
from measure import Measured, Missing, Row, Settings, fresh_process, seconds, summary

TURNS = 15
COLD_BAR_S = 3.0
"""A forward compiles within 1.5 s on a slow machine (bench/rows/loops.py), its gradient within twice that."""

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
def times(name: str, kind: str, turns: int, narrowed: bool) -> Times:
    need_torch()
    if narrowed:
        return Times(**narrow.call("gradients.compare", "compare_program", name, kind, turns))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compare_program(name, kind, turns)


def beside(
    name: str, peer: str, settings: Settings, *, kind: str = "frameworks", narrowed: bool = False
) -> Measured:
    """Measure beside a peer, or beside the best peer if none is named."""
    measured = times(name, kind, min(TURNS, settings.rounds // 3), narrowed)
    peer = peer or measured.best_peer()
    if peer in measured.missing:
        raise Missing(f"{peer} is {measured.missing[peer]}")
    return summary(measured.seconds["polyop"], measured.seconds[peer])


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
    alone, both = map(narrow.title, (title, f"{title}, forward + backward"))
    table = [
        Row(alone, "the best of PyTorch and JAX", 1.0, functools.partial(beside, name, "")),
        Row(alone, "PyTorch's own", None, functools.partial(beside, name, "PyTorch")),
        Row(alone, "JAX's own, jitted", None, functools.partial(beside, name, "JAX")),
    ]
    bar = gradients.PROGRAMS[name].both_ways
    if narrow.available():
        measure = functools.partial(beside, name, "", narrowed=True)
        table.append(Row(f"{title}, {narrow.NAME}", "the best of PyTorch and JAX", 1.0, measure))
    if bar:
        measure = functools.partial(beside, name, "PyTorch", kind="both ways")
        table.append(Row(both, "PyTorch's own", bar, measure))
    if bar and narrow.available():
        measure = functools.partial(beside, name, "PyTorch", kind="both ways", narrowed=True)
        table.append(Row(f"{title}, forward + backward, {narrow.NAME}", "PyTorch's own", bar, measure))
    if gradients.PROGRAMS[name].written:
        measure = functools.partial(beside, name, "C", kind="written")
        table.append(Row(narrow.title(f"{title}, kernel"), "C written by hand", 1.25, measure))
    return [*table, Row(f"{title}, compile cold", "", COLD_BAR_S, functools.partial(compile_cold, name), "s")]


def rows() -> list[Row]:
    return [row for name in gradients.PROGRAMS for row in rows_of(name)]
