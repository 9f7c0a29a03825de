"""All targets by name, the best of each family first."""

from __future__ import annotations

from .avx2 import AVX2
from .avx512 import AVX512
from .baseline import BASELINE
from .cuda import CUDA
from .neon import NEON
from .opencl import OPENCL
from .target import Target

TARGETS: dict[str, Target] = {row.name: row for row in (AVX512, AVX2, BASELINE, NEON, CUDA, OPENCL)}
