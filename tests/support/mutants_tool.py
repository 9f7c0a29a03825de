"""The modules of tools/mutants, for its tests."""

import contextlib
import pathlib
import sys

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "mutants"


@contextlib.contextmanager
def modules():
    """Give the modules by their names: they import one another by these, and are forgotten at the end."""
    names = [path.stem for path in TOOL.glob("*.py") if path.stem != "run"]
    sys.path.insert(0, str(TOOL))
    try:
        yield {name: __import__(name) for name in names}
    finally:
        sys.path.remove(str(TOOL))
        for name in names:
            sys.modules.pop(name, None)
