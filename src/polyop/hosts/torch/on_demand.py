"""Operators that are put into ``torch.ops`` when somebody looks for them there.

The loop compiler reads a function of ``@polyop.kernel`` at its first use, and parts, such as ``f__batched``,
are made when they are needed. A program that was exported names both, and a process that loads it may have
used neither. PyTorch has no event for this, so two of its functions are wrapped:

    torch.ops.<namespace>.<name>                 in Python, also by ``torch.export.load``
    torch._C._aoti.AOTIModelPackageLoader(path)  C++ looks up the names that the package's JSON files have
"""

from __future__ import annotations

import contextlib
import functools
import re
import zipfile
from typing import Any

import torch

from ...call import registry
from ...core import locks
from ...core.errors import PolyopError
from .leaving import BusyError

_TARGET = re.compile(rb'"target": "(\w+::\w+)')


def watch() -> None:
    """Wrap the functions of PyTorch that look up operators; without them nothing is found on demand."""
    with contextlib.suppress(AttributeError):
        space: Any = torch._ops._OpNamespace
        space.__getattr__ = _finding(space.__getattr__)
    with contextlib.suppress(AttributeError):
        loader: Any = torch._C._aoti.AOTIModelPackageLoader
        loader.__init__ = _preparing(loader.__init__)


def _finding(look_up: Any) -> Any:
    """Return the look-up of a name in a namespace, which makes an operator of polyop with that name."""

    @functools.wraps(look_up)
    def found(namespace: Any, name: str) -> Any:
        try:
            return look_up(namespace, name)
        except AttributeError:
            if name.startswith("__") or not _offered(f"{namespace.name}::{name}"):
                raise
        return look_up(namespace, name)

    return found


def _preparing(load: Any) -> Any:
    """Return the loader of a package, which makes the operators of polyop that the package calls."""

    @functools.wraps(load)
    def prepared(loader: Any, path: str, *args: Any, **kwargs: Any) -> None:
        with contextlib.suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as package:
            for entry in package.namelist():
                if entry.endswith(".json"):
                    for name in _TARGET.findall(package.read(entry)):
                        _offered(name.decode())
        load(loader, path, *args, **kwargs)

    return prepared


def _offered(name: str) -> bool:
    """Put polyop's operator of this name into ``torch.ops``; return whether there is one.

    Raises ``AttributeError`` with polyop's words for a kernel that cannot be compiled.
    """
    if locks.is_held(locks.define):
        return False  # PyTorch looks for a name before it defines it
    try:
        bound = registry.obtain(name)
        if bound is None:
            return False
        _ = bound.torch
    except BusyError:
        return False
    except PolyopError as problem:
        raise AttributeError(str(problem)) from problem
    return True
