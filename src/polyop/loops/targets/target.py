"""A target: an instruction set that kernels are compiled for, or GPUs. Each has a file here, with its row."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """One row.

    >>> from polyop.loops.targets.avx2 import AVX2
    >>> AVX2.flags, AVX2.pragmas
    (('-mavx2', '-mfma', '-mf16c', '-mbmi2'), ('avx2,fma,f16c,bmi,bmi2',))
    """

    name: str
    """What options, file names and wheels say."""
    family: str
    """The processors that a portable library is for: it holds all targets of a family."""
    features: tuple[str, ...] = ()
    """What the processor must have, in the words of /proc/cpuinfo and of the compilers' -m options."""
    pragmas: tuple[str, ...] = ()
    """What chooses it in gcc, for one file; clang is told by ``flags``."""
    tile: tuple[int, int] = (4, 2)
    """Rows and vectors of a register tile: its sums, a row of operands and a broadcast fill the registers."""
    language: str = "c"

    @property
    def flags(self) -> tuple[str, ...]:
        """The options that tell a compiler of it."""
        return tuple(f"-m{feature}" for feature in self.features)

    @property
    def supports(self) -> tuple[str, ...]:
        """What ``__builtin_cpu_supports`` is asked; gcc 12 has no word for f16c, which comes with FMA."""
        return tuple(feature for feature in self.features if feature != "f16c")
