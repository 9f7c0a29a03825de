"""CUDA: one source for all GPUs, which nvcc compiles for those of the machine."""

from __future__ import annotations

from .target import Target

CUDA = Target("cuda", "cuda", language="cuda", is_device=True)
