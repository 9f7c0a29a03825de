"""Random kernels against exact dual numbers: a few for every change, hundreds in the slow ones."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FUZZ = Path(__file__).with_name("fuzz.py")
numpy_2 = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0",
    reason="NumPy 1 promotes Python numbers by their value; a kernel promotes as NumPy 2",
)


@pytest.mark.slow
@numpy_2
@pytest.mark.parametrize(("seed", "count"), [(1, 12)])  # `make sweep` compares many more
def test_random_kernels(seed, count, record_property):
    command = [sys.executable, FUZZ, "--seed", str(seed), "--count", str(count), "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    record_property("fuzz", done.stdout.splitlines()[-1] if done.stdout else "")
    assert done.returncode == 0, done.stdout + done.stderr
    kernels, compared = (int(word) for word in done.stdout.splitlines()[-1].split()[:3:2])
    assert kernels == count
    assert compared > 0.8 * count


@numpy_2
def test_a_kernel_that_magnifies_rounding_is_not_compared():
    """Its values come from 256 cosines, each of the one before: other digits decide them."""
    command = [sys.executable, FUZZ, "--child", "[20261128, 56, 57, []]"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["step"] for row in rows] == ["making", "compiling", "running", "done"]
    assert rows[-1]["compared"] < 3


@pytest.mark.slow
@numpy_2
@pytest.mark.parametrize(
    ("broken", "word"),
    [
        ("one[1] += 0.5", "values"),
        ("import os; os.kill(os.getpid(), 11)", "exit status -11"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGPROF)", "a hang"),
        ("raise RuntimeError('a pass failed')", "a pass failed"),
    ],
)
def test_the_fuzzer_finds_bugs(tmp_path, broken, word):
    """The fuzzer reports a wrong result, a crash and an exception."""
    text = FUZZ.read_text()
    place = "        raise IndexError(ERRORS[0].decode())\n"
    assert place in text
    broken = broken.replace("one[1]", "outputs[0]")
    folder = tmp_path / "tests" / "loops"
    folder.mkdir(parents=True)
    (folder / "fuzz.py").write_text(text.replace(place, f"{place}    {broken}\n"))
    (tmp_path / "tests" / "support").symlink_to(FUZZ.parents[1] / "support")
    command = [sys.executable, folder / "fuzz.py", "--seed", "1", "--count", "2", "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "finding: seed 1, kernel" in done.stdout
    assert "def f(" in done.stdout
    assert word in done.stdout
