"""Runs the code of docs/hosts/jax.md."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("flatbuffers", reason="flatbuffers is not installed: jax.export cannot write files")


@pytest.mark.slow
def test_the_code_of_the_page_runs():
    done = subprocess.run(
        [sys.executable, "-W", "error", pathlib.Path(__file__).with_name("page.py")],
        capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("PartitionSpec('batch',)") + done.stdout.count("P('batch',)") == 2, done.stdout
