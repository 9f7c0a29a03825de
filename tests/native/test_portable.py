"""The core and the headers compile for aarch64: all code for x86 has a portable alternative."""

import pathlib
import shutil
import subprocess
import sysconfig

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
COMPILER = shutil.which("aarch64-linux-gnu-g++")


@pytest.mark.slow(2)
@pytest.mark.parametrize("source", sorted((ROOT / "csrc").rglob("*.cc")), ids=lambda path: path.name)
def test_compiles_for_aarch64(source):
    if COMPILER is None:
        pytest.skip("not run: aarch64-linux-gnu-g++ is not installed")
    if source.name == "bind.cc":
        pytest.skip("not run: nanobind's own headers are beside the build, not here")
    headers = pathlib.Path(sysconfig.get_path("include"))
    inner = "aarch64-linux-gnu/python"  # distributions have a pyconfig.h for each processor
    if inner in (headers / "pyconfig.h").read_text() and not list(headers.parent.glob(f"{inner}*")):
        pytest.skip("not run: this Python has its headers for its own processor alone")
    includes = [
        f"-I{ROOT / 'include'}",
        f"-I{ROOT / 'csrc'}",
        f"-I{sysconfig.get_path('include')}",
        f"-I{np.get_include()}",
    ]
    done = subprocess.run(
        [COMPILER, "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", *includes, str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
