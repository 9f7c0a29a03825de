"""Loop kernels in MindSpore's graphs beside AKG, MindSpore's compiler of loop kernels.

POLYOP_BENCH_MINDSPORE is the Python of an environment with MindSpore; ``make bench`` sets it. Each kernel
runs in another process, because AKG's compiler may crash or never end.
"""

import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from loops import npbench
from measure import Measured, Missing, Row, Settings, summary

PEER = Path(__file__).resolve().parents[1] / "peers" / "mindspore_akg.py"
LIMIT_S = 60
TURNS = 9
OURS_AGREES = "polyop agrees with NumPy"
"""Printed by the peer before it starts AKG."""
REASON = re.compile(r"^(?:TVMError|RuntimeError): (?!Response is empty)(.+)$", re.MULTILINE)


def run(command: list[str], output: Any, **options: Any) -> bool:
    """Run a command and return whether it succeeded.

    All processes of its session are ended, because AKG's compiler outlives the process that started it.
    """
    process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True, **options)
    try:
        return process.wait(LIMIT_S) == 0
    except subprocess.TimeoutExpired:
        output.write(f"RuntimeError: not done after {LIMIT_S} s\n")
        return False
    finally:
        with contextlib.suppress(ProcessLookupError):
            for _ in range(100):  # 5 s at most: a zombie that nobody waits for stays in the group
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                time.sleep(0.05)


@functools.cache
def times(python: str, name: str) -> list[dict[str, Any]]:
    """Return the seconds of the first call and of each turn, for polyop and for AKG."""
    with tempfile.TemporaryDirectory() as folder, Path(folder, "output").open("w+") as output:
        env = {**os.environ, "XDG_CACHE_HOME": folder}
        failed = not run([python, str(PEER), name, str(TURNS)], output, cwd=folder, env=env)
        output.seek(0)
        text = output.read()
    if failed and OURS_AGREES not in text:
        raise RuntimeError(text)
    if failed:
        raise Missing(f"AKG: {(REASON.findall(text) or ['failed without a word'])[0].strip()[:90]}")
    both: list[dict[str, Any]] = json.loads(text.splitlines()[-1])
    return both


def every_call(python: str, name: str, settings: Settings) -> Measured:
    del settings
    ours, akg = times(python, name)
    return summary(ours["turns"], akg["turns"])


def first_call(python: str, name: str, settings: Settings) -> Measured:
    del settings
    ours, akg = times(python, name)
    return summary([ours["first"]], [akg["first"]])


def rows() -> list[Row]:
    python = os.environ.get("POLYOP_BENCH_MINDSPORE", "")
    if not Path(python).is_file():
        raise Missing("POLYOP_BENCH_MINDSPORE names no Python with MindSpore")
    table = [
        Row(
            f"loops: {name}, MindSpore graph",
            "MindSpore's AKG",
            1.0,
            functools.partial(every_call, python, name),
        )
        for name in npbench.ROWS
    ]
    first = functools.partial(first_call, python, "chain")
    return [*table, Row("loops: chain, first call in a MindSpore graph", "MindSpore's AKG", None, first)]
