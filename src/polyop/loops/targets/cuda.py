"""GPUs, in CUDA: one text for all of them, compiled by nvcc for those of the machine."""

from __future__ import annotations

from .target import Target

CUDA = Target("cuda", "cuda", language="cuda")
