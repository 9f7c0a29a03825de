"""``make device``: what it does with commands that end, fail or hang. No GPU is used."""

import importlib.util
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("device", Path(__file__).parents[2] / "tools" / "device.py")
device = importlib.util.module_from_spec(spec)
spec.loader.exec_module(device)

SLEEPS = "import time; time.sleep(600)"
IGNORES = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {SLEEPS}"


@pytest.mark.parametrize(
    ("program", "code"), [("", 0), ("raise SystemExit(4)", 4), (SLEEPS, None), (IGNORES, None)]
)
def test_a_command_ends_or_is_stopped(program, code, monkeypatch):
    monkeypatch.setattr(device, "PATIENCE", 0.2)
    assert device.within(1.0 if code is None else 60.0, [sys.executable, "-c", program]) == code


def test_what_a_command_has_started_is_stopped_too(tmp_path):
    alive = tmp_path / "alive"
    child = f"import pathlib, time\nwhile True: pathlib.Path({str(alive)!r}).touch(); time.sleep(0.05)"
    program = (
        f"import pathlib, subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {child!r}])\n"
        f"while not pathlib.Path({str(alive)!r}).exists(): time.sleep(0.05)"
    )
    assert device.within(60.0, [sys.executable, "-c", program]) == 0
    alive.unlink()
    time.sleep(0.5)
    assert not alive.exists()


@pytest.mark.parametrize(
    ("inside", "state"), [("", "passed"), ("<error/>", "failed"), ("<skipped/>", "skipped")]
)
def test_the_state_of_a_case(inside, state):
    assert device.state(ET.fromstring(f"<testcase>{inside}</testcase>")) == state
