"""Operators on dask.distributed: worker processes find them by name and digest."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("distributed", reason="dask.distributed is not installed")


@pytest.fixture(scope="session")
def checks():
    """The names of the checks of sources/dask_cluster.py that hold, and what it wrote."""
    program = pathlib.Path(__file__).parents[2] / "sources" / "dask_cluster.py"
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=400
    )
    return done.stdout.split(), done.stderr[-3000:]


@pytest.mark.slow(1)
@pytest.mark.parametrize("check", ["kinds", "undefined", "killed"])
def test_on_a_cluster_of_two_processes(checks, check):
    names, stderr = checks
    assert check in names, stderr
