"""Importing what a command line names: a Python file or a module."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core.errors import ArgumentValueError, PolyopError


def load(name: str) -> ModuleType:
    """Return the module that ``name`` is: a path ending in ``.py``, or a dotted name.

    Raises ``ArgumentValueError`` when there is none, or when it raises itself: with the type,
    the message and the line.
    """
    sys.path.insert(0, str(Path.cwd()))
    if name.endswith(".so"):
        raise ArgumentValueError(
            "module", "must define operators in Python", repr(name), hint=f"polyop inspect {name}"
        )
    if not name.endswith(".py"):
        if importlib.util.find_spec(name.split(".", maxsplit=1)[0]) is None:
            raise ArgumentValueError("module", "must be a Python file or an importable module", repr(name))
        found: ModuleType = _run(name, lambda: importlib.import_module(name))
        return found
    path = Path(name).resolve()
    if not path.is_file():
        raise ArgumentValueError("module", "must be a Python file or an importable module", repr(name))
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ArgumentValueError("module", "is no Python file", repr(name))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    loader = spec.loader
    _run(name, lambda: loader.exec_module(module))
    return module


def _run(name: str, load_it: Callable[[], Any]) -> Any:
    try:
        return load_it()
    except PolyopError:
        raise
    except (Exception, SystemExit) as problem:
        frames = traceback.extract_tb(problem.__traceback__)
        own = [frame for frame in frames if "importlib" not in frame.filename and __file__ != frame.filename]
        place = f"{own[-1].filename}:{own[-1].lineno}" if own else None
        if isinstance(problem, SyntaxError):
            place = f"{problem.filename}:{problem.lineno}"
        rule = f"could not be imported: {type(problem).__name__}: {problem}"
        raise ArgumentValueError(name, rule, where=place) from problem
