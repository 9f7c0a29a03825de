"""Signals while a loop kernel runs: Ctrl-C ends it, handlers of the program run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import polyop

from .endless import X, operator, steps

PROGRAM = Path(__file__).with_name("endless.py")


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("scenario", ["numpy", "handlers"])
def test_signals_interrupt_a_long_kernel(scenario: str, threads: int) -> None:
    run(scenario, threads)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["torch", "threads", "forks"])
def test_signals_reach_the_main_thread_alone(scenario: str) -> None:
    run(scenario, 3)


def run(scenario: str, threads: int) -> None:
    environment = {**os.environ, "POLYOP_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, PROGRAM, scenario],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.stdout.endswith("held\n")


def test_a_library_without_the_hook(tmp_path: Path) -> None:
    op = operator(steps)
    wanted = op(X, 50)
    (tmp_path / "old.c").write_text(op.source())
    include = Path(__file__).parents[2] / "include"
    flags = ["-std=gnu11", "-O1", "-fwrapv", "-shared", "-fPIC", f"-I{include}", "-Dpolyop_stop=no_hook"]
    subprocess.run(
        [os.environ.get("CC", "cc"), *flags, tmp_path / "old.c", "-o", tmp_path / "old.so"], check=True
    )
    library = f"{tmp_path / 'old.so'}:loop_steps"
    old = polyop.operator("old_library::steps(Tensor x, int n) -> Tensor", library, infer="x")
    assert np.array_equal(old(X, 50), wanted)
