"""The instruction sets of this machine, and the one that kernels are compiled for."""

from __future__ import annotations

import functools
import os
import platform

from ...core.errors import ArgumentValueError
from .table import TARGETS

PORTABLE = "portable"
"""POLYOP_LOOPS_ISA for all instruction sets of a family in one library, which chooses at run time."""


def family() -> tuple[str, ...]:
    """Return all instruction sets of this machine's family, the best first: those of a portable library.

    >>> set(available()) <= set(family())
    True
    """
    is_x86 = platform.machine() in ("x86_64", "AMD64")
    return tuple(row.name for row in TARGETS.values() if row.family == "x86") if is_x86 else available()


def available() -> tuple[str, ...]:
    """Return the instruction sets of this machine, the best first.

    >>> "baseline" in available() or available() == ("neon",)
    True
    """
    if platform.machine() in ("aarch64", "arm64"):
        return ("neon",)
    if platform.machine() not in ("x86_64", "AMD64"):
        return ("baseline",)
    rows = [row for row in TARGETS.values() if row.family == "x86"]
    return tuple(row.name for row in rows if _flags().issuperset(row.features))


def chosen() -> str:
    """Return the best instruction set, or the one that POLYOP_LOOPS_ISA names.

    "portable" means all sets of this processor family in one library, which chooses at run time.

    Raises ``ArgumentValueError`` for one that this machine lacks.
    """
    requested = os.environ.get("POLYOP_LOOPS_ISA", "")
    if not requested:
        return available()[0]
    if requested not in (*available(), PORTABLE):
        rule = f"must be one of {', '.join(available())}, which this machine has, or {PORTABLE}"
        raise ArgumentValueError("POLYOP_LOOPS_ISA", rule, repr(requested))
    return requested


@functools.cache
def _flags() -> frozenset[str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as rows:  # noqa: PTH123 - quick to import
            line = next((row for row in rows if row.startswith("flags")), "")
    except OSError:
        return frozenset()
    return frozenset(line.partition(":")[2].split())
