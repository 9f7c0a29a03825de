"""Wheels of operators: built by setuptools, begun with ``polyop new``, verified with ``polyop audit``.

``OperatorExtension``, ``LoopExtension`` and ``BuildExtension`` are for a setup.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .build_extension import BuildExtension
    from .extension import OperatorExtension
    from .loop_extension import LoopExtension

__all__ = ["BuildExtension", "LoopExtension", "OperatorExtension"]

_MODULES = {
    "BuildExtension": "build_extension",
    "LoopExtension": "loop_extension",
    "OperatorExtension": "extension",
}


def __getattr__(name: str) -> Any:
    """Return a public name. This imports setuptools, which is needed only to build."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
