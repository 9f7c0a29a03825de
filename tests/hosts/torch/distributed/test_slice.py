"""DTensors of an operator with ``dims=``: the first things that have to hold."""

import pytest
import torch
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor, init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode

import polyop
from polyop.core.errors import HostError

linear = polyop.operator(
    "dtensors::linear(Tensor x, Tensor w) -> Tensor",
    lambda x, w: x @ w,
    dims="b i, i o -> b o",
    parallel="b o",
    sum="i",
    gradient=lambda x, w, y, d_y: (linear(d_y, w.T), linear(x.T, d_y)),
)
X, W = torch.randn(7, 6), torch.randn(6, 5)
CASES = [
    ([Shard(0)], [Replicate()], (Shard(0),)),
    ([Replicate()], [Shard(1)], (Shard(1),)),
    ([Shard(1)], [Shard(0)], (Partial("sum"),)),
]


@pytest.mark.parametrize(("x_placements", "w_placements", "expected"), CASES)
def test_a_product_is_computed_where_its_tensors_are(devices, x_placements, w_placements, expected):
    mesh = init_device_mesh("cpu", (4,))
    x, w = distribute_tensor(X, mesh, x_placements), distribute_tensor(W, mesh, w_placements)
    with CommDebugMode() as collectives:
        y = linear(x, w)
    assert y.placements == expected
    assert not collectives.get_total_counts()
    torch.testing.assert_close(y.full_tensor().reconcile(), X @ W)


@polyop.kernel(name="dtensors::scale")
def scale(x, w):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = tanh(x[i, j]) * w[i, j]  # noqa: F821
    return y


@pytest.mark.parametrize("operator", [linear, scale])
@pytest.mark.parametrize("needs_gradient", [False, True])
def test_a_plain_tensor_is_refused(devices, operator, needs_gradient):
    mesh = init_device_mesh("cpu", (4,))
    x = distribute_tensor(X, mesh, [Shard(0)]).requires_grad_(needs_gradient)
    name = operator.name
    with pytest.raises(
        HostError, match=rf"{name}: w must be a DTensor, as x is, but got LocalTensor of"
    ) as error:
        operator(x, torch.zeros(7, 6))
    assert "DTensor.from_local(w, mesh, [Replicate()])" in str(error.value)
