"""Measure the roofs of this machine: bytes and floating-point operations per second."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from polyop.build import build

FOLDER = Path(__file__).parents[1]
LEVELS = {"dram": (1 << 26, 1), "l3": (1 << 20, 40), "l2": (1 << 16, 600)}
"""Floats per array, and the number of times that it is traversed."""


@functools.cache
def _function() -> ctypes._CFuncPtr:
    path = build([FOLDER / "peers" / "roof.c"], flags=["-march=native", "-std=gnu11"])
    from polyop import _core
    from polyop.binary.open import open_library

    address = _core.find_symbol(open_library(path), "polyop_bench_roof")
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)(address)


def bandwidth(level: str) -> float:
    """Return bytes per second: of reading and writing or of reading alone, whichever is more."""
    count, repeats = LEVELS[level]
    return max(_function()(kind, count, repeats) for kind in (0, 1))


def peak(dtype: str) -> float:
    """Return the floating-point operations per second."""
    return _function()(2, 1 << 10, 1) / (2 if dtype == "float64" else 1)
