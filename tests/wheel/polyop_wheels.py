"""polyop's own wheel for a version of Python, built once in a session by tools/wheel.py."""

import functools
import os
import pathlib
import platform
import shutil
import subprocess
import sys

import pytest
from filelock import FileLock

ROOT = pathlib.Path(__file__).parents[2]
WORK = ROOT / "build" / "wheels"
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


@functools.cache
def _built(version):
    folder = WORK / f"tested-{version}-{os.getpid()}"
    only = ("--python", version, "--machine", platform.machine())
    command = [sys.executable, ROOT / "tools" / "wheel.py", *only, "--no-try", "-o", folder]
    WORK.mkdir(parents=True, exist_ok=True)
    with FileLock(WORK / "lock"):  # every worker of a test run builds in this folder
        shutil.rmtree(folder, ignore_errors=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    return done, wheels


def polyop_wheel(version=HERE):
    """Return (the Python, the wheel for it); the test is skipped where that Python is not."""
    done, wheels = _built(version)
    if "not on this machine" in done.stdout:
        pytest.skip(f"not run: {done.stdout.strip()}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()[2], wheels[0]


def outside(*command, cwd, **environment):
    """Run a command in which this checkout is not importable."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pip(version):
    """Return the pip of the environment that built for a version, as the start of a command."""
    return (WORK / f"cp{version.replace('.', '')}-build" / "bin" / "python", "-m", "pip")
