"""Operators of aclnn, Ascend's library, looked up by name; without CANN they run on the CPU.

``launch`` runs an operator on NumPy arrays, ``evaluate`` in any array namespace. ``register`` and
``register_library`` add an author's operators. ``cann`` calls CANN itself.
"""

from __future__ import annotations

from .by_name import check, launch_named
from .registry import core_loops, forget, loops, names, prototype, register
from .rehearsal import ascend
from .run import evaluate, launch
from .two_phase import register_library

__all__ = [
    "ascend",
    "check",
    "core_loops",
    "evaluate",
    "forget",
    "launch",
    "launch_named",
    "loops",
    "names",
    "prototype",
    "register",
    "register_library",
]
