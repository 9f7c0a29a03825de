"""MindSpore's form: Custom with aot, hybrid and pyfunc functions, and bprop."""

import numpy as np

import polyop

from .c_sources import KERNELS
from .loop_kernels import normalised, normalised_gradient

backward = polyop.Custom(normalised_gradient, func_type="hybrid")
hybrid = polyop.Custom(normalised, func_type="hybrid", bprop=lambda x, out, dout: (backward(x, dout),))
aot = polyop.Custom(
    f"{KERNELS}:square",
    out_shape=lambda x: x,
    out_dtype=lambda x: x,
    func_type="aot",
    bprop=lambda x, out, dout: (2 * x * dout,),
)
pyfunc = polyop.Custom(
    lambda x, y: x * y,
    out_shape=lambda x, y: x,
    out_dtype=lambda x, y: x,
    func_type="pyfunc",
    bprop=lambda x, y, out, dout: (dout * y, dout * x),
)
named = polyop.Custom(  # somebody's library has the operator; without CANN polyop's own on the CPU
    "aclnnMul",
    out_shape=lambda x, y: x,
    out_dtype=lambda x, y: x,
    func_type="aot",
    bprop=lambda x, y, out, dout: (dout * y, dout * x),
)
x = np.linspace(-1, 2, 12).reshape(3, 4)
single = x.astype(np.float32)
polyop_samples = {
    backward.name: (x, x + 1),
    hybrid.name: (x,),
    aot.name: (single,),
    pyfunc.name: (x, x - 1),
    named.name: (x, x - 1),
}
