"""Modules whose author includes pybind11 itself: Python modules of plain functions."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ...binary.open import open_library
from ...core.errors import BuildError, LibraryError

_INCLUDE = re.compile(r"^\s*#\s*include\s*[<\"]pybind11/", re.MULTILINE)


def includes_pybind11(sources: Sequence[str]) -> bool:
    """Whether any existing source includes pybind11."""
    texts = (Path(source).read_text(errors="replace") for source in sources if Path(source).is_file())
    return any(_INCLUDE.search(text) for text in texts)


def flags(name: str, where: Any) -> list[str]:
    """Return the compiler's flags for such sources; raises ``BuildError`` without pybind11."""
    try:
        import pybind11
    except ImportError:
        rule = "its sources include pybind11, which is not installed"
        hint = "pip install pybind11, or remove the include to use polyop's own PYBIND11_MODULE"
        raise BuildError(f"module {name}", rule, where=where, hint=hint) from None
    folders = (sysconfig.get_paths()["include"], pybind11.get_include())
    return ["-DPOLYOP_PYBIND11", "-fvisibility=hidden", *(f"-I{folder}" for folder in folders)]


def load(name: str, path: Path, where: Any) -> ModuleType:
    """Return the Python module at ``path``; raises ``LibraryError`` with the loader's or Python's message."""
    open_library(path)  # with the checks of every library; Python then gets the file that is already open
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as problem:
        hint = "write PYBIND11_MODULE(MS_EXTENSION_NAME, m): the builder fills the name in"
        raise LibraryError(f"module {name}", str(problem), where=where, hint=hint) from None
    return module
