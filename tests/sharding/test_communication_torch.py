"""``op.communication`` beside what DTensors move: the collectives that PyTorch runs, and their bytes."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
from torch.distributed.tensor import distribute_tensor, init_device_mesh  # noqa: E402

import measured_operators  # noqa: E402
from measured_operators import MATRICES, linear  # noqa: E402
from torch_collectives import Received, bytes_on_cpu, torch_placements  # noqa: E402

# collectives of the fake group leave memory as it is: kernels may compute with any numbers
pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")


@pytest.fixture(scope="module", params=[2, 4, 8])
def devices(request):
    dist.init_process_group("fake", rank=request.param // 2 - 1, world_size=request.param)
    yield request.param  # this process is a device in the middle, with neighbours on both sides
    dist.destroy_process_group()


def measure(operator, mesh, cost):
    """Return what is received forward and backward; gradients are brought to the layouts of the tensors."""
    layouts = [torch_placements(tensor.placements) for tensor in cost.inputs]
    tensors = [
        distribute_tensor(torch.randn(tensor.spec.shape), mesh, row).requires_grad_()
        for tensor, row in zip(cost.inputs, layouts, strict=True)
    ]
    with Received() as forward:
        result = operator(*tensors).redistribute(mesh, torch_placements(cost.outputs[0].placements))
    gradient = torch.ones_like(result)
    with Received() as backward:
        gradients = torch.autograd.grad(result, tensors, gradient)
        for one, row in zip(gradients, layouts, strict=True):
            one.redistribute(mesh, row)
    return forward.by_kind, backward.by_kind


@pytest.mark.slow(3)
@pytest.mark.parametrize("name", [*measured_operators.CASES, *measured_operators.ON_TWO_AXES])
def test_bytes(devices, name):
    rows = {row[0]: row[1:] for row in measured_operators.cases(devices)}
    axes, operator, shapes, placements = rows[name]
    mesh = init_device_mesh("cpu", tuple(axes.values()), mesh_dim_names=tuple(axes))
    cost = operator.communication(mesh, placements=placements, shapes=shapes)
    forward, backward = measure(operator, mesh, cost)
    assert bytes_on_cpu(cost.forward, cost.mesh) == forward
    assert bytes_on_cpu(cost.backward, cost.mesh) == backward


def test_bytes_of_a_weight_that_has_to_move(devices):
    """Only forward: PyTorch splits each product of the author's gradient by itself."""
    mesh = init_device_mesh("cpu", (devices,), mesh_dim_names=("data",))
    cost = linear.communication(mesh, placements=[("data",), ("data",)], shapes=MATRICES)
    assert bytes_on_cpu(cost.forward, cost.mesh) == measure(linear, mesh, cost)[0]
