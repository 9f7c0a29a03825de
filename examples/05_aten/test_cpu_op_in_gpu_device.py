"""A PyTorch (ATen) CPU operator on CUDA tensors: the data goes to the CPU and comes back."""

import sys

import torch

import polyop

if not torch.cuda.is_available():
    print("not run: this PyTorch sees no CUDA device")
    sys.exit(0)

leaky_relu = polyop.Custom(
    "./leaky_relu_cpu.so:LeakyRelu", out_shape=lambda x: x, out_dtype=lambda x: x, func_type="aot"
)
leaky_relu.add_prim_attr("primitive_target", "CPU")

x = torch.tensor([[0.0, -0.1], [-0.2, 1.0]], device="cuda")
output = leaky_relu(x)
print(output.cpu().numpy())
assert output.device == x.device
assert torch.equal(output, torch.nn.functional.leaky_relu(x))
