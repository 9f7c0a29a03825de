"""``op.communication`` beside what DTensors move, for the twelve operators, split by rows and along their inner dimension.

``CommDebugMode`` counts PyTorch's collectives. The bytes of each are those of the device that
receives the most.
"""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import DTensor  # noqa: E402
from torch.distributed.tensor.debug import CommDebugMode  # noqa: E402

from polyop.sharding.placement import REPLICATE, Shard  # noqa: E402
from torch_collectives import Received, on_cpu, torch_placements  # noqa: E402
from twelve_operators import twelve_operators  # noqa: E402

pytestmark = [  # collectives of the fake group leave memory as it is: kernels may compute with any numbers
    pytest.mark.filterwarnings("ignore:.* encountered in:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning"),
    pytest.mark.filterwarnings("ignore::polyop.FallbackWarning"),
]
SAMPLES = {sample.name: sample for sample in twelve_operators()}
ROWS, INNER = "rows", "inner"
LAYOUTS = {
    # the dimension of each tensor that is split, None for a whole tensor
    "norm": {ROWS: (0, None), INNER: (1, 0)},
    "matmul": {ROWS: (0, None), INNER: (1, 0)},
    "softmax": {ROWS: (0,), INNER: (1,)},
    "column_sums": {ROWS: (0,), INNER: (1,)},
    "cumulative_sum": {ROWS: (0,), INNER: (1,)},
    "embedding": {ROWS: (0, None), INNER: (None, 1)},
    "scatter_add": {ROWS: (0, 0), INNER: (None, 1)},
    "stencil": {ROWS: (0,)},
    "window": {ROWS: (0, None), INNER: (1, None)},
    "scan": {ROWS: (0, None, None), INNER: (1, 0, 0)},
    "scores": {ROWS: (0, 0), INNER: (2, 2)},
    "scale": {ROWS: (0,), INNER: (1,)},
}
A_SUM_THAT_STAYS = (
    "The model knows that the gradient of a whole tensor is wanted whole, and gathers what is small. PyTorch's "
    "backward does not know that: it leaves a sum over the devices, which costs nothing until it is read."
)
DIFFERENCES = {
    # what PyTorch's backward runs, where it is not what the model counts
    ("matmul", ROWS): ({"all-reduce"}, A_SUM_THAT_STAYS),
    ("embedding", ROWS): ({"all-reduce"}, A_SUM_THAT_STAYS),
}
CASES = [(name, split) for name, rows in LAYOUTS.items() for split in rows]


def part(x, placements, devices, rank):
    """The slice of one device; indices are real, as kernels check them."""
    tensor = torch.from_numpy(x)
    return tensor.chunk(devices, placements[0].dim)[rank].clone() if placements[0].is_shard() else tensor


def measured(sample, cost, devices, rank):
    """What one device counts and receives, forward and backward; gradients get the layouts of the tensors."""
    dist.init_process_group("fake", rank=rank, world_size=devices)
    try:
        mesh = init_device_mesh("cpu", (devices,), mesh_dim_names=("data",))
        layouts = [torch_placements(tensor.placements) for tensor in cost.inputs]
        rows = zip(sample.inputs, layouts, strict=True)
        tensors = [DTensor.from_local(part(x, row, devices, rank), mesh, row) for x, row in rows]
        for k in sample.differentiable:
            tensors[k].requires_grad_()
        with Received() as forward, CommDebugMode() as forward_count:
            results = sample.operator(*tensors)
            results = results if isinstance(results, tuple) else (results,)
            rows = [torch_placements(tensor.placements) for tensor in cost.outputs]
            results = [one.redistribute(mesh, row) for one, row in zip(results, rows, strict=True)]
        seeds = [torch.ones_like(one) for one in results]
        with Received() as backward, CommDebugMode() as backward_count:
            gradients = torch.autograd.grad(results, [tensors[k] for k in sample.differentiable], seeds)
            for k, one in zip(sample.differentiable, gradients, strict=True):
                one.redistribute(mesh, layouts[k])
        counts = forward_count.get_total_counts(), backward_count.get_total_counts()
        return list(zip(counts, (forward.rows, backward.rows), strict=True))
    finally:
        dist.destroy_process_group()


@pytest.mark.slow(8)
@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize(("name", "split"), CASES)
def test_the_model_counts_what_pytorch_runs(name, split, devices):
    sample = SAMPLES[name]
    layouts = [(REPLICATE if dim is None else Shard(dim),) for dim in LAYOUTS[name][split]]
    shapes = [torch.from_numpy(x) for x in sample.inputs]
    cost = sample.operator.communication({"data": devices}, placements=layouts, shapes=shapes)
    ranks = [measured(sample, cost, devices, rank) for rank in range(devices)]
    for number, collectives in enumerate((cost.forward, cost.backward)):
        (count,) = {rank[number][0] for rank in ranks}
        each = zip(*(rank[number][1] for rank in ranks), strict=True)
        most = [max(rows, key=lambda row: row[1]) for rows in each]
        model = [(one.kind, one.bytes) for one in on_cpu(collectives, cost.mesh)]
        assert count == len(most)
        if number and (name, split) in DIFFERENCES:
            kinds, _ = DIFFERENCES[name, split]
            assert {kind for kind, _ in most} == kinds
            assert sum(size for _, size in model) < sum(size for _, size in most)
        else:
            assert sorted(most) == sorted(model)
