"""Runs the code of docs/hosts/xarray.md."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("xarray", reason="xarray is not installed")
pytest.importorskip("dask.array", reason="dask is not installed")


def test_the_code_of_the_page_runs():
    program = pathlib.Path(__file__).with_name("page.py")
    done = subprocess.run(
        [sys.executable, "-W", "error", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "True"
