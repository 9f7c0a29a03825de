"""Pages of the documents with a half that needs MindSpore: it runs too."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"


def printed(program):
    pytest.importorskip("mindspore", reason="MindSpore is not installed")
    command = [sys.executable, str(EXAMPLES / program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_custom_of_mindspore_and_of_polyop():
    assert printed("coming_from/mindspore_custom.py").endswith("both agree\n")


@pytest.mark.slow
def test_a_detector_that_is_moved_trains_as_in_pytorch():
    ways = [line.partition(":")[0] for line in printed("25_detector/main.py").splitlines()]
    assert ways[-2:] == ["MindSpore, PyNative", "MindSpore, graph mode"]
