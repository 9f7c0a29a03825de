"""Gradients of C++ modules on DTensors: those of the calls of the devices, beside one process."""

import itertools
import pathlib
import random

import numpy as np
import pytest
import torch
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor, init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode

import polyop
from dtensor_layouts import laid_out, placements_of, whole
from polyop.core.errors import GradientError, HostError

SOURCES = pathlib.Path(__file__).parents[3] / "sources"
DIMS = {
    "linear": {"dims": "b i, i o -> b o", "parallel": "b o", "sum": "i"},
    "square": {"dims": "n -> n", "halo": {"n": (1, 1)}},
    "times": {"dims": "n, -> n", "parallel": "n"},
    "largest": {"dims": "n ->", "max": "n"},
    "smooth_square": {"dims": "n m -> n m", "parallel": "n m"},
    "scale_": "n -> n",
}
MESHES = {"4": (4,), "2x2": (2, 2)}


@pytest.fixture(scope="session")
def ops():
    return polyop.CustomOpBuilder("module_on_mesh", [str(SOURCES / "module_dims.cpp")]).load(dims=DIMS)


def drawn(*shapes):
    """The same numbers on each device."""
    rng = np.random.default_rng(0)
    return [torch.tensor(rng.uniform(0.5, 1.5, shape), dtype=torch.float32) for shape in shapes]


def first(function, weight, *inputs):
    """The output, and the gradients of the inputs."""
    y = function(*inputs)
    return y.detach(), *torch.autograd.grad(y, inputs, weight)


def compared(devices, function, inputs, weight, mesh, placements, derivative=first):
    """Compare with one process; return the result of the DTensors."""
    with devices.disable():
        expected = derivative(function, weight, *(x.clone().requires_grad_() for x in inputs))
    rows = zip(inputs, placements, strict=True)
    sharded = [laid_out(x, mesh, row).requires_grad_() for x, row in rows]
    results = derivative(function, distribute_tensor(weight, mesh, [Replicate()] * mesh.ndim), *sharded)
    for result, value in zip(results, expected, strict=True):
        torch.testing.assert_close(whole(result), value)
    return results


@pytest.mark.slow(1)
@pytest.mark.parametrize("shape", MESHES.values(), ids=MESHES)
def test_layouts_of_a_product(ops, devices, shape):
    mesh = init_device_mesh("cpu", shape)
    x, w, weight = drawn((8, 4), (4, 4), (8, 4))
    options = (itertools.product(placements_of(one), repeat=len(shape)) for one in (x, w))
    rows = [*itertools.product(*options)]
    for placements in random.Random(0).sample(rows, 16):
        compared(devices, ops.linear, [x, w], weight, mesh, placements)


def test_the_rows_of_a_product_move_nothing_and_leave_addends(ops, devices):
    mesh = init_device_mesh("cpu", (4,))
    inputs = drawn((8, 4), (4, 4))
    x, w = (
        laid_out(x, mesh, [p]).requires_grad_() for x, p in zip(inputs, (Shard(0), Replicate()), strict=True)
    )
    weight = laid_out(torch.ones(8, 4), mesh, [Shard(0)])
    with CommDebugMode() as collectives:
        y = ops.linear(x, w)
        y.backward(weight)
    assert collectives.get_total_counts() == 0
    assert [y.placements, x.grad.placements, w.grad.placements] == [
        (Shard(0),), (Shard(0),), (Partial("sum"),)
    ]  # fmt: skip


@pytest.mark.parametrize("layout", [Shard(0), Shard(1), Replicate()], ids=str)
def test_second_derivatives(ops, devices, layout):
    def second(function, weight, x):
        weight = weight.detach().requires_grad_()
        (grad,) = torch.autograd.grad(function(x), x, weight, create_graph=True)
        return torch.autograd.grad((grad**3).sum(), [x, weight])

    mesh = init_device_mesh("cpu", (4,))
    x, weight = drawn((8, 4), (8, 4))
    compared(devices, ops.smooth_square, [x], weight, mesh, [[layout]], second)


@pytest.mark.parametrize("name", ["square", "largest"])
def test_halos_and_largest_elements_are_computed_from_the_whole(ops, devices, name):
    mesh = init_device_mesh("cpu", (4,))
    (x,) = drawn((8,))
    function = getattr(ops, name)
    weight = torch.ones((8,) if name == "square" else ())
    y, grad = compared(devices, function, [x], weight, mesh, [[Shard(0)]])
    assert (y.placements, grad.placements) == ((Replicate(),), (Shard(0),))
    with torch.no_grad():
        assert function(laid_out(x, mesh, [Shard(0)])).placements == (
            (Shard(0),) if name == "square" else (Partial("max"),)
        )


def test_a_number_beside_slices_gets_the_sum_of_their_gradients(ops, devices):
    mesh = init_device_mesh("cpu", (4,))
    x, factor = drawn((8,), ())
    factor.requires_grad_()
    ops.times(laid_out(x, mesh, [Shard(0)]), factor).sum().backward()
    torch.testing.assert_close(
        whole(factor.grad) if hasattr(factor.grad, "full_tensor") else factor.grad, x.sum()
    )


def test_what_writes_in_place_has_no_gradient(ops, devices):
    """The first call shows that it writes, inside PyTorch's dispatcher: its registration changes after the call."""
    plain = torch.ones(2)
    ops.scale_(plain, 2.0)
    ops.scale_(plain, 2.0)
    assert plain.tolist() == [4.0, 4.0]
    assert str(ops.scale_.torch._schema).startswith("module_on_mesh::scale_(Tensor(a!) x")
    x = laid_out(torch.ones(8), init_device_mesh("cpu", (4,)), [Shard(0)]).requires_grad_()
    with pytest.raises(GradientError, match="module_on_mesh::scale_: writes .* has no gradient for DTensors"):
        ops.scale_(x * 1, 2.0)


def test_torch_func_is_told_to_use_autograd(ops, devices):
    x = laid_out(torch.ones(8), init_device_mesh("cpu", (4,)), [Shard(0)])
    with pytest.raises(
        HostError, match=r"module_on_mesh::square: .*(?s:.*)torch\.autograd\.grad, which differentiate"
    ):
        torch.func.grad(lambda x: ops.square(x).sum())(x)
