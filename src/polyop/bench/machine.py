"""The properties of this machine that times depend on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

from ..loops.targets import isa

PACKAGES = ("numpy", "torch", "jax", "mindspore")


def machine() -> dict[str, Any]:
    """Return the properties as plain data; neither the machine's name nor a path is among them.

    >>> sorted(machine())
    ['busy', 'cores', 'load', 'packages', 'processor', 'python']
    """
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    return {
        "processor": _processor(),
        "cores": cores,
        "load": round(load, 2),
        "busy": load > 0.3 * cores,
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    """Return the model and the best instruction set that loop kernels are compiled for."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return f"{next(models, platform.machine())} ({isa.available()[0]})"
