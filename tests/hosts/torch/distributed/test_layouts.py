"""Layouts that no strategy has: slices in another order, whole tensors beside DTensors, absent gradients."""

import numpy as np
import pytest
import torch
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
from torch.distributed.tensor.placement_types import _StridedShard

import polyop
from polyop.call import registry
from polyop.core.errors import HostError

# ruff: noqa: F821 - the words of the loop language

added = polyop.operator(
    "layouts::added(Tensor(a!) x, Tensor y) -> ()", lambda x, y: np.add(x, y, out=x), batch="elementwise"
)
both = polyop.operator(
    "layouts::both(Tensor x, Tensor w) -> (Tensor, Tensor)",
    lambda x, w: (x * w, x.sum(0)),
    dims="n m, m -> n m, m",
    parallel="m",
    sum="n",
    gradient=lambda x, w, outs, grads: (grads[0] * w + grads[1], (grads[0] * x).sum(0)),
)
WHOLE = torch.arange(16.0).reshape(8, 2)


@polyop.kernel
def square(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * x[i, j]
    return y


def test_slices_in_another_order_are_not_written(devices):
    """FSDP of a tensor parallel weight has such slices. A copy in the usual order would be written and lost."""
    mesh = init_device_mesh("cpu", (2, 2))
    placements = [_StridedShard(0, split_factor=2), Shard(0)]
    x = distribute_tensor(WHOLE.clone(), mesh, placements)
    with pytest.raises(HostError, match=r"layouts::added: writes a tensor in place.*_StridedShard"):
        added(x, x)


@pytest.mark.slow(1)
@pytest.mark.parametrize("dim", [0, 1])
def test_a_whole_gradient_beside_slices_is_cut(devices, dim):
    """Autograd gives parts whole zeros for an output that is not used; other values show what is read."""
    mesh = init_device_mesh("cpu", (4,))
    square(distribute_tensor(WHOLE, mesh, [Shard(dim)]).requires_grad_()).sum().backward()
    part = registry.obtain(f"{square.name}__backward")
    x = distribute_tensor(WHOLE, mesh, [Shard(dim)])
    for d_y in (WHOLE + 1, WHOLE.flip(0) + 2):
        d_x = part.torch(x, None, d_y, "float32:2")
        torch.testing.assert_close(d_x.full_tensor().reconcile(), 2 * WHOLE * d_y)


@pytest.mark.parametrize("used", [0, 1])
@pytest.mark.parametrize("layout", [Replicate(), Shard(0), Shard(1)], ids=str)
def test_an_output_that_is_not_used_has_a_gradient_of_zeros(devices, layout, used):
    mesh = init_device_mesh("cpu", (4,))
    plain = WHOLE[:7].clone(), torch.tensor([2.0, 3.0])
    expected = plain[1].expand(7, 2) if used == 0 else torch.ones(7, 2), (1 - used) * plain[0].sum(0)
    x = distribute_tensor(plain[0], mesh, [layout]).requires_grad_()
    w = distribute_tensor(plain[1], mesh, [Replicate()]).requires_grad_()
    both(x, w)[used].sum().backward()
    for leaf, value in zip((x, w), expected, strict=True):
        torch.testing.assert_close(leaf.grad.full_tensor().reconcile(), value)
