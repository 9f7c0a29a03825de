"""Build the wheel, audit it, install it into an empty folder and run the project's tests there."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def run(*arguments, **options):
    """Run Python, and stop where that fails."""
    subprocess.run([sys.executable, *map(str, arguments)], check=True, **options)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    unwanted = shutil.ignore_patterns("build", "dist", "*.egg-info", "__pycache__")
    shutil.copytree(HERE, folder / "project", ignore=unwanted)
    run("setup.py", "-q", "build", "bdist_wheel", cwd=folder / "project")
    [wheel] = (folder / "project" / "dist").glob("*.whl")
    run("-m", "polyop", "audit", wheel)
    run("-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", folder / "installed", wheel)
    paths = os.pathsep.join(filter(None, (str(folder / "installed"), os.environ.get("PYTHONPATH"))))
    tests = ("-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "test")
    run(*tests, cwd=folder / "project", env={**os.environ, "PYTHONPATH": paths})
