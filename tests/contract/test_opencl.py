"""Every member whose kernel is loops returns on PyOpenCL's arrays what it returns on NumPy's."""

import cases
import pytest
from test_contract import compare

from polyop.kernels.base import LoopKernelBase

cl = pytest.importorskip("pyopencl", reason="not run: pyopencl is not installed")
cl_array = pytest.importorskip("pyopencl.array")


@pytest.fixture(scope="module")
def queue():
    try:
        return cl.CommandQueue(cl.Context(cl.get_platforms()[0].get_devices()[:1]))
    except cl.Error as problem:
        pytest.skip(f"not run: no device of OpenCL (apt-get install pocl-opencl-icd): {problem}")


def has_loops(name):
    """Whether a member is a loop kernel of dtypes that OpenCL's arrays have."""
    case = cases.all_members()[name].case
    loops = any(isinstance(kernel, LoopKernelBase) for kernel in case.operator.kernels)
    return loops and all(x.dtype.isbuiltin == 1 for _, x in case.tensors())


def listed(results):
    return list(results) if isinstance(results, (tuple, list)) else [] if results is None else [results]


def test_members_with_loops_on_arrays_of_opencl(queue):
    names = list(filter(has_loops, cases.names("eager")))
    assert len(names) > 4
    for name in names:
        case = cases.all_members()[name].case.mapped(lambda _, x: cl_array.to_device(queue, x.copy()))
        args, keywords = case.operator.schema.split(case.arguments)
        results = listed(case.bound(*args, **keywords))
        written = [case.arguments[i] for i, a in enumerate(case.operator.schema.arguments) if a.type.writes]
        fresh = [result for result in results if not any(result is array for array in written)]
        expected = cases.all_members()[name].case.run()
        for number, (result, other) in enumerate(zip([*fresh, *written], expected, strict=True)):
            compare(name, f"output {number}", result.get(), other)
