"""Calls with PyOpenCL's arrays, beside a kernel of OpenCL that is called by hand.

Work on the host alone: the device may be one in software, of whose speed nothing is claimed.
"""

from typing import Any

import numpy as np
from kernels import loop_leaky
from measure import Missing, Row, Timed, beside

import polyop

TEXT = """
__kernel void leaky(int n, __global const float *x, __global float *y) {
  const int i = get_global_id(0);
  if (i < n) y[i] = x[i] > 0 ? x[i] : 0.01f * x[i];
}
"""
CALLS = "for _ in range(20):\n    f(x)\nqueue.finish()"


def rows() -> list[Row]:
    try:
        import pyopencl as cl
        import pyopencl.array as cl_array

        queue = cl.CommandQueue(cl.Context([cl.get_platforms()[0].get_devices()[0]]))
    except ImportError as problem:
        raise Missing("PyOpenCL is not installed") from problem
    except (cl.Error, IndexError) as problem:
        raise Missing("there is no device of OpenCL") from problem
    x = cl_array.to_device(queue, np.ones(64, np.float32))
    kernel = cl.Kernel(cl.Program(queue.context, TEXT).build(), "leaky")

    def by_hand(x: Any) -> Any:
        y = cl_array.empty_like(x)
        y.add_event(kernel(queue, (64,), None, np.int32(64), x.data, y.data))
        return y

    text = polyop.source(code=TEXT, function="leaky", language="opencl")
    of_text = polyop.operator(
        "bench::opencl_leaky(Tensor x) -> Tensor", text, dims="n -> n", grid=lambda meta: (meta["n"],)
    )

    def call(f: Any) -> Timed:
        return Timed(CALLS, {"f": f, "x": x, "queue": queue})

    hand = call(by_hand)
    return [
        Row(f"PyOpenCL call of {kind}", "called by hand", 1.3, beside(call(f), hand))
        for kind, f in (("a loop kernel", loop_leaky()), ("an OpenCL kernel", of_text))
    ]
