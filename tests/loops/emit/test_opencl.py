"""Loop kernels for OpenCL: run on a device in software, beside the interpreter.

A library has one sample of the table, so that a test of one sample compiles one.
"""

import numpy as np
import pytest

from loop_samples import on_opencl
from loop_samples.reference import cases, close, typed


@pytest.fixture(scope="module")
def queue():
    return on_opencl.queue()


def compared(program, run):
    """Compare a kernel with the interpreter for all sizes that its outputs can have."""
    for sizes, wanted in cases(program):
        results = run(*program.arrays(sizes))
        for one, other in zip(wanted, results, strict=True):
            close(one, other, program.rough, str(sizes))


@pytest.mark.slow(8, more=8)
@pytest.mark.parametrize("checked", [False, True])
def test_on_a_device_is_interpreted(program, checked, queue, record_property):
    if any(not hasattr(np, dtype) for dtype, *_ in program.rows):
        pytest.skip(f"PyOpenCL's arrays have no {program.rows[0][0]}")
    path = on_opencl.build(on_opencl.text([typed(program)], checked=checked))
    compared(program, on_opencl.bound(program.function, program.rows, program.attributes, path, 0, queue))
    record_property("target", "opencl: ran on a device in software")
