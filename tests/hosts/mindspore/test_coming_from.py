"""docs/coming-from/mindspore.md: MindSpore's half runs too."""

import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).parents[3] / "examples" / "coming_from" / "mindspore_custom.py"


def test_custom_of_mindspore_and_of_polyop():
    pytest.importorskip("mindspore", reason="MindSpore is not installed")
    done = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("both agree\n")
