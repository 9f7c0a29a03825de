"""Texts of loop kernels for OpenCL, many in one library, and calls of them on a device in software."""

import os
import shlex

import numpy as np
import pytest

from loop_samples import batch
from loop_samples.built_once import INCLUDE, built_once
from polyop.loops.emit.printer import device_text
from polyop.loops.library.make import embedded
from polyop.loops.pipeline import original, schedule

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
    """Return the library of a text."""
    return built_once(source, ".cc", [*COMPILER, "-w"])


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
