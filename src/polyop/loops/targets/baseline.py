"""The baseline of a processor family: SSE2 on x86-64, the compiler's default elsewhere."""

from __future__ import annotations

from .target import Target

BASELINE = Target("baseline", "x86")
