"""The loop kernels of KernelBench's problems compute what PyTorch computes, on each instruction set."""

import importlib.util
import itertools
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest

BENCH = pathlib.Path(__file__).parents[2] / "bench"
sys.path.insert(0, str(BENCH))

torch = pytest.importorskip("torch", reason="PyTorch's functions are what the kernels are compared with")

from gradients.table import incoming  # noqa: E402 - beside the benchmarks
from kernelbench import PROBLEMS, compare, peers, values  # noqa: E402 - same
from kernelbench.table import USES  # noqa: E402 - same

from polyop.loops.targets import isa  # noqa: E402 - after the path

pytestmark = pytest.mark.filterwarnings(
    "ignore::polyop.UninitialisedWarning"
)  # sums that begin with y's zeros
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}


def assert_close(result, expected):
    """Compare two tensors beside the greatest element: sums are added in another order."""
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    tolerance = TOLERANCE["float64" if result.dtype == torch.float64 else "float32"]
    result, expected = (x.detach().to(torch.float64) for x in (result, expected))
    assert (result - expected).abs().max() <= tolerance * expected.abs().max()


def test_the_table():
    assert list(PROBLEMS) == list(range(1, 101))
    assert len({problem.name for problem in PROBLEMS.values()}) == 100
    assert len({problem.kernel for problem in PROBLEMS.values()}) == 66
    assert [problem.number for problem in PROBLEMS.values() if not problem.gradient] == [51, 52]
    for problem in PROBLEMS.values():
        sizes = {use: problem.sizes_for(use) for use in USES}
        names = {name for shape in problem.shapes.split(",") for name in shape.split() if not name.isdigit()}
        assert all(row.keys() == names for row in sizes.values()), problem.title
        assert all(sizes["timed"][name] <= sizes["listed"][name] for name in names)
        assert problem.factor >= 1
        assert sum(map(np.prod, problem.shapes_for("timed"))) < 36e6, "too much for a CPU"
        assert callable(peers.function(problem.torch))


def test_a_row():
    problem = PROBLEMS[3]
    assert problem.title == "3 batches of matrices"
    assert problem.shapes_for("listed") == [(128, 512, 1024), (128, 1024, 2048)]
    assert problem.shapes_for("timed") == [(8, 256, 512), (8, 512, 512)]
    assert problem.shapes_for("tested") == [(3, 7, 9), (3, 9, 17)]
    assert problem.factor == 320 / 3
    assert [x.dtype for x in PROBLEMS[95].inputs("tested")] == [np.float32, np.int64]


def test_the_table_imports_no_torch():
    code = "import sys, kernelbench; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=BENCH, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_rows_of_the_benchmark():
    path = BENCH / "rows" / "kernelbench.py"
    spec = importlib.util.spec_from_file_location("rows_of_kernelbench", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows = module.rows()
    assert len({row.name for row in rows}) == len(rows) == 100 + 98
    assert sum(", forward + backward" in row.name for row in rows) == 98
    assert {row.bar for row in rows} == {None}


def tensors(problem, dtype):
    inputs = problem.inputs("tested", dtype)
    smooth = problem.smooth(inputs)
    made = [torch.from_numpy(x).requires_grad_(i in smooth) for i, x in enumerate(inputs)]
    return made, [made[i] for i in smooth]


@pytest.mark.slow(1, more=16)
@pytest.mark.parametrize(("target", "dtype"), [*itertools.product(isa.available(), TOLERANCE)])
@pytest.mark.parametrize("number", PROBLEMS)
def test_values_and_gradients_equal_those_of_pytorch(number, target, dtype, monkeypatch):
    monkeypatch.setenv("POLYOP_LOOPS_ISA", target)
    problem = PROBLEMS[number]
    (ours, our_leaves), (theirs, their_leaves) = (tensors(problem, dtype) for _ in range(2))
    result = problem.ours(f"_{target}")(*ours)
    expected = problem.theirs(truth=True)(*theirs)
    assert_close(result, expected)
    if problem.gradient:
        arriving = torch.from_numpy(incoming(tuple(expected.shape), dtype))
        gradients = torch.autograd.grad(result, our_leaves, arriving)
        for one, other in zip(gradients, torch.autograd.grad(expected, their_leaves, arriving), strict=True):
            assert_close(one, other)


@pytest.mark.slow(25)
@pytest.mark.parametrize("number", PROBLEMS)
def test_the_loops_as_plain_python_equal_pytorch(number):
    problem = PROBLEMS[number]
    inputs = problem.inputs("tested", "float64")
    result = problem.ours().func.python(*inputs, **problem.attributes)
    assert_close(torch.from_numpy(np.asarray(result)), problem.theirs()(*map(torch.from_numpy, inputs)))


@pytest.mark.slow
@pytest.mark.parametrize("gradient", [False, True])
def test_both_have_the_same_number_of_turns(gradient, monkeypatch):
    monkeypatch.setattr(type(PROBLEMS[14]), "shapes_for", lambda self, use: [(9, 9), (9, 9)])
    times = compare.compare_problem(14, gradient, 3)
    assert {who: len(seconds) for who, seconds in times.seconds.items()} == {"polyop": 3, "PyTorch": 3}


def test_a_slow_row_has_fewer_turns():
    runs = {"polyop": lambda: time.sleep(0.005), "PyTorch": lambda: None}
    assert compare.turns_within(20, runs, 9) == 9
    assert compare.turns_within(0.001, runs, 9) == 3
    assert compare.turns_within(0.001, runs, 2) == 2


def test_activations_have_no_input_where_their_derivative_jumps(monkeypatch):
    assert all(PROBLEMS[n].values == (values.off_corners,) for n in (19, 20, 27, 28, 31, 32))
    monkeypatch.setattr(values, "spread", lambda shape, dtype, *_: np.arange(-4, 4, dtype=dtype))
    assert list(PROBLEMS[19].inputs("tested")[0]) == [-4, -2.5, -2, -0.5, 0.5, 1.5, 2, 3.5]


def test_results_that_differ_are_not_timed(monkeypatch):
    monkeypatch.setattr(peers, "hard_sigmoid_exactly", lambda x: x)
    monkeypatch.setattr(type(PROBLEMS[28]), "shapes_for", lambda self, use: [(3, 5)])
    with pytest.raises(RuntimeError, match=r"^hard sigmoid: the result of polyop is off by"):
        compare.compare_problem(28, gradient=False, turns=1)
