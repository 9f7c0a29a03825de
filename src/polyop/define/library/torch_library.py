"""Libraries that register their operators in PyTorch, by ``TORCH_LIBRARY``: every host calls them."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...binary.allowed import check_allowed
from ...binary.elf import read
from ...binary.file_kind import file_problem, subject_of
from ...call.bound import BoundOperator
from ...core.errors import ArgumentValueError, LibraryError, UnsupportedError
from ...core.origin import Origin
from ...kernels.module.registrations import ENTRY
from ...providers.aten import aten
from ...providers.aten.registered import registers_in_torch, torch_operators
from .opened import OperatorLibrary

_lock = threading.RLock()
_loaded: dict[str, OperatorLibrary] = {}  # by the digest of the file: PyTorch loads a library once


def is_torch_library(path: Path) -> bool:
    """Whether a library registers operators in PyTorch, and none in polyop. None of its code runs."""
    if file_problem(path) is not None:
        return False
    file = read(path)
    return registers_in_torch(file) and ENTRY not in file.functions


def load_torch_library(path: Path, options: Mapping[str, Any], origin: Origin) -> OperatorLibrary:
    """Return the operators that a library registers in PyTorch.

    Raises ``ArgumentValueError`` for ``options`` that are not None, ``HostError`` without PyTorch, and
    ``LibraryError`` for a library that PyTorch cannot load, or that registers no operator.
    """
    subject = subject_of(path)
    unusable = [name for name, value in options.items() if value is not None]
    if unusable:
        rule = f"registers its operators in PyTorch, so load_library takes no {unusable[0]}= for it"
        hint = "names, docstrings and shapes are those that are registered in PyTorch"
        raise ArgumentValueError(subject, rule, where=origin, hint=hint)
    check_allowed(path)
    with _lock:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest not in _loaded:
            _loaded[digest] = _open(path, subject, origin)
        return _loaded[digest]


def _open(path: Path, subject: str, origin: Origin) -> OperatorLibrary:
    names = [name for name, schema, _ in torch_operators(path) if schema is not None]
    if not names:
        rule = "registers no operator with a schema"
        hint = 'operators that another library registers are called by name: polyop.aten("namespace::name")'
        raise LibraryError(subject, rule, where=origin, hint=hint)
    looked_up = {name: _find(name) for name in names}
    refused = {name: one for name, one in looked_up.items() if isinstance(one, UnsupportedError)}
    return OperatorLibrary(
        path, {name: one for name, one in looked_up.items() if name not in refused}, refused
    )


def _find(name: str) -> BoundOperator | UnsupportedError:
    try:
        return aten(name)
    except UnsupportedError as problem:
        return problem
