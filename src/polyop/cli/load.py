"""Importing what a command line names: a Python file or a module."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from ..core.errors import ArgumentValueError


def load(name: str) -> ModuleType:
    """Return the module that ``name`` is: a path ending in ``.py``, or a dotted name.

    What the file itself raises goes through. Raises ``ArgumentValueError`` when there is none.
    """
    sys.path.insert(0, str(Path.cwd()))
    if not name.endswith(".py"):
        if importlib.util.find_spec(name.split(".", maxsplit=1)[0]) is None:
            raise ArgumentValueError("module", "must be a Python file or an importable module", repr(name))
        return importlib.import_module(name)
    path = Path(name).resolve()
    if not path.is_file():
        raise ArgumentValueError("module", "must be a Python file or an importable module", repr(name))
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ArgumentValueError("module", "is no Python file", repr(name))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
