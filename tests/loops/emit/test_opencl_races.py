"""Loop kernels on oclgrind's device, which finds races and accesses outside of memory."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from polyop.kernels.opencl.kernel import TEXTS
from polyop.testing.races import COMMAND, findings

PROGRAM = Path(__file__).parents[2] / "support" / "loop_samples" / "under_oclgrind.py"
pytestmark = [
    pytest.mark.skipif(
        shutil.which("oclgrind") is None, reason="oclgrind is not installed (apt-get install oclgrind)"
    ),
]
NAMES = """matmul_ijk-float32 softmax-float32 layernorm-float32 row_reductions-int8 column_reductions-float32
whole_sum-float32 whole_sum-bool argmax-float32 histogram-int64 scatter_add-float32 row_temporary-float32
tile_temporary-float32 scan-float64 jacobi-float64 spread-float64 attention-float32 online_attention-float32
trmm-float64 indirect-float32 linear_with_bias-float32"""
EACH = [NAMES.split()[k::5] for k in range(5)]
GRADIENTS = "matmul_ijk-float32 softmax-float32 layernorm-float32 conv-float32 scan-float64 indirect-float32"


def run(fault, form, names, folder):
    """Return what oclgrind finds in samples, and the output of the run."""
    log = folder / "log"
    command = [*COMMAND, "--log", log, sys.executable, PROGRAM, fault, form, *names]
    done = subprocess.run(
        command, env={**os.environ, TEXTS: str(folder)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return findings(log.read_text(), [path.read_text() for path in folder.glob("*.cl")]), done.stdout


@pytest.mark.slow(1, more=3)
@pytest.mark.parametrize("names", EACH, ids=lambda names: names[0])
def test_samples_are_free_of_races(names, tmp_path):
    found, output = run("none", "kernel", names, tmp_path)
    assert sorted(output.split()[::2]) == sorted(names)
    assert found == []


@pytest.mark.slow(1, more=2)
@pytest.mark.parametrize("name", GRADIENTS.split())
def test_gradients_are_free_of_races(name, tmp_path):
    found, output = run("none", "gradient", [name], tmp_path)
    assert output == f"{name} ran\n"
    assert found == []


OPERATORS = """
import numpy as np
import polyop


@polyop.kernel
def scalars(x):
    y = np.zeros(x.shape, x.dtype)
    z = np.zeros(x.shape, x.dtype)
    best = x[0]
    for i in range(x.shape[0]):
        y[i] = x[i] * best
    if x[1] > 5:
        for j in range(x.shape[0]):
            z[j] = x[j] + best
    best = best + 1
    for i in range(x.shape[0]):
        y[i] = y[i] + best
    return y, z


on_cpu = polyop.operator("races::on_cpu(Tensor x) -> Tensor", lambda x: x + 1, infer="x")
polyop_samples = {"main::scalars": (np.ones(8, np.float32),)}
"""


def test_the_command_runs_the_operators_of_a_file(tmp_path):
    """A scalar of several launches is written when all threads have read it."""
    path = tmp_path / "of_races.py"
    path.write_text(OPERATORS.replace("main::", "of_races::"))
    command = [sys.executable, "-m", "polyop", "check", "--races", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "of_races::scalars: ran on Oclgrind Simulator, and its gradient" in done.stderr, done.stderr
    assert "races::on_cpu: not run: " in done.stderr
    assert (done.returncode, done.stdout) == (1, "")
    other = subprocess.run([*command, "--host", "jax"], capture_output=True, text=True, check=False)
    assert "--races: runs operators on arrays of PyOpenCL alone, but got --host jax" in other.stderr


@pytest.mark.parametrize(
    ("fault", "what", "line"),
    [
        ("no barrier", "Read-write data race in global memory", "y[i, d] += p[j] / total * v[j, d]"),
        ("past the end", "Invalid write of size 4 in global memory", "y[i, d] += p[j] / total * v[j, d]"),
    ],
)
def test_a_fault_is_found_with_the_authors_line(fault, what, line, tmp_path):
    found, _ = run(fault, "kernel", ["attention-float32"], tmp_path)
    texts = [str(one) for one in found if one.what == what]
    assert texts, found
    assert any(line in text and "dense.py:" in text for text in texts), texts


STAGED = """
import numpy as np
import polyop


@polyop.kernel
def guarded(a, b, shift: int):
    c = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(b.shape[0]):
                s += (a[i, k - shift] if k >= shift else 0) * b[k, j]
            c[i, j] = s
    return c


@polyop.kernel
def below(a, b):
    c = np.zeros((a.shape[0] + 1, b.shape[1]), a.dtype)
    for i in range(a.shape[0] + 1):
        for j in range(min(i, b.shape[1])):
            s = 0.0
            for k in range(b.shape[0]):
                s += a[i - 1, k] * b[k, j]
            c[i, j] = s
    return c


a, b = np.ones((20, 9), np.float32), np.ones((9, 20), np.float32)
polyop_samples = {
    "FILE::guarded": (a, b, 10**6),
    "FILE::below": (a, b),
}
"""


def test_a_tile_stages_no_element_outside_of_its_tensor(tmp_path):
    """A whole tile is copied: also what a condition, or the range of the lanes, leaves out."""
    path = tmp_path / "of_tiles.py"
    path.write_text(STAGED.replace("FILE", path.stem))
    command = [sys.executable, "-m", "polyop", "check", "--races", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "of_tiles::guarded: ran on Oclgrind Simulator" in done.stderr, done.stderr
    assert "of_tiles::below: ran on Oclgrind Simulator" in done.stderr
    assert done.returncode == 0, done.stderr + done.stdout
