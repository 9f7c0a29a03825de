"""AVX-512 with F, BW, DQ and VL: x86-64 server processors since 2017."""

from __future__ import annotations

from .target import Target

AVX512 = Target(
    "avx512",
    "x86",
    features=("avx512f", "avx512bw", "avx512dq", "avx512vl", "fma", "f16c", "bmi2"),
    pragmas=(
        "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2",
        "prefer-vector-width=512",
    ),
    tile=(6, 4),
)
