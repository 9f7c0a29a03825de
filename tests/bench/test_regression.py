"""The rows that count as slower than in an earlier run, and the exit code of bench/run.py."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
spec = importlib.util.spec_from_file_location("bench_regression", BENCH / "regression.py")
regression = importlib.util.module_from_spec(spec)
spec.loader.exec_module(regression)

MACHINE = {"processor": "one"}


def line(value=None, low=None, high=None, bar=1.0, name="row", verdict="ok"):
    measured = {} if value is None else {"value": value, "low": low, "high": high}
    return {"name": name, "beside": "peer", "bar": bar, "unit": "x", "verdict": verdict, **measured}


@pytest.mark.parametrize(
    ("old", "new", "slower"),
    [
        (line(0.5, 0.4, 0.6), line(0.5, 0.4, 0.6), False),
        (line(0.5, 0.4, 0.6), line(0.7, 0.61, 0.8), True),
        (line(0.5, 0.4, 0.6), line(0.7, 0.59, 0.8), False),  # the spreads overlap
        (line(0.5, 0.499, 0.501), line(0.52, 0.519, 0.521), False),  # four per cent
        (line(0.5, 0.4, 0.6), line(0.3, 0.2, 0.4), False),
        (line(0.5, 0.4, 0.6, bar=None), line(5.0, 4.0, 6.0, bar=None), False),
        (line(0.5, 0.4, 0.6), line(verdict="failed: OSError"), True),
        (line(verdict="not measured"), line(9.0, 8.0, 10.0), False),
        (line(0.5, 0.4, 0.6, name="other"), line(9.0, 8.0, 10.0), False),
    ],
)
def test_slower(old, new, slower):
    assert [(old, new)] * slower == regression.slower([old], [new])


def test_description():
    pair = (line(0.5, 0.4, 0.6), line(0.7, 0.61, 0.8))
    assert regression.describe([pair], MACHINE, {"processor": "two"}) == [
        "the runs are of different processors: one and two",
        "slower: row beside peer: 0.5 -> 0.7 x",
        "1 rows with a bar are slower than before beyond noise",
    ]


TWICE = """
import os, sys
sys.path.insert(0, "bench")
import run
for old in sys.argv[1:]:
    print("exit code", run.main(["--quick", "--plain", "--compare", old, "C kernel, from the cache"]))
"""


@pytest.mark.slow
def test_exit_code(tmp_path):
    """A real row beside an earlier run that took a million times as long, and one that took as little.

    On a busy machine the row may miss its bar: that is exit code 1, and not what this test is about.
    """
    files = []
    for scale in (1e6, 1e-6):
        row = {**line(scale, scale, scale), "name": "C kernel, from the cache", "beside": "-", "unit": "s"}
        files.append(tmp_path / f"{scale}.json")
        files[-1].write_text(json.dumps({"machine": MACHINE, "rows": [row]}))
    command = [sys.executable, "-c", TWICE, *files]  # in one process: to define all rows takes longest
    done = subprocess.run(command, cwd=BENCH.parent, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("failed") == 0, done.stdout + done.stderr
    faster, slower, end = done.stdout.split("exit code ")
    assert "0 rows with a bar are slower" in faster
    assert slower.splitlines()[0] in ("0", "1")
    assert "1 rows with a bar are slower" in slower
    assert end == "2\n"


def test_a_file_of_another_kind(tmp_path):
    other = tmp_path / "other.json"
    other.write_text("[]")
    command = [sys.executable, str(BENCH / "run.py"), "--compare", str(other)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"{other} is not a result of bench/run.py" in done.stderr
