"""The code of docs/coming-from/torch.md: an operator of torch.library, and the same one in polyop."""

import pathlib
import tempfile

import numpy as np
import torch

import polyop

# [theirs]
import numpy as np
import torch


@torch.library.custom_op("theirs::cube", mutates_args=())
def their_cube(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.detach().numpy() ** 3)


@their_cube.register_fake
def fake(x):
    return torch.empty_like(x)


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return 3 * x * x * grad


their_cube.register_autograd(backward, setup_context=setup_context)


@their_cube.register_vmap
def vmap(info, in_dims, x):
    return their_cube(x), in_dims[0]


# [/theirs]

# [ours]
import polyop

cube = polyop.operator(
    "ours::cube(Tensor x) -> Tensor",
    lambda x: x**3,  # on NumPy arrays
    gradient=lambda x, out, dout: (3 * x * x * dout,),
    batch="elementwise",  # the fake and vmap follow
)
# [/ours]

t = torch.tensor([1.0, 2.0], requires_grad=True)
for op in (their_cube, cube):
    assert torch.autograd.grad(op(t).sum(), t)[0].tolist() == [3.0, 12.0]
    assert torch.vmap(op)(t.detach()[:, None]).tolist() == [[1.0], [8.0]]
    compiled = torch.compile(op, fullgraph=True, backend="aot_eager")
    assert compiled(t).tolist() == [1.0, 8.0]

CODE = r"""
#include <ATen/ATen.h>
#include <torch/library.h>

at::Tensor halve(const at::Tensor& x) { return x / 2; }
TORCH_LIBRARY(coming, m) { m.def("halve(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(coming, CompositeImplicitAutograd, m) { m.impl("halve", &halve); }
"""
source = pathlib.Path(tempfile.mkdtemp()) / "halve.cpp"


def built_by_cpp_extension():
    # [their_build]
    from torch.utils.cpp_extension import load

    load(name="halve", sources=[str(source)], is_python_module=False)
    out = torch.ops.coming.halve(torch.ones(2))
    # [/their_build]
    return out


def built_by_polyop():
    # [our_build]
    ops = polyop.load_library(source)
    out = ops.halve(np.ones(2))  # and with tensors of PyTorch, JAX and others
    # [/our_build]
    return out


if __name__ == "__main__":
    source.write_text(CODE)
    assert built_by_cpp_extension().tolist() == [0.5, 0.5]
    source.write_text(CODE.replace("coming", "coming_ours"))
    assert built_by_polyop().tolist() == [0.5, 0.5]
    print("both agree")
