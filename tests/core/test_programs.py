"""Programs that are started while another thread forks: none waits for a child that goes on."""

import pathlib
import re
import subprocess
import sys

import pytest

from polyop.core import programs

SOURCE = pathlib.Path(__file__).parents[2] / "src" / "polyop"
WHILE_STARTING = """
import os, subprocess, sys, threading, time
from polyop.core import programs
module = subprocess if hasattr(subprocess, "_fork_exec") else subprocess._posixsubprocess
name = "_fork_exec" if hasattr(subprocess, "_fork_exec") else "fork_exec"
run_program, has_pipe = getattr(module, name), threading.Event()
def slow(*args):
    has_pipe.set()
    time.sleep(0.5)  # the pipe from the new process is there, and open in a child of a fork
    return run_program(*args)
setattr(module, name, slow)
start = programs.start if sys.argv[1] == "ours" else subprocess.Popen
thread = threading.Thread(target=lambda: start(["true"]).wait(), daemon=True)
thread.start()
assert has_pipe.wait(30)
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
thread.join(20 if sys.argv[1] == "ours" else 3)
print("waits for the child" if thread.is_alive() else "has started")
os.kill(child, 9)
os.waitpid(child, 0)
"""


@pytest.mark.parametrize(("way", "what"), [("ours", "has started"), ("plain", "waits for the child")])
def test_a_fork_waits_until_a_program_has_started(way, what):
    """The way of the standard library alone shows that the case is met."""
    done = subprocess.run(
        [sys.executable, "-c", WHILE_STARTING, way], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout.strip() == what, done.stderr


def test_a_program_that_takes_too_long_is_ended():
    with pytest.raises(subprocess.TimeoutExpired):
        programs.run(["sleep", "60"], 0.1)
    done = programs.run([sys.executable, "-c", "import sys; sys.exit(3)"])
    assert done.returncode == 3


def test_nothing_else_starts_programs():
    others = [
        path for path in SOURCE.rglob("*.py") if path.name != "programs.py" and "stand_in" not in path.parts
    ]
    starts = [
        str(path)
        for path in others
        if re.search(r"subprocess\.(run|Popen|call|check_\w+)\(", path.read_text())
    ]
    assert not starts, starts


def test_a_program_that_is_not_there():
    with pytest.raises(FileNotFoundError):
        programs.run(["no-such-program-of-anybody"])
