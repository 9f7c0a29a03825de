"""NEON: every aarch64 processor has it."""

from __future__ import annotations

from .target import Target

NEON = Target("neon", "arm", tile=(6, 4))
