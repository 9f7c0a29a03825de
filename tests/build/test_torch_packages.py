"""Extensions of PyTorch from the package index: built, called in each host, compared with their own Python.

`make packages` does so for all of the table, with MindSpore, and beside torch.utils.cpp_extension.
"""

import json
import pathlib
import subprocess
import sys

import pytest

RUN = pathlib.Path(__file__).parents[1] / "support" / "torch_packages" / "run.py"
NOT_DOWNLOADED = 3

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("package", "checks"),
    [
        ("torch-spline-conv", {"values", "gradient", "jit", "jit gradient"}),
        ("torchlpc", {"values", "gradient refused", "jit", "jit refused"}),
    ],
)
def test_a_package_is_built_from_its_sources_and_its_operators_run_in_each_host(package, checks, tmp_path):
    command = [sys.executable, str(RUN), package, str(tmp_path), "numpy", "torch", "jax"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == NOT_DOWNLOADED:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stderr
    calls = json.loads(done.stdout.splitlines()[-1])["calls"]
    assert [call for call in calls if "FAILED" in call[-1]] == []
    assert {host for host, _, _ in calls} == {"numpy", "torch", "jax"}
    assert {result for host, _, result in calls if host == "jax"} == checks
