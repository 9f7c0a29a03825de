"""Loops run on the OpenMP threads of PyTorch while these are awake, and on polyop's own elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import polyop
@polyop.kernel(name="openmp::doubled")
def doubled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = 2 * exp(log(x[i, j]))
    return y
polyop.set_num_threads(2)
x = np.full((1024, 512), 3, np.float32)
shared = polyop._core.openmp_loops
def run(tensor=x):
    for _ in range(20):
        assert abs(float(doubled(tensor)[-1, -1]) - 6) < 1e-5
"""
TORCH = """
import torch
torch.set_num_threads(2)
t = torch.from_numpy(x)
"""
SEVERAL = f"""{TORCH}
run(t)
running = [threading.Thread(target=run, args=(t,)) for _ in range(4)]
for one in running:
    one.start()
for one in running:
    one.join()
"""
CHILD = f"""{TORCH}
torch.relu(t)
run(t)
before = shared()
child = os.fork()
if child == 0:
    signal.alarm(60)
    run()
    os._exit(40 + (shared() > before))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 40
run(t)
"""
AWAKE = f"""{TORCH}
for _ in range(200):
    torch.relu(t)
    doubled(t)
assert shared() > 1
"""
ASLEEP = f"""{TORCH}
run(t)
before = shared()
for _ in range(20):
    time.sleep(0.05)
    doubled(t)
assert shared() < before + 10
"""
CASES = {
    "numpy alone": ("run()", False),
    "pytorch": (f"{TORCH}run(t); torch.relu(t); run(t); run()", True),
    "awake": (AWAKE, True),
    "asleep": (ASLEEP, True),
    "pytorch comes later": (f"run(){TORCH}assert not shared(); run(t)", True),
    "pytorch has fewer threads": (f"{TORCH}torch.set_num_threads(1); run(t)", False),
    "switched off": (f"os.environ['POLYOP_OPENMP'] = '0'{TORCH}run(t)", False),
    "several threads": (SEVERAL, True),
    "a child": (CHILD, True),
}
"""By case: the program, and whether any loop ran on PyTorch's threads in the end."""


@pytest.mark.parametrize("case", CASES)
def test_which_threads_run_loops(case: str, tmp_path: Path) -> None:
    text, is_shared = CASES[case]
    code, said = ended(tmp_path, f"{PROGRAM}\n{text}\nsys.exit(40 + (shared() > 0))\n")
    assert code == 40 + is_shared, said


def test_ctrl_c_ends_a_loop_beside_pytorch(tmp_path: Path) -> None:
    text = """
run(t)
@polyop.kernel(name="openmp::long")
def long(x, n: int):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for k in range(n):
            y[i, 0] = y[i, 0] * 0.5 + x[i, k % 2]
    return y
long(t, 100)  # the kernel for all values: nothing is compiled when the signal comes
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    long(t, 10**10)
except KeyboardInterrupt:
    sys.exit(40)
"""
    code, said = ended(tmp_path, f"{PROGRAM}{TORCH}{text}")
    assert code == 40, said


def ended(folder: Path, text: str) -> tuple[int, str]:
    """Return the exit code of a program, and what it wrote."""
    program = folder / "program.py"
    program.write_text(text)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", program],
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stderr
