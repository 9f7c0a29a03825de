"""Loop kernels in MindSpore's graphs beside AKG, its own compiler of them, in MindSpore's environment.

POLYOP_BENCH_MINDSPORE is the Python of that environment; ``make bench`` sets it. Each kernel has a process of
its own, as AKG's compiler may end it, or not end.
"""

import functools
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from loops import npbench
from measure import Measured, Missing, Row, Settings, summary

PEER = Path(__file__).resolve().parents[1] / "peers" / "mindspore_akg.py"
LIMIT_S = 60
TURNS = 9
OURS_AGREES = "polyop agrees with NumPy"
"""What the peer says before it comes to AKG."""
REASON = re.compile(r"^(?:TVMError|RuntimeError): (?!Response is empty)(.+)$", re.MULTILINE)


@functools.cache
def times(python: str, name: str) -> list[dict[str, Any]]:
    """Return the first call's seconds and each turn's, of ours and of AKG's."""
    with tempfile.TemporaryDirectory() as folder, Path(folder, "said").open("w+") as said:
        env = {**os.environ, "XDG_CACHE_HOME": folder}
        command = [python, str(PEER), name, str(TURNS)]
        try:
            done = subprocess.run(
                command, cwd=folder, env=env, stdout=said, stderr=said, check=False, timeout=LIMIT_S
            )
            failed = bool(done.returncode)
        except subprocess.TimeoutExpired:
            failed = True
            said.write(f"RuntimeError: not done after {LIMIT_S} s\n")
        said.seek(0)
        text = said.read()
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
    found = [
        Row(
            f"loops: {name}, MindSpore graph",
            "MindSpore's AKG",
            1.0,
            functools.partial(every_call, python, name),
        )
        for name in npbench.ROWS
    ]
    first = functools.partial(first_call, python, "chain")
    return [*found, Row("loops: chain, first call in a MindSpore graph", "MindSpore's AKG", None, first)]
