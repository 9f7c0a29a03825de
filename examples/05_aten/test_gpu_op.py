"""A PyTorch (ATen) CUDA operator as a custom operator, on CUDA tensors."""

import sys

import torch

import polyop

if not torch.cuda.is_available():
    print("not run: this PyTorch sees no CUDA device")
    sys.exit(0)

leaky_relu = polyop.Custom(
    "./leaky_relu_gpu.so:LeakyRelu", out_shape=lambda x: x, out_dtype=lambda x: x, func_type="aot"
)

x = torch.tensor([[0.0, -0.1], [-0.2, 1.0]], device="cuda")
output = leaky_relu(x)
print(output.cpu().numpy())
assert torch.equal(output, torch.nn.functional.leaky_relu(x))
