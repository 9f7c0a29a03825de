"""``op.communication`` beside what DTensors move: the collectives that PyTorch runs, and their bytes."""

import dataclasses
import math

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
from torch.distributed.tensor import (  # noqa: E402
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
    init_device_mesh,
)
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import measured_operators  # noqa: E402
from measured_operators import MATRICES, by_kind, linear  # noqa: E402
from polyop.sharding import placement as own  # noqa: E402

# collectives of the fake group leave memory as it is: kernels may compute with any numbers
pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning")


class Received(TorchDispatchMode):
    """Counts the bytes that this device receives in ring algorithms, by the kind of collective."""

    def __init__(self):
        super().__init__()
        self.by_kind = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented  # DTensor comes first: it calls with local tensors
        kind, received = self.cost(func, args)
        if received:
            self.by_kind[kind] = self.by_kind.get(kind, 0) + received
        return func(*args, **(kwargs or {}))

    def cost(self, func, args):
        name = func._schema.name.split("::")[1]
        size = args[0].numel() * args[0].element_size() if args and isinstance(args[0], torch.Tensor) else 0
        match name:
            case "all_reduce":
                count = self.group(args[2])
                return "all-reduce", 2 * size * (count - 1) // count
            case "all_gather_into_tensor":
                return "all-gather", size * (args[1] - 1)
            case "reduce_scatter_tensor":
                return "reduce-scatter", size * (args[2] - 1) // args[2]
            case "shard_dim_alltoall":
                count = self.group(args[3])
                return "all-to-all", size * (count - 1) // count
            case "all_to_all_single":  # edges: nothing is sent to the device itself
                return "permute", sum(args[1]) * math.prod(args[0].shape[1:]) * args[0].element_size()
        return "", 0

    @staticmethod
    def group(name):
        return dist.distributed_c10d._resolve_process_group(name).size()


@pytest.fixture(scope="module", params=[2, 4, 8])
def devices(request):
    dist.init_process_group("fake", rank=request.param // 2 - 1, world_size=request.param)
    yield request.param  # this process is a device in the middle, with neighbours on both sides
    dist.destroy_process_group()


def theirs(placements):
    names = {
        own.Shard: lambda p: Shard(p.dim),
        own.Replicate: lambda p: Replicate(),
        own.Partial: lambda p: Partial(p.op),
    }
    return [names[type(p)](p) for p in placements]


def measure(operator, mesh, cost):
    """Return what is received forward and backward; gradients are brought to the layouts of the tensors."""
    layouts = [theirs(tensor.placements) for tensor in cost.inputs]
    tensors = [
        distribute_tensor(torch.randn(tensor.spec.shape), mesh, row).requires_grad_()
        for tensor, row in zip(cost.inputs, layouts, strict=True)
    ]
    with Received() as forward:
        result = operator(*tensors).redistribute(mesh, theirs(cost.outputs[0].placements))
    gradient = torch.ones_like(result)
    with Received() as backward:
        gradients = torch.autograd.grad(result, tensors, gradient)
        for one, row in zip(gradients, layouts, strict=True):
            one.redistribute(mesh, row)
    return forward.by_kind, backward.by_kind


def on_cpu(collectives, sizes):
    """Return the bytes by kind; on CPUs PyTorch runs an all-to-all as an all-gather, and cuts it."""
    return by_kind(
        dataclasses.replace(one, kind="all-gather", bytes=one.bytes * sizes[one.axis])
        if one.kind == "all-to-all"
        else one
        for one in collectives
    )


@pytest.mark.parametrize("name", [*measured_operators.CASES, *measured_operators.ON_TWO_AXES])
def test_bytes(devices, name):
    rows = {row[0]: row[1:] for row in measured_operators.cases(devices)}
    axes, operator, shapes, placements = rows[name]
    mesh = init_device_mesh("cpu", tuple(axes.values()), mesh_dim_names=tuple(axes))
    cost = operator.communication(mesh, placements=placements, shapes=shapes)
    forward, backward = measure(operator, mesh, cost)
    assert on_cpu(cost.forward, cost.mesh) == forward
    assert on_cpu(cost.backward, cost.mesh) == backward


def test_bytes_of_a_weight_that_has_to_move(devices):
    """Only forward: PyTorch splits each product of the author's gradient by itself."""
    mesh = init_device_mesh("cpu", (devices,), mesh_dim_names=("data",))
    cost = linear.communication(mesh, placements=[("data",), ("data",)], shapes=MATRICES)
    assert on_cpu(cost.forward, cost.mesh) == measure(linear, mesh, cost)[0]
