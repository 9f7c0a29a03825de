"""The files of polyop whose Python code an action enters."""

import cProfile
from pathlib import Path

import polyop

FOLDER = Path(polyop.__file__).parent


def files_entered(action):
    """Return what ``action`` returns, and the files that this thread enters in it, as "hosts/jax/planned.py"."""
    profile = cProfile.Profile()
    result = profile.runcall(action)
    codes = (row.code for row in profile.getstats())
    paths = {Path(code.co_filename) for code in codes if hasattr(code, "co_filename")}
    return result, {path.relative_to(FOLDER).as_posix() for path in paths if path.is_relative_to(FOLDER)}
