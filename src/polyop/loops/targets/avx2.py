"""AVX2 with FMA: x86-64 processors since 2013."""

from __future__ import annotations

from .target import Target

AVX2 = Target(
    "avx2",
    "x86",
    features=("avx2", "fma", "f16c", "bmi2"),
    pragmas=("avx2,fma,f16c,bmi,bmi2",),
    tile=(6, 2),
)
