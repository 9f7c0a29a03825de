"""Finds ``torch_npu`` and ``torchair`` where they are not installed: in rehearsal a stand-in, else a hint.

PyTorch calls :func:`offer` at the end of ``import torch`` (the entry point ``torch.backends``). So this
package is small, and imports neither PyTorch nor polyop.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

_VARIABLE, _REHEARSE = "POLYOP_ASCEND", "rehearse"
_NAMES = ("torch_npu", "torchair")
_FOLDER = Path("providers", "npu", "stand_in")


class Finder:
    """The last entry of ``sys.meta_path``: it is asked only for what nobody else has found."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the stand-in in rehearsal, else None; an import gets ``ModuleNotFoundError`` with a hint."""
        del path, target
        top, _, part = name.partition(".")
        if top not in _NAMES or (part and not _is_stand_in(top)):
            return None
        if part:
            text = f"No module named {name!r}: rehearsal ({_VARIABLE}={_REHEARSE}) does not have it"
            raise ModuleNotFoundError(text, name=name)
        if os.environ.get(_VARIABLE) == _REHEARSE:
            return _stand_in(name)
        if _is_import():
            text = f"No module named {name!r}: it is part of Ascend's PyTorch, which is not installed here"
            hint = f"to rehearse on the CPU with polyop, set {_VARIABLE}={_REHEARSE} in the environment"
            raise ModuleNotFoundError(f"{text}\n  {hint}", name=name)
        return None


def offer() -> None:
    """Add the finder, once."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder())


def _is_import() -> bool:
    """Whether this is an import: packages ask ``importlib.util.find_spec`` whether there is an NPU."""
    frame: Any = sys._getframe(3)  # noqa: SLF001 - above find_spec and importlib's _find_spec
    return frame is not None and frame.f_code.co_name == "_find_and_load_unlocked"


def _is_stand_in(name: str) -> bool:
    return str(_FOLDER) in (getattr(sys.modules.get(name), "__file__", None) or "")


def _stand_in(name: str) -> ModuleSpec | None:
    polyop = importlib.util.find_spec("polyop")
    for root in (polyop and polyop.submodule_search_locations) or ():
        folder = Path(root) / _FOLDER / name
        if (folder / "__init__.py").is_file():
            return importlib.util.spec_from_file_location(
                name, folder / "__init__.py", submodule_search_locations=[str(folder)]
            )
    return None
