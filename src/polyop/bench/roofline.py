"""The roofs of this machine: the bytes that it moves and the operations that it does in a second.

They are measured with the vectors of the best instruction set that loop kernels are compiled for, on as many
threads as kernels use. A kernel cannot be faster than both of its roofs: Williams, Waterman, Patterson,
"Roofline", CACM 52(4), 2009.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core import locks
from ..loops.analysis.work import Work
from ..loops.targets import isa
from ..loops.targets.table import TARGETS

SOURCE = Path(__file__).parent / "roof.c"
COPY, READ = 0, 1
KINDS = {"float32": 2, "float64": 3}
"""The kinds of measurement of roof.c."""
LEVELS = {"l1": (1 << 10, 40000), "l2": (1 << 15, 600), "l3": (1 << 20, 40), "dram": (1 << 24, 1)}
"""Floats per array, and the number of times that two arrays are traversed. L1 and L2: for each thread."""
OF_A_CORE = ("l1", "l2")
STEPS = 1 << 22
"""How many times ten vectors are multiplied and added."""
USUAL_SIZES = {"l1": 32 << 10, "l2": 512 << 10, "l3": 8 << 20}
"""Bytes of caches where the system does not say."""
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True)
class Roofs:
    """What a machine does in a second at most, on all threads of kernels.

    ``bandwidth``: bytes per second, by memory level ("l1", "l2", "l3", "dram"). ``flops``: floating-point
    operations per second, by dtype; a multiply-add counts as two. ``sizes``: bytes of each cache, for all
    threads together. ``target``: the instruction set of the measurement.

    >>> roofs = Roofs({"l1": 4e11, "dram": 2e10}, {"float32": 1e11}, {"l1": 65536}, "avx2", 2)
    >>> roofs.level_of(1000), roofs.level_of(10**6)
    ('l1', 'dram')
    >>> work = Work(flops=1e6, bytes_read=4e6, bytes_written=4e6, dtype="float32")
    >>> roofs.seconds(work), roofs.limit(work)
    (0.0004, 'dram bandwidth')
    """

    bandwidth: Mapping[str, float]
    flops: Mapping[str, float]
    sizes: Mapping[str, int]
    target: str
    threads: int

    def level_of(self, size: float) -> str:
        """Return the first memory level that holds so many bytes."""
        return next((level for level, most in self.sizes.items() if size <= most), "dram")

    def flops_of(self, name: str) -> float:
        """Return the operations per second for a dtype: narrow floats are computed in float32."""
        return self.flops["float64" if name == "float64" and "float64" in self.flops else "float32"]

    def bandwidth_of(self, work: Work) -> float:
        """Return the bytes per second of the level that holds what a call reads and writes."""
        return self.bandwidth[self.level_of(work.bytes)]

    def seconds(self, work: Work) -> float:
        """Return the least time of a call: for its bytes or for its operations, whichever is more."""
        return max(seconds for seconds, _ in self._times(work))

    def limit(self, work: Work) -> str:
        """Return which of the two it is: ``dram bandwidth``, or ``float32 operations``."""
        return max(self._times(work))[1]

    def attainable(self, intensity: float, level: str, dtype: str) -> float:
        """Return the operations per second that the roofs allow at so many operations per byte."""
        return min(self.flops_of(dtype), intensity * self.bandwidth[level])

    def _times(self, work: Work) -> list[tuple[float, str]]:
        moved = (work.bytes / self.bandwidth_of(work), f"{self.level_of(work.bytes)} bandwidth")
        if not work.flops:
            return [moved]
        return [moved, (work.flops / self.flops_of(work.dtype), f"{work.dtype} operations")]


_lock = locks.own("roofs of the machine", locks.Level.COMPILE)


def measure_roofs() -> Roofs:
    """Return the roofs of this machine. The first call of a process measures them, in about a second.

    Raises ``BuildError`` without a C compiler.
    """
    with _lock:
        return _measured()


@functools.cache
def _measured() -> Roofs:
    from .. import _core

    rates = {level: bandwidth(level) for level in LEVELS}
    flops = {name: float(_roof()(kind, 1, STEPS)) for name, kind in KINDS.items()}
    threads = _core.thread_count()
    sizes = {level: size * (threads if level in OF_A_CORE else 1) for level, size in cache_sizes().items()}
    return Roofs(rates, flops, sizes, isa.available()[0], threads)


@functools.cache
def bandwidth(level: str) -> float:
    """Return bytes per second: of reading and writing or of reading alone, whichever is more."""
    from .. import _core

    count, repeats = LEVELS[level]
    if level in OF_A_CORE:
        count *= _core.thread_count()
    if level == "dram":  # two arrays that no cache holds
        count = max(count, cache_sizes()["l3"] * 4 // 8)
    return float(max(_roof()(kind, count, repeats) for kind in (COPY, READ)))


@functools.cache
def _roof() -> Any:
    from .. import _core
    from ..binary.open import open_library
    from ..build import build

    target = TARGETS[isa.available()[0]]
    flags = ["-std=gnu11", "-O3", "-ffp-contract=fast", "-Wno-psabi", *target.flags]
    path = build([SOURCE], flags=[*flags, f"-DVECTOR_BYTES={VECTOR_BYTES.get(target.name, 16)}"])
    address = _core.find_symbol(open_library(path), "polyop_roof")
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)(address)


VECTOR_BYTES = {"avx512": 64, "avx2": 32}
"""Bytes of a register, by target; all others have 16."""


@functools.cache
def cache_sizes() -> dict[str, int]:
    """Return the bytes of each cache; L1 and L2 are those of one core.

    >>> sorted(cache_sizes())
    ['l1', 'l2', 'l3']
    """
    known: dict[str, int] = {}
    for folder in sorted(CACHES.glob("index*")):
        try:
            level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction" and size.endswith("K"):
            known[f"l{level}"] = int(size[:-1]) << 10
    return {level: known.get(level) or usual for level, usual in USUAL_SIZES.items()}
