"""The instruction sets that a kernel is compiled for, and which of them this machine has."""

from __future__ import annotations

import functools
import os
import platform

from ...core.errors import ArgumentValueError

_X86 = (  # the best first: name, what /proc/cpuinfo must list
    ("avx512", ("avx512f", "avx512bw", "avx512dq", "avx512vl", "fma", "f16c", "bmi2")),
    ("avx2", ("avx2", "fma", "f16c", "bmi2")),
    ("baseline", ()),
)


PORTABLE = "portable"


def family() -> tuple[str, ...]:
    """Return all instruction sets of this machine's family, the best first: those of a portable library.

    >>> set(available()) <= set(family())
    True
    """
    return tuple(name for name, _ in _X86) if platform.machine() in ("x86_64", "AMD64") else available()


def flags(name: str) -> tuple[str, ...]:
    """Return what tells a compiler of an instruction set, where one has to be told.

    >>> flags("avx2"), flags("neon")
    (('-mavx2', '-mfma', '-mf16c', '-mbmi2'), ())
    """
    return tuple(f"-m{flag}" for flag in dict(_X86).get(name, ()))


def available() -> tuple[str, ...]:
    """Return the instruction sets of this machine, the best first.

    >>> "baseline" in available() or available() == ("neon",)
    True
    """
    if platform.machine() in ("aarch64", "arm64"):
        return ("neon",)
    if platform.machine() not in ("x86_64", "AMD64"):
        return ("baseline",)
    return tuple(name for name, needed in _X86 if _flags().issuperset(needed))


def chosen() -> str:
    """Return the best instruction set, or the one that POLYOP_LOOPS_ISA names.

    "portable" is all of this processor family in one library, which chooses when it is called.

    Raises ``ArgumentValueError`` for one that this machine lacks.
    """
    wanted = os.environ.get("POLYOP_LOOPS_ISA", "")
    if not wanted:
        return available()[0]
    if wanted not in (*available(), PORTABLE):
        rule = f"must be one of {', '.join(available())}, which this machine has, or {PORTABLE}"
        raise ArgumentValueError("POLYOP_LOOPS_ISA", rule, repr(wanted))
    return wanted


@functools.cache
def _flags() -> frozenset[str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as rows:  # noqa: PTH123 - quick to import
            line = next((row for row in rows if row.startswith("flags")), "")
    except OSError:
        return frozenset()
    return frozenset(line.partition(":")[2].split())
