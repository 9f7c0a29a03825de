"""The baseline of every processor: SSE2 on x86-64, and whatever another one has."""

from __future__ import annotations

from .target import Target

BASELINE = Target("baseline", "x86")
