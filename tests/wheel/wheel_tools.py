"""Shared by the tests of wheels: Python processes, builds, installs."""

import os
import pathlib
import subprocess
import sys
import zipfile

SOURCE = str(pathlib.Path(__file__).parents[2] / "src")


def run(*arguments, cwd=None, check=True, **environment):
    """Run Python with arguments, polyop importable; the output is text."""
    paths = os.pathsep.join(filter(None, [environment.pop("PYTHONPATH", ""), SOURCE]))
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 or not check, done.stdout + done.stderr
    return done


def build(project):
    """Return the one wheel that pip makes of a project."""
    out = project / "dist"
    run("-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "-q", "-w", out, cwd=project)
    [wheel] = out.iterdir()
    return wheel


def install(wheel, folder):
    run("-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", folder, wheel)
    return folder


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
