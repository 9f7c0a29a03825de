"""A PyTorch (ATen) CPU operator as a custom operator, on CPU tensors."""

import torch

import polyop

leaky_relu = polyop.Custom(
    "./leaky_relu_cpu.so:LeakyRelu", out_shape=lambda x: x, out_dtype=lambda x: x, func_type="aot"
)

x = torch.tensor([[0.0, -0.1], [-0.2, 1.0]])
output = leaky_relu(x)
print(output.numpy())
assert torch.equal(output, torch.nn.functional.leaky_relu(x))
