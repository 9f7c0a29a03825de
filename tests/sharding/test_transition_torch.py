"""``transition`` beside what PyTorch runs to bring an argument of an operator from one layout to another."""

import itertools
import math
import random

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist  # noqa: E402
from torch.distributed.tensor import init_device_mesh  # noqa: E402

from polyop.hosts.torch.distributed.layouts import dense_meta, redistributed, spec_with  # noqa: E402
from polyop.sharding.placement import REPLICATE, Partial, Shard, placements_text  # noqa: E402
from polyop.sharding.transition import is_possible, transition  # noqa: E402
from torch_collectives import Received, on_cpu  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:While redistributing:UserWarning")  # of two axes at once
WHOLE = (16, 16)
ONE_AXIS = (REPLICATE, Partial("sum"), Shard(0), Shard(1))
MESHES = {"2x2": (2, 2), "2x4": (2, 4), "2x2x2": (2, 2, 2)}


def pairs(mesh):
    """Every pair of layouts of which one can become the other, or 300 of them."""
    layouts = list(itertools.product(ONE_AXIS, repeat=len(mesh)))
    rows = [
        (source, target)
        for source, target in itertools.product(layouts, repeat=2)
        if all(map(is_possible, source, target))
    ]
    return rows if len(rows) < 300 else random.Random(len(mesh)).sample(rows, 300)


@pytest.fixture(params=MESHES)
def mesh(request):
    shape = MESHES[request.param]
    dist.init_process_group("fake", rank=0, world_size=math.prod(shape))
    yield init_device_mesh("cpu", shape)
    dist.destroy_process_group()


def test_collectives_and_bytes_of_any_layouts(mesh):
    sizes, meta = tuple(mesh.shape), dense_meta(WHOLE, torch.float32)
    for source, target in pairs(sizes):
        shape = list(WHOLE)
        for placement, count in zip(source, sizes, strict=True):
            if isinstance(placement, Shard):
                shape[placement.dim] //= count
        have, need = (spec_with(mesh, row, meta) for row in (source, target))
        with Received() as received:
            redistributed(torch.zeros(shape), have, need, "t")
        counted = on_cpu(transition("t", 4 * math.prod(WHOLE), sizes, source, target), sizes)
        text = f"{placements_text(source)} -> {placements_text(target)}"
        assert [(one.kind, one.bytes) for one in counted] == received.rows, text
