"""The targets that kernels are compiled for, one row each: instruction sets, and languages of devices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """An instruction set that kernels are compiled for, or devices.

    >>> TARGETS["avx2"].flags, TARGETS["avx2"].pragmas
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


_ROWS = (
    # AVX-512 with F, BW, DQ and VL: x86-64 server processors since 2017
    Target(
        "avx512",
        "x86",
        features=("avx512f", "avx512bw", "avx512dq", "avx512vl", "fma", "f16c", "bmi2"),
        pragmas=(
            "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2",
            "prefer-vector-width=512",
        ),
        tile=(6, 4),
    ),
    # AVX2 with FMA: x86-64 processors since 2013
    Target(
        "avx2",
        "x86",
        features=("avx2", "fma", "f16c", "bmi2"),
        pragmas=("avx2,fma,f16c,bmi,bmi2",),
        tile=(6, 2),
    ),
    # SSE2 on x86-64, the compiler's default on other processors
    Target("baseline", "x86"),
    # every aarch64 processor has it
    Target("neon", "arm", tile=(6, 4)),
    # one source for all GPUs, which nvcc compiles for those of the machine
    Target("cuda", "cuda", language="cuda", is_device=True),
    # one source for all devices, which their drivers compile when a program first runs on them
    Target("opencl", "opencl", language="c++", is_device=True),
)

TARGETS: dict[str, Target] = {row.name: row for row in _ROWS}
"""All targets by name, the best of each family first."""
