"""Calls with MindSpore's tensors beside MindSpore's own ``ops.Custom``.

POLYOP_BENCH_MINDSPORE is the Python of an environment with MindSpore; ``make bench`` sets it.
"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from measure import Measured, Missing, Row, Settings, summary

PEER = Path(__file__).resolve().parents[1] / "peers" / "mindspore_calls.py"
# The graph's row has no bar, because no operator can reach another ratio: in a profile two threads of
# MindSpore that wait for each other took 61 % of the time, and polyop with its kernel 0.3 %. Graphs of
# MindSpore's own x + x and relu(x) take 1.02 x and 1.01 x as long as the peer.
ROWS_OF_PEER = (  # the name in the peer's program; the row's name, peer and bar
    ("pynative", "MindSpore PyNative call, 4 elements", "MindSpore's ops.Custom, aot", 0.1),
    ("gradient", "MindSpore PyNative value and gradient", "the same by ops.Custom", None),
    ("graph", "MindSpore graph call", "the same by ops.Custom", None),
)


def rows() -> list[Row]:
    python = os.environ.get("POLYOP_BENCH_MINDSPORE", "")
    if not Path(python).is_file():
        raise Missing("POLYOP_BENCH_MINDSPORE names no Python with MindSpore")
    return [Row(name, beside, bar, _measure(python, work)) for work, name, beside, bar in ROWS_OF_PEER]


def _measure(python: str, work: str) -> Callable[[Settings], Measured]:
    def measure(settings: Settings) -> Measured:
        done = subprocess.run(
            [python, str(PEER), work, str(settings.rounds), str(settings.slice_s)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        ours, peer = json.loads(done.stdout.splitlines()[-1])
        return summary(ours, peer)

    return measure
