"""Build the wheel, install it into an empty folder, and use it where no compiler can be found."""

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
    shutil.copytree(HERE, folder / "project", ignore=shutil.ignore_patterns("build", "*.egg-info", "__*__"))
    run("-m", "pip", "wheel", folder / "project", "-q", "--no-deps", "--no-build-isolation", "-w", folder)
    [wheel] = folder.glob("*.whl")
    run("-m", "polyop", "audit", wheel)
    run("-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", folder / "installed", wheel)
    paths = os.pathsep.join(filter(None, (str(folder / "installed"), os.environ.get("PYTHONPATH"))))
    without = {
        **os.environ,
        "PATH": "",
        "CC": "",
        "PYTHONPATH": paths,
        "POLYOP_CACHE_DIR": str(folder / "none"),
    }
    run(HERE / "use.py", env=without)
