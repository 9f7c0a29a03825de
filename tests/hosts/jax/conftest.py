"""JAX with 64-bit types, which the operators of these tests have; reset after each test."""

import os
import subprocess
import sys
import textwrap

import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")


collect_ignore = ["page.py", "mesh_table.py", "mesh_process.py"]  # programs


@pytest.fixture(autouse=True)
def _x64():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def process(tmp_path):
    """Return a function that runs a program in a new process, where warnings are errors, and returns its output."""

    def run(program, *arguments, fails=False, warnings="error", **environment):
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(program))
        done = subprocess.run(
            [sys.executable, "-W", warnings, str(path), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={**os.environ, "JAX_PLATFORMS": "cpu", **environment},
        )
        assert fails == (done.returncode != 0), done.stdout + done.stderr
        return done.stdout + done.stderr if fails else done.stdout

    return run
