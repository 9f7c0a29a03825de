"""The end of a process while daemon threads are inside polyop: it has the exit code of the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CSRC = Path(__file__).resolve().parents[2] / "csrc"

PRELUDE = """
import os, threading, time
import numpy as np
import polyop
LIBRARY = os.environ["LIBRARY"]
x = np.ones(5000, np.float32)
def endless(work):
    def run():
        while True:
            work()
    for _ in range(3):
        threading.Thread(target=run, daemon=True).start()
    time.sleep(0.3)
    print("ends")
"""
WORK = {
    "native kernel": """
op = polyop.operator("daemon::twice(Tensor x) -> Tensor", LIBRARY + ":twice", infer="x")
endless(lambda: op(x))
""",
    "strided input": """
op = polyop.operator("daemon::twice(Tensor x) -> Tensor", LIBRARY + ":twice", infer="x")
endless(lambda: op(x[::2]))
""",
    "new sizes": """
op = polyop.operator("daemon::twice(Tensor x) -> Tensor", LIBRARY + ":twice", infer="x")
import itertools
sizes = itertools.count(1)
endless(lambda: op(x[:next(sizes) % 5000]))
""",
    "failing kernel": """
op = polyop.operator("daemon::fails(Tensor x) -> Tensor", LIBRARY + ":fails", infer="x")
def work():
    try:
        op(x)
    except polyop.KernelError:
        pass
endless(work)
""",
    "Python kernel": """
op = polyop.operator("daemon::slow(Tensor x) -> Tensor", lambda x: sum([x] * 50), infer="x")
endless(lambda: op(x))
""",
    "loop kernel": """
import linecache
text = "def doubled(x):\\n    y = output_tensor(x.shape, x.dtype)\\n    for i in range(x.shape[0]):\\n        y[i] = sin(x[i]) * 2\\n    return y\\n"
linecache.cache["loops.py"] = len(text), None, text.splitlines(True), "loops.py"
exec(compile(text, "loops.py", "exec"))
op = polyop.kernel(name="daemon::doubled")(doubled)
endless(lambda: op(x))
""",
    "definitions": """
import itertools
numbers = itertools.count()
def work():
    op = polyop.operator(f"daemon::op{next(numbers)}(Tensor x) -> Tensor", LIBRARY + ":twice", infer="x")
    assert op(x)[0] == 2
endless(work)
""",
}


@pytest.mark.parametrize("name", WORK)
def test_the_process_ends_well(run_python, name: str) -> None:
    """``run_python`` fails for an exit code that is not 0, and a time limit ends a process that hangs."""
    assert "ends" in run_python(PRELUDE + WORK[name])


def test_python_s_lock_is_taken_in_one_place() -> None:
    """Taken elsewhere it would end the process when Python has ended: see csrc/python_lock.h."""
    takes = re.compile(r"(?<!return )\b(PyEval_RestoreThread|PyEval_AcquireThread|PyGILState_Ensure)\(")
    calls = re.compile(r"(?<!return )\bPyObject_(Call\w*|Vectorcall)\(")
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted(CSRC.rglob("*.cc")) + sorted(CSRC.rglob("*.h"))
        if path.name != "python_lock.h"
        for line in path.read_text().splitlines()
        if takes.search(line) or calls.search(line)
    ]
    assert found == []
