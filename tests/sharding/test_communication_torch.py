"""``op.communication`` beside what DTensors move: the collectives that PyTorch runs, and their bytes."""

# ruff: noqa: F821 - the words of the loop language

import math

import numpy as np
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

import polyop  # noqa: E402
from polyop.sharding import placement as own  # noqa: E402

ROWS, INNER, COLUMNS = 64, 32, 16
linear = polyop.operator(
    "measured::linear(Tensor x, Tensor w) -> Tensor",
    lambda x, w: np.zeros((x.shape[0], w.shape[1]), x.dtype),  # a fake process group moves no values
    dims="b i, i o -> b o",
    parallel="b o",
    sum="i",
    gradient=lambda x, w, y, d_y: (d_y @ w.T, x.T @ d_y),
)


@polyop.kernel
def norm(x, w, eps: float = 1e-5):
    out = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
        scale = 1.0 / sqrt(total / x.shape[1] + eps)
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * scale * w[j]
    return out


@polyop.kernel
def smooth(x):
    out = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if i == 0 or j == 0 or i == x.shape[0] - 1 or j == x.shape[1] - 1:
                out[i, j] = x[i, j]
            else:
                out[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]
    return out


@polyop.kernel
def column_sums(x):
    out = output_tensor((x.shape[1],), x.dtype)
    for j in range(x.shape[1]):
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i, j]
        out[j] = total
    return out


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


S0, S1, R = Shard(0), Shard(1), Replicate()
MATRICES = [(ROWS, INNER), (INNER, COLUMNS)]
CASES = {
    "data parallel": (linear, MATRICES, [[S0], [R]]),
    "column parallel": (linear, MATRICES, [[R], [S1]]),
    "row parallel": (linear, MATRICES, [[S1], [S0]]),
    "replicated": (linear, MATRICES, [[R], [R]]),
    "norm": (norm, [(ROWS, INNER), (INNER,)], [[S0], [R]]),
    "norm along its row": (norm, [(ROWS, INNER), (INNER,)], [[S1], [R]]),
    "rows of a stencil": (smooth, [(ROWS, INNER)], [[S0]]),
    "columns of a stencil": (smooth, [(ROWS, INNER)], [[S1]]),
    "sums of split columns": (column_sums, [(ROWS, INNER)], [[S0]]),
    "sums of whole columns": (column_sums, [(ROWS, INNER)], [[S1]]),
}
ON_TWO_AXES = {
    "data and column parallel": (linear, MATRICES, [[S0, R], [R, S1]]),
    "data and row parallel": (linear, MATRICES, [[S0, S1], [R, S0]]),
    "blocks of a stencil": (smooth, [(ROWS, INNER)], [[S0, S1]]),
    "norm": (norm, [(ROWS, INNER), (INNER,)], [[S0, R], [R, R]]),
}


def theirs(placements):
    names = {
        own.Shard: lambda p: Shard(p.dim),
        own.Replicate: lambda p: R,
        own.Partial: lambda p: Partial(p.op),
    }
    return [names[type(p)](p) for p in placements]


def measure(operator, mesh, shapes, placements, outputs):
    """Return what is received forward and backward; gradients are brought to the layouts of the tensors."""
    tensors = [
        distribute_tensor(torch.randn(shape), mesh, row).requires_grad_()
        for shape, row in zip(shapes, placements, strict=True)
    ]
    with Received() as forward:
        result = operator(*tensors).redistribute(mesh, outputs)
    gradient = torch.ones_like(result)
    with Received() as backward:
        gradients = torch.autograd.grad(result, tensors, gradient)
        for one, row in zip(gradients, placements, strict=True):
            one.redistribute(mesh, row)
    return forward.by_kind, backward.by_kind


def by_kind(collectives, sizes):
    """Return the bytes by kind; on CPUs PyTorch runs an all-to-all as an all-gather, and cuts it."""
    total = {}
    for one in collectives:
        on_cpu = "all-gather", one.bytes * sizes[one.axis]
        kind, received = on_cpu if one.kind == "all-to-all" else (one.kind, one.bytes)
        if received:
            total[kind] = total.get(kind, 0) + received
    return total


def compare(operator, mesh, shapes, placements):
    cost = operator.communication(mesh, placements=placements, shapes=shapes)
    outputs = theirs(cost.outputs[0].placements)
    forward, backward = measure(operator, mesh, shapes, placements, outputs)
    assert by_kind(cost.forward, cost.mesh) == forward
    assert by_kind(cost.backward, cost.mesh) == backward


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_bytes_on_one_axis(devices, case):
    compare(case[0], init_device_mesh("cpu", (devices,), mesh_dim_names=("data",)), *case[1:])


def test_bytes_of_a_weight_that_has_to_move(devices):
    """Only forward: PyTorch splits each product of the author's gradient by itself."""
    mesh = init_device_mesh("cpu", (devices,), mesh_dim_names=("data",))
    cost = linear.communication(mesh, placements=[[S0], [S0]], shapes=MATRICES)
    outputs = theirs(cost.outputs[0].placements)
    forward, _ = measure(linear, mesh, MATRICES, [[S0], [S0]], outputs)
    assert by_kind(cost.forward, cost.mesh) == forward


@pytest.mark.parametrize("case", ON_TWO_AXES.values(), ids=ON_TWO_AXES)
def test_bytes_on_two_axes(devices, case):
    shape = {2: (1, 2), 4: (2, 2), 8: (4, 2)}[devices]
    compare(case[0], init_device_mesh("cpu", shape, mesh_dim_names=("data", "model")), *case[1:])
