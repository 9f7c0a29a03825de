"""The description of a target: an instruction set, or a language of devices. Each target has a file here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """An instruction set that kernels are compiled for, or devices.

    >>> from polyop.loops.targets.avx2 import AVX2
    >>> AVX2.flags, AVX2.pragmas
    (('-mavx2', '-mfma', '-mf16c', '-mbmi2'), ('avx2,fma,f16c,bmi,bmi2',))
    """

    name: str
    """The name in options, file names and wheels."""
    family: str
    """A portable library contains all targets of one family."""
    features: tuple[str, ...] = ()
    """Features that the processor must have, as /proc/cpuinfo and the compilers' -m options call them."""
    pragmas: tuple[str, ...] = ()
    """Arguments of ``#pragma GCC target``, which gcc reads; clang needs ``flags``."""
    tile: tuple[int, int] = (4, 2)
    """Rows and vectors of a register tile: with a row of operands and a broadcast it fills all registers."""
    language: str = "c"
    """The language of the host's text, by which its compiler is found."""
    is_device: bool = False

    @property
    def flags(self) -> tuple[str, ...]:
        """Compiler options that enable the features."""
        return tuple(f"-m{feature}" for feature in self.features)

    @property
    def supports(self) -> tuple[str, ...]:
        """Features for ``__builtin_cpu_supports``: gcc 12 does not know f16c, which comes with FMA."""
        return tuple(feature for feature in self.features if feature != "f16c")
