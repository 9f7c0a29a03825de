"""Time contestants in a process with the vectors of most machines: AVX2, for polyop and for every peer.

A machine without AVX-512 gives its peers no AVX-512 either. So one setting for each library keeps it to AVX2.
"""

from __future__ import annotations

import json
import os
from typing import Any

from measure import FOLDER, keep_memory, output_of

from polyop.loops.targets import isa

NAME = "avx2"
SETTINGS = {
    "POLYOP_LOOPS_ISA": "avx2",
    "ATEN_CPU_CAPABILITY": "avx2",  # PyTorch's kernels, and those that torch.compile makes
    "ONEDNN_MAX_CPU_ISA": "AVX2",  # PyTorch's convolutions
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",  # PyTorch's products of matrices
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",  # JAX
    "NUMBA_CPU_NAME": "haswell",
    "OPENBLAS_CORETYPE": "Haswell",  # NumPy's products of matrices
}
CODE = """
import dataclasses, json, sys, warnings
sys.path.insert(0, {folder!r})
warnings.simplefilter("ignore")
import narrow
narrow.keep_memory()
from {module} import {function} as function
print(json.dumps(dataclasses.asdict(function(*{arguments!r}))))
"""

__all__ = ["keep_memory"]  # for the new process


def available() -> bool:
    """Whether this machine has AVX2 and something better."""
    return NAME in isa.available()[1:]


def title(name: str) -> str:
    """Return the title of a row measured in this process: where AVX2 is all there is, it says so."""
    return f"{name}, {NAME}" if isa.available()[0] == NAME else name


def call(module: str, function: str, *arguments: Any) -> dict[str, Any]:
    """Return the fields of the dataclass that a function of the benchmark returns in such a process."""
    code = CODE.format(folder=str(FOLDER), module=module, function=function, arguments=arguments)
    env = {**os.environ, **SETTINGS, "NPY_DISABLE_CPU_FEATURES": " ".join(_numpys())}
    fields: dict[str, Any] = json.loads(output_of(code, env=env).splitlines()[-1])
    return fields


def _numpys() -> list[str]:
    """Return NumPy's names of what has to be off: they differ between its versions."""
    from numpy._core import _multiarray_umath

    return [name for name in _multiarray_umath.__cpu_dispatch__ if "AVX512" in name or name == "X86_V4"]
