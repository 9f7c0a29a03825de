"""Texts of loop kernels for OpenCL, many in one library, and calls of them on a device in software."""

import hashlib
import os
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from loop_samples import batch
from polyop.loops.emit.printer import device_text
from polyop.loops.library.make import embedded
from polyop.loops.pipeline import original, schedule

INCLUDE = Path(__file__).resolve().parents[3] / "include"
COMPILER = [
    *shlex.split(os.environ.get("CXX", "c++")),
    "-std=c++17",
    "-O0",
    "-fwrapv",
    "-fPIC",
    f"-I{INCLUDE}",
]


def queue():
    """Return a queue of the first device, or skip the test."""
    cl = pytest.importorskip("pyopencl", reason="pyopencl is not installed")
    try:
        devices = cl.get_platforms()[0].get_devices()[:1]
    except cl.Error as problem:
        pytest.skip(f"no device of OpenCL (apt-get install pocl-opencl-icd): {problem}")
    return cl.CommandQueue(cl.Context(devices))


def text(kernels, *, checked=False):
    """Return the C++ text of typed kernels; number k is exported as ``loops_k``."""
    parts = []
    for number, kernel in enumerate(kernels):
        program = original(kernel) if checked else schedule(kernel)
        name = batch.symbol(number)
        host, device = device_text(program, "opencl", name, checked=checked or program.checked)
        parts.append(host + embedded(device, name))
    return "\n".join(parts)


def build(source):
    """Return the library of a text, compiled once for all workers of a test run."""
    key = hashlib.sha256("\0".join([source, *COMPILER]).encode()).hexdigest()[:20]
    folder = Path(os.environ["POLYOP_CACHE_DIR"]) / "batches"
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"opencl-{key}.so"
    with FileLock(f"{library}.lock"):
        if not library.exists():
            file, partial = folder / f"{key}.cc", folder / f"{key}.part"
            file.write_text(source)
            subprocess.run([*COMPILER, "-w", "-shared", file, "-o", partial], check=True)
            partial.rename(library)
    return library


def bound(function, tensors, attributes, path, number, on):
    """Return a function from NumPy arrays to the results of kernel ``number`` on the queue ``on``.

    An array that is written in place is among the results, as those of ``batch.bound`` are.
    """
    import pyopencl.array as cl_array

    run = batch.bound(function, tensors, attributes, path, number, device="opencl")

    def call(*arrays):
        given = [cl_array.to_device(on, np.ascontiguousarray(array).reshape(array.shape)) for array in arrays]
        return [result.get() for result in run(*given)]

    return call
