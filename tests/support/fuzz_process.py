"""Kernels of a fuzzer run in a process of their own: a crash or a hang is a finding, not the end."""

import json
import signal
import subprocess
import sys

WALL = 1800
"""The most seconds for a process: longer is a hang without work. Machines may be slow."""


def within(seconds):
    """End this process by SIGPROF after so many seconds of its CPU time; 0: never."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def say(**line):
    """Print what a child tells the process that started it."""
    print(json.dumps(line), flush=True)


def run(file, options):
    """Run ``file --child options``. Return its lines, and how it ended: "" for an end of its own."""
    command = [sys.executable, file, "--child", json.dumps(options)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=WALL, check=False)
        out = done.stdout
        end = f"exit status {done.returncode}\n{done.stderr[-2000:]}" if done.returncode else ""
        if done.returncode == -signal.SIGPROF:
            end = "a hang: no end within the CPU time"
    except subprocess.TimeoutExpired as hang:
        out, end = (hang.stdout or b"").decode(), f"a hang: no end within {WALL} s"
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")], end
