"""Each benchmark kernel, run as plain Python, equals a separate NumPy version; so do its peers."""

import ast
import copy
import inspect
import pathlib
import subprocess
import sys

import numpy as np
import pytest

BENCH = pathlib.Path(__file__).parents[2] / "bench"
sys.path.insert(0, str(BENCH))

from loops import akg  # noqa: E402 - beside the benchmarks
from loops.npbench import ROWS  # noqa: E402 - beside the benchmarks
from loops.polybench import PROGRAMS  # noqa: E402 - beside the benchmarks
from loops.table import results  # noqa: E402 - beside the benchmarks

from polyop.loops.frontend.language import WORDS  # noqa: E402 - after the path
from polyop.loops.frontend.plain import plain  # noqa: E402 - after the path

ALL_PROGRAMS = {**{f"polybench {name}": row for name, row in PROGRAMS.items()}, **ROWS}


def outputs(function, program, arguments):
    """Return the outputs and NumPy's, and check which arguments were written into."""
    mine, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
    results, expected = function(*mine), program.numpy(*theirs)
    check_updates(program, arguments, mine)
    pairs = zip(*((v if isinstance(v, tuple) else (v,)) for v in (results, expected)), strict=True)
    return [(np.asarray(result), value) for result, value in pairs]


def check_updates(program, before, after):
    for position, (old, new) in enumerate(zip(before, after, strict=True)):
        assert np.array_equal(old, new) == (position not in program.updates)


def assert_close(result, expected):
    assert result.dtype == expected.dtype
    narrow = result.dtype == np.float32
    np.testing.assert_allclose(
        result, expected, rtol=2e-4 if narrow else 1e-11, atol=1e-5 if narrow else 1e-13
    )


@pytest.mark.slow(12)
@pytest.mark.parametrize("name", ALL_PROGRAMS)
def test_the_kernel_equals_numpy(name):
    program = ALL_PROGRAMS[name]
    arguments = program.arguments(program.small, "float64")
    for result, expected in outputs(plain(program.kernel), program, arguments):
        assert_close(result, expected)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_equals_numpy_in_float32(name):
    program = ROWS[name]
    arguments = program.arguments(program.small, "float32")
    for result, expected in outputs(plain(program.kernel), program, arguments):
        assert expected.dtype == np.float32
        assert_close(result, expected)


@pytest.mark.parametrize("name", ROWS)
def test_the_numba_peer_equals_numpy(name):
    """Run as the Python that it is: what Numba makes of it is for the harness to check."""
    program = ROWS[name]
    arguments, theirs, mine = (program.arguments(program.small) for _ in range(3))
    expected, fresh = results(program, theirs)
    outputs = [np.full_like(expected[position], np.nan) for position in fresh]
    program.numba(*mine, *outputs)
    check_updates(program, arguments, mine)
    updated = [mine[position] for position in program.updates]
    old = [value for position, value in enumerate(expected) if position not in fresh]
    for result, value in zip([*updated, *outputs], [*old, *(expected[i] for i in fresh)], strict=True):
        assert_close(result, value)


@pytest.mark.parametrize("name", ROWS)
def test_the_text_for_akg_equals_numpy(name):
    program = ROWS[name]
    written, kernel = getattr(akg, program.kernel.__name__), program.kernel
    assert inspect.signature(written) == inspect.signature(kernel)
    arguments = program.arguments(program.small)
    for result, expected in outputs(plain(written), program, arguments):
        assert_close(result, expected)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if not isinstance(row.torch, str)])
def test_the_torch_peer_equals_numpy(name):
    torch = pytest.importorskip("torch", reason="the peer needs PyTorch")
    program = ROWS[name]
    arguments = program.arguments(program.small)
    peer = program.torch(lambda function: function)

    def run(*values):
        return peer(*(torch.from_numpy(v) if isinstance(v, np.ndarray) else v for v in values))

    for result, expected in outputs(run, program, arguments):
        assert_close(result, expected)


@pytest.mark.parametrize("name", ROWS)
def test_bounds_are_numbers(name):
    row = ROWS[name]
    size = np.dtype(row.dtype).itemsize
    for bound in row.bounds:
        assert bound.amount(size, **row.bench) > bound.amount(size, **row.small) > 0


@pytest.mark.parametrize("name", ALL_PROGRAMS)
def test_the_initial_data_are_the_same_each_time(name):
    program = ALL_PROGRAMS[name]
    for one, other in zip(*(program.arguments(program.small) for _ in range(2)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_all_of_polybench_is_there():
    assert len(PROGRAMS) == 30


def test_the_tables_import_no_torch():
    code = "import sys, loops.npbench, loops.polybench; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=BENCH, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


NODES = (
    *(ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Tuple, ast.Name, ast.Constant, ast.Expr),
    *(ast.Assign, ast.AugAssign, ast.For, ast.If, ast.IfExp, ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp),
    *(ast.Call, ast.Subscript, ast.Attribute, ast.operator, ast.unaryop, ast.cmpop, ast.boolop),
    ast.expr_context,
)


@pytest.mark.slow(12)
@pytest.mark.parametrize("name", ALL_PROGRAMS)
def test_a_kernel_keeps_to_the_language(name):
    (function,) = ast.parse(inspect.getsource(ALL_PROGRAMS[name].kernel)).body
    for node in ast.walk(function):
        assert isinstance(node, NODES), ast.unparse(node)
        if isinstance(node, ast.Call):
            assert node.func.id in {*WORDS, "range", "min", "max", "abs"}
        if isinstance(node, ast.Attribute):
            assert node.attr in {"shape", "dtype"}
    assert isinstance(function.body[-1], ast.Return)
