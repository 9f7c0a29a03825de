"""Loop kernels beside the best of NumPy, Numba and torch.compile, and beside the roof of the machine."""

import functools
import importlib.util
import os
import statistics
import tempfile
import warnings

import narrow
from loops import compare as comparison
from loops import npbench
from loops.table import Row as Program
from measure import FOLDER, Measured, Missing, Row, Settings, fresh_process, seconds

COLD_BAR_S = 1.5
"""For a kernel of at most 60 lines, on a slow machine: seconds depend on the machine, and have no peer."""
BLAS = {"matmul_float32", "matmul_float64", "doitgen", "syrk", "covariance"}
"""Contractions, which NumPy computes with OpenBLAS."""

COLD = """
import os, sys, tempfile, time
sys.path.insert(0, FOLDER)
from loops import npbench
from loops.compare import Direct
row = npbench.ROWS[NAME]
arguments = row.arguments(row.small)
start = time.perf_counter()
Direct(row, arguments)
print(time.perf_counter() - start)
"""


@functools.cache
def times(name: str, narrowed: bool = False) -> comparison.Times:
    with_torch = importlib.util.find_spec("torch") is not None
    if narrowed:
        return comparison.Times(**narrow.call("loops.compare", "compare_program", name, with_torch))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return comparison.compare_program(name, with_torch)


def ratio(ours: list[float], other: list[float]) -> Measured:
    pairs = sorted(a / b for a, b in zip(ours, other, strict=True))
    last = len(pairs) - 1
    return Measured(
        statistics.median(ours) / statistics.median(other),
        pairs[round(0.1 * last)],
        pairs[round(0.9 * last)],
        statistics.median(ours),
        statistics.median(other),
    )


def beside_peers(name: str, settings: Settings, *, narrowed: bool = False) -> Measured:
    del settings
    measured = times(name, narrowed)
    return ratio(measured.seconds["polyop"], measured.seconds[measured.best_peer()])


def beside_bound(name: str, settings: Settings) -> Measured:
    del settings
    measured = times(name)
    if not measured.bound:
        raise Missing("it has no bound of bytes or operations")
    ours = measured.seconds["polyop"]
    return ratio(ours, [measured.bound] * len(ours))


def beside_blas(name: str, settings: Settings) -> Measured:
    del settings
    measured = times(name)
    return ratio(measured.seconds["polyop"], measured.seconds["NumPy"])


def compile_time(name: str, settings: Settings, *, warm: bool) -> Measured:
    runs = []
    for _ in range(min(3, settings.processes)):
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "XDG_CACHE_HOME": folder}
            code = COLD.replace("FOLDER", repr(str(FOLDER))).replace("NAME", repr(name))
            first = fresh_process(code, env=env)
            runs.append(fresh_process(code, env=env) if warm else first)
    return seconds(runs)


def rows_of(program: Program) -> list[Row]:
    name = program.name
    table = [
        Row(
            narrow.title(f"loops: {name}"),
            "the best of NumPy, Numba, torch.compile",
            1.0,
            functools.partial(beside_peers, name),
        )
    ]
    if narrow.available():
        measure = functools.partial(beside_peers, name, narrowed=True)
        title = f"loops: {name}, {narrow.NAME}"
        table.append(Row(title, "the best of NumPy, Numba, torch.compile", 1.0, measure))
    if name in BLAS:
        title, measure = narrow.title(f"loops: {name}, contraction"), functools.partial(beside_blas, name)
        table.append(Row(title, "NumPy's OpenBLAS", 1.5, measure))
    bar = 1.25 if any(b.unit == "bytes" for b in program.bounds) and name not in BLAS else None
    table.append(
        Row(
            narrow.title(f"loops: {name}, bound"),
            "the roof measured in this run",
            bar,
            functools.partial(beside_bound, name),
        )
    )
    cold = functools.partial(compile_time, name, warm=False)
    table.append(Row(f"loops: {name}, compile cold", "", COLD_BAR_S, cold, "s"))
    return table


def rows() -> list[Row]:
    table = [row for program in npbench.ROWS.values() for row in rows_of(program)]
    warm = functools.partial(compile_time, "softmax", warm=True)
    return [*table, Row("loops: softmax, compile warm", "", 0.01, warm, "s")]
