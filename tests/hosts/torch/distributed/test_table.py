"""Twelve operators, placements of their inputs, two shapes of meshes: values, gradients, collectives.

Each pair of placements is tried, of two inputs or of one on two axes; `make sweep` tries all combinations.
"""

import itertools

import pytest
import torch
from torch.distributed.tensor import Replicate, distribute_tensor, init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode

from dtensor_layouts import as_tuple, laid_out, placements_of, whole
from pairs import every_pair
from polyop.call.prepare import normalise
from polyop.core.arguments import bind
from polyop.hosts.torch import tensors
from polyop.hosts.torch.distributed.layouts import own_placements
from polyop.sharding.of_call import sharding_rule
from polyop.sharding.plan import plan
from twelve_operators import twelve_operators

pytestmark = [
    pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning"),
    pytest.mark.filterwarnings("ignore::polyop.FallbackWarning"),  # a halo is wider than some slices
    pytest.mark.filterwarnings("ignore:While redistributing:UserWarning"),  # PyTorch's, of two axes at once
]
SAMPLES = {sample.name: sample for sample in twelve_operators(uneven=True)}
MESHES = {"4": (4,), "2x2": (2, 2)}
BLOCK = 16
"""Layouts that one test tries; three of each operator and mesh are tried for every change."""


def layouts_of(name, mesh):
    """Layouts of the operator's inputs, in a random order."""
    options = [
        list(itertools.product(placements_of(torch.from_numpy(x)), repeat=len(MESHES[mesh])))
        for x in SAMPLES[name].inputs
    ]
    return every_pair(itertools.product(*options), choices=lambda layouts: sum(layouts, ()))


def blocks():
    for name, mesh in itertools.product(SAMPLES, MESHES):
        rows = layouts_of(name, mesh)
        yield pytest.param(name, mesh, rows[:3], id=f"{name}-{mesh}-some")
        for start in range(3, len(rows), BLOCK):
            yield pytest.param(
                name,
                mesh,
                rows[start : start + BLOCK],
                id=f"{name}-{mesh}-{start}",
                marks=pytest.mark.slow,
            )


@pytest.mark.slow(2)
@pytest.mark.parametrize(("name", "mesh", "rows"), [*blocks()])
def test_dtensors_give_what_plain_tensors_give(devices, name, mesh, rows):
    sample = SAMPLES[name]
    inputs = tuple(map(torch.from_numpy, sample.inputs))
    with devices.disable():
        expected, grads = plain(sample, inputs)
    shape = MESHES[mesh]
    device_mesh = init_device_mesh("cpu", shape)
    for placements in rows:
        xs = [laid_out(x, device_mesh, row) for x, row in zip(inputs, placements, strict=True)]
        for k in sample.differentiable:
            xs[k].requires_grad_()
        with CommDebugMode() as collectives:
            results = as_tuple(sample.operator(*xs))
        seeds = [distribute_tensor(g, device_mesh, [Replicate()] * len(shape)) for g in grads]
        input_grads = torch.autograd.grad(results, [xs[k] for k in sample.differentiable], seeds)
        for one, other in zip((*results, *input_grads), expected, strict=True):
            torch.testing.assert_close(whole(one), other, rtol=1e-4, atol=1e-5)
        planned = plan_of(sample.operator, inputs, shape, xs).collectives
        assert collectives.get_total_counts() == len(planned), placements


def plain(sample, inputs):
    """The outputs and the gradients without devices, and the gradients of the outputs."""
    leaves = [x.clone().requires_grad_(k in sample.differentiable) for k, x in enumerate(inputs)]
    results = as_tuple(sample.operator(*leaves))
    draw = torch.Generator().manual_seed(0)
    grads = [torch.randn(y.shape, generator=draw) for y in results]
    input_grads = torch.autograd.grad(results, [leaves[k] for k in sample.differentiable], grads)
    return [y.detach() for y in (*results, *input_grads)], grads


def plan_of(operator, inputs, shape, xs):
    """The plan with the fewest bytes."""
    specs = normalise(operator.operator, bind(operator.schema, tuple(map(tensors.spec, inputs)), {}))
    return plan(sharding_rule(operator.operator, specs), shape, [own_placements(x._spec) for x in xs])
