"""Calls on DTensors beside the table of placements: collectives, errors, compiled programs, processes."""

import pathlib
import warnings

import numpy as np
import pytest
import torch
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode
from torch.utils._python_dispatch import TorchDispatchMode

import polyop
import programs
from polyop.call.explain import explain
from polyop.core.errors import ArgumentTypeError, HostError
from polyop.hosts.torch.distributed.refusals import _gathered
from twelve_operators import twelve_operators

PROCESSES = pathlib.Path(__file__).parents[3] / "sources" / "dtensor_processes.py"
SAMPLES = {sample.name: sample for sample in twelve_operators(uneven=True)}
UNCLAIMED = polyop.operator("dtensors::reverse(Tensor x) -> Tensor", lambda x: x[::-1].copy(), infer="x")


def _increase(x, by):
    x += by


INCREASE = polyop.operator(
    "dtensors::increase(Tensor(a!) x, Tensor by) -> ()", _increase, dims="n m, m ->", parallel="n m"
)


def _norm(devices, needs_gradient=False):
    mesh = init_device_mesh("cpu", (4,))
    sample = SAMPLES["norm"]
    x, weight = map(torch.from_numpy, sample.inputs)
    sharded = distribute_tensor(x, mesh, [Shard(0)]), distribute_tensor(weight, mesh, [Replicate()])
    return sample.operator, *(tensor.requires_grad_(needs_gradient) for tensor in sharded)


def test_the_rows_of_a_norm_need_no_collective_and_its_weight_one_all_reduce(devices):
    norm, x, weight = _norm(devices, needs_gradient=True)
    with CommDebugMode() as forward:
        y = norm(x, weight)
    d_y = distribute_tensor(torch.ones(y.shape), y.device_mesh, y.placements)
    with CommDebugMode() as backward:
        y.backward(d_y)
        weight.grad.redistribute(placements=[Replicate()])
    assert forward.get_total_counts() == 0
    rows = backward.get_comm_counts().items()
    counts = {str(kind).rpartition(".")[2]: count for kind, count in rows if count}
    assert counts == {"all_reduce": 1}


def test_a_tensor_is_written_in_place_on_each_device(devices):
    mesh = init_device_mesh("cpu", (4,))
    x = distribute_tensor(torch.zeros(7, 3), mesh, [Shard(0)])
    INCREASE(x, distribute_tensor(torch.arange(3.0), mesh, [Replicate()]))
    torch.testing.assert_close(x.full_tensor().reconcile(), torch.arange(3.0).expand(7, 3))


def _unclaimed(mesh):
    UNCLAIMED(distribute_tensor(torch.zeros(8), mesh, [Shard(0)]))


def _two_meshes(mesh):
    other = init_device_mesh("cpu", (2, 2))
    by = distribute_tensor(torch.zeros(3), other, [Replicate(), Replicate()])
    INCREASE(distribute_tensor(torch.zeros(8, 3), mesh, [Replicate()]), by)


ERRORS = {
    _unclaimed: (
        "dtensors::reverse: argument x is sharded, and nothing says how the operator is split",
        "dims=",
    ),
    _two_meshes: ("dtensors::increase: by must be on the mesh of x", "bring both to one mesh"),
}


@pytest.mark.parametrize("call", ERRORS)
def test_errors_name_the_rule_and_the_way_out(devices, call):
    rule, hint = ERRORS[call]
    with pytest.raises(HostError) as error:
        call(init_device_mesh("cpu", (4,)))
    assert rule in str(error.value)
    assert hint in str(error.value)


def test_an_operator_of_which_nothing_is_claimed_runs_on_whole_tensors(devices):
    x = distribute_tensor(torch.arange(3.0), init_device_mesh("cpu", (4,)), [Replicate()])
    assert UNCLAIMED(x).full_tensor().reconcile().tolist() == [2.0, 1.0, 0.0]


def test_a_call_that_cannot_be_split_warns_once_that_it_gathers(devices):
    reverse = polyop.operator(
        "dtensors::unsplit(Tensor x) -> Tensor", lambda x: x[::-1].copy(), dims="n -> n"
    )
    mesh = init_device_mesh("cpu", (4,))
    sharded = distribute_tensor(torch.arange(8.0), mesh, [Shard(0)])
    _gathered.discard(reverse.name)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        results = [reverse(x) for x in (sharded, sharded + 1)]
        reverse(distribute_tensor(torch.arange(6.0), mesh, [Shard(0)]))
    assert [x.full_tensor().reconcile().tolist()[0] for x in results] == [7.0, 8.0]
    (warning,) = [one for one in given if issubclass(one.category, polyop.FallbackWarning)]
    for words in ("dtensors::unsplit", 'dims="n -> n"', "parallel=", "sum="):
        assert words in str(warning.message)
    line = "fallback: sharded tensors are gathered, because no dimension can be split"
    assert line in explain(reverse)
    assert line not in explain(SAMPLES["norm"].operator)


def test_a_halo_that_brings_each_device_the_whole_warns_once(devices):
    total = polyop.operator(
        "dtensors::total(Tensor x) -> Tensor",
        lambda x: np.full_like(x, x.sum()),
        dims="n -> n",
        halo={"n": (8, 8)},
    )
    mesh = init_device_mesh("cpu", (4,))
    with pytest.warns(
        polyop.FallbackWarning, match="total: the halo along n is wider .* fewer devices"
    ) as given:
        results = [total(distribute_tensor(torch.ones(n), mesh, [Shard(0)])) for n in (8, 8, 12)]
    assert [x.full_tensor().reconcile()[0].item() for x in results] == [8, 8, 11]  # the last lacks an element
    assert len(given) == 1


SCALED = polyop.operator(
    "dtensors::scaled(Tensor x, float a=1.0) -> Tensor",
    lambda x, a: x * np.float32(a),
    batch="elementwise",
    gradient=lambda x, a, out, dout: (dout * a, None),
)


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_halo_of_sizes_that_are_symbols_is_gathered(process_group, dynamic):
    """What devices send each other are numbers, and a program for symbols had those of its first call."""
    op = polyop.operator(
        f"dtensors::neighbours_{dynamic}(Tensor x) -> Tensor",
        lambda x: np.convolve(x, np.ones(3, x.dtype), "same"),
        dims="n -> n",
        halo={"n": (1, 1)},
    )
    mesh = init_device_mesh("cpu", (4,))
    torch._dynamo.reset()
    compiled = torch.compile(op, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for size in (8, 12, 20):
        x = torch.arange(float(size))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            y = compiled(distribute_tensor(x, mesh, [Shard(0)]))
        texts = [str(one.message) for one in said if isinstance(one.message, polyop.FallbackWarning)]
        assert all("along n each device computes the whole: its sizes are symbols" in text for text in texts)
        assert len(texts) == (size == (8 if dynamic else 12))
        assert y.shape == (size,)
        # each process is the same one here: what is gathered is four times its own slice
        assert y.to_local().shape in ((size // 4,), (size,))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("float", (0.0, -0.0, 0.0)),
        ("Scalar", (1, -0.0, 0.0, True, 1.0)),
        ("float[]", ([0.0, 1.0], [-0.0, 1.0])),
    ],
)
def test_equal_attributes_that_differ_stay_apart(process_group, kind, values):
    seen = []
    op = polyop.operator(
        f"dtensors::seen_{kind.strip('[]')}_{len(kind)}(Tensor x, {kind} v) -> Tensor",
        lambda x, v: seen.append(v) or x.copy(),
        batch="elementwise",
    )
    x = distribute_tensor(torch.zeros(4), init_device_mesh("cpu", (4,)), [Shard(0)])
    for value in values:
        op(x, value)
    assert list(map(repr, map(np.array, seen))) == list(map(repr, map(np.array, values)))


class Seen(TorchDispatchMode):
    """The names of the operators that are dispatched."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


def test_plain_calls_of_one_process_and_calls_that_are_watched(process_group):
    mesh = init_device_mesh("cpu", (4,))
    whole = torch.arange(10.0)  # this process has the first three
    x = distribute_tensor(whole, mesh, [Shard(0)])
    for factor in (2, 2.5, True):
        y = SCALED(x, factor)
        assert (y.placements, y.shape) == ((Shard(0),), (10,))
        torch.testing.assert_close(y.to_local(), whole[:3] * factor)
    torch.testing.assert_close(SCALED(x, a=3.0).to_local(), whole[:3] * 3)
    with Seen() as seen:
        SCALED(x, 2.0)
    assert "dtensors::scaled" in seen.names
    leaf = x.detach().requires_grad_()
    with torch.no_grad():
        assert not SCALED(leaf, 2.0).requires_grad
    SCALED(leaf, 2.0).to_local().sum().backward()
    torch.testing.assert_close(leaf.grad.to_local(), torch.full((3,), 2.0))
    with pytest.raises(ArgumentTypeError, match="dtensors::scaled: argument a: must be float"):
        SCALED(x, "2")


def test_a_row_on_an_axis_with_one_device_is_compiled_with_symbols(process_group):
    op = polyop.operator(
        "dtensors::one_device(Tensor x) -> Tensor", lambda x: x + x, dims="b n -> b n", parallel="b n"
    )
    mesh = init_device_mesh("cpu", (1,))
    compiled = torch.compile(op, fullgraph=True, backend="aot_eager", dynamic=True)
    for size in (5, 6):
        x = distribute_tensor(torch.arange(float(size))[None], mesh, [Shard(0)])
        torch.testing.assert_close(compiled(x).to_local(), 2 * x.to_local())


ARRIVAL = """
import warnings
warnings.simplefilter("error", RuntimeWarning)
import torch, polyop
relu = polyop.aten("relu")
double = polyop.operator("arrival::double(Tensor x) -> Tensor", lambda x: x + x, batch="elementwise")
double(relu(torch.ones(3)))
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
torch.distributed.init_process_group("fake", rank=0, world_size=3)
x = distribute_tensor(torch.ones(6), init_device_mesh("cpu", (3,)), [Shard(0)])
print(double(x).to_local().tolist(), double(x).placements)
"""


def test_operators_that_were_called_before_dtensors_are_imported():
    program = programs.start("-c", ARRIVAL)
    ((code, text, errors),) = programs.outputs([program])
    assert (code, text) == (0, "[2.0, 2.0] (Shard(dim=0),)\n"), errors


@pytest.mark.slow(1)
@pytest.mark.parametrize("compiled", ["eager", "compiled"])
def test_four_processes(compiled, tmp_path):
    ranks = [programs.start(PROCESSES, rank, 4, tmp_path / "store", compiled) for rank in range(4)]
    for code, text, errors in programs.outputs(ranks):
        assert code == 0, errors[-3000:]
        assert text.splitlines() == ["matmul", "norm", "window", "module rows", "module sum"]
