"""OpenCL: one source for all devices, which their drivers compile when a program first runs on them."""

from __future__ import annotations

from .target import Target

OPENCL = Target("opencl", "opencl", language="c++", is_device=True)
