"""MindSpore's names: Custom, CustomRegOp and bprop, on NumPy arrays and PyTorch tensors."""

import pathlib

import numpy as np
import torch

from polyop import Custom, CustomRegOp, DataType

leaky = pathlib.Path(__file__).with_name("leaky.c")

information = (
    CustomRegOp("Leaky")
    .input(0, "x")
    .output(0, "y")
    .attr("slope", "required", "float")
    .dtype_format(DataType.F32_Default, DataType.F32_Default)
    .target("CPU")
    .get_op_info()
)
op = Custom(
    f"{leaky}:leaky",
    out_shape=lambda x, _: x,
    out_dtype=lambda x, _: x,
    func_type="aot",
    bprop=lambda x, slope, out, dout: (dout * (x > 0) + slope * dout * (x <= 0), None),
    reg_info=information,
)

x = np.array([[0.0, -0.1], [-0.2, 1.0]], np.float32)
print(op(x, 0.01))

t = torch.tensor(x, requires_grad=True)
op(t, 0.5).sum().backward()
print(t.grad)
assert t.grad.tolist() == [[0.5, 0.5], [0.5, 1.0]]

try:
    op(x.astype(np.float64), 0.01)
except TypeError as problem:
    print(problem)
