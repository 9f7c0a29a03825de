# ruff: noqa: F821 - kernels, whose words are no names here
"""Block distribution: loops whose contractions get loops of their own block by block, and those that stay."""

import math
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import polyop
from loop_samples.rows_of_products import compiled, scalar_between, scalar_bound, typed
from polyop.core.limits import MAX_BLOCK_BYTES
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.grammar import If, Op, walk
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations
from polyop.loops.passes.block_distribution import BLOCK_ROWS
from polyop.loops.pipeline import schedule


def row_between(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[j] = 0
            for d in range(k.shape[1]):
                p[j] += q[i, d] * k[j, d]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[j] * k[j, d]
    return y


def two_layers(q, k):
    y = output_tensor((q.shape[0], k.shape[0]), q.dtype)
    h = allocate((k.shape[1],), q.dtype)
    for i in range(q.shape[0]):
        for d in range(k.shape[1]):
            h[d] = 1
            for j in range(k.shape[0]):
                h[d] += q[i, j] * k[j, d]
        total = 0.0
        for d in range(k.shape[1]):
            h[d] = max(h[d], 0.0)
            total += h[d]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, j] += h[d] * k[j, d]
        for j in range(k.shape[0]):
            y[i, j] = y[i, j] - total
    return y


def sums_over_rows(q, k):
    y = output_tensor((q.shape[0],), q.dtype)
    z = output_tensor((k.shape[0], k.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[j] = 0
            for d in range(k.shape[1]):
                p[j] += q[i, d] * k[j, d]
        for j in range(k.shape[0]):
            y[i] += p[j]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                z[j, d] += p[j] * q[i, d]
    return y, z


def batches(q, k):
    y = output_tensor((3, q.shape[0], k.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for b in range(3):
        for i in range(q.shape[0]):
            for j in range(k.shape[0]):
                p[j] = q[i, j] - b
            for j in range(k.shape[0]):
                for d in range(k.shape[1]):
                    y[b, i, d] += p[j] * k[j, d]
    return y


def triangle(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(min(i + 1, k.shape[0])):
            p[j] = q[i, 0] - j
        for j in range(min(i + 1, k.shape[0])):
            for d in range(k.shape[1]):
                y[i, d] += p[j] * k[j, d]
    return y


def begins_later(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in range(2, q.shape[0]):
        for j in range(k.shape[0]):
            p[j] = q[i, j] + q[i - 2, j]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[j] * k[j, d]
    return y


def state(q, k):
    """All iterations share the row h, and each changes it."""
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    h = allocate((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            h[j] = q[i, j] - h[j]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += h[j] * k[j, d]
    return y


def carried_scalar(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    m = 0.0
    for i in range(q.shape[0]):
        m = q[i, 0] - m
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += (q[i, j] - m) * k[j, d]
    return y


def fed_back(q, k):
    y = output_tensor((q.shape[0] + 1, k.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[j] = q[i, 0] - y[i, 0]
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i + 1, d] += p[j] * k[j, d]
    return y


def hinted(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in serial(q.shape[0]):
        for j in range(k.shape[0]):
            p[j] = q[i, 0] - j
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                y[i, d] += p[j] * k[j, d]
    return y


BLOCKS = (row_between, scalar_between, two_layers, sums_over_rows, batches, triangle, begins_later)
WHOLE = (state, carried_scalar, scalar_bound, fed_back, hinted)
CASES = [*((f, "float64") for f in (*BLOCKS, *WHOLE)), (row_between, "float16"), (row_between, "int32")]
SIZES = (
    (0, 3, 4),
    (4, 0, 3),
    (3, 4, 0),
    (1, 1, 1),
    (9, 17, 20),
    (BLOCK_ROWS, 3, 2),
    (BLOCK_ROWS + 1, 2, 40),
    (100, 35, 7),
)


@pytest.fixture(scope="session")
def operators(batch):
    return compiled(batch, CASES)


def arrays(n, m, d, dtype):
    """Return inputs of -1, 0 and 1: sums are exact in any order, also in half types."""
    random = np.random.default_rng([n, m, d])
    first = random.integers(-1, 2, (n, max(m, d, 1)))
    return [first.astype(dtype), random.integers(-1, 2, (m, d)).astype(dtype)]


@pytest.mark.slow(6)
@pytest.mark.parametrize(("function", "dtype"), CASES)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_results_are_the_authors(function, dtype, size, operators, batch):
    if 0 in size[1:] and function in (scalar_between, fed_back):
        pytest.skip("the kernel reads the first column")
    inputs = arrays(*size, dtype)
    expected = interpret(typed(function, dtype), inputs, {})
    for threads in (1, 3):
        with batch.threads(threads):
            results = operators(function, dtype)(*inputs)
        for one, other in zip(expected, results, strict=True):
            np.testing.assert_allclose(np.float64(other), np.float64(one), rtol=1e-12)


@pytest.mark.parametrize("function", [*BLOCKS, *WHOLE])
def test_which_loops_are_in_blocks(function):
    program = schedule(typed(function))
    assert violations(program.kernel) == []
    is_blocked = any(note.kind == "block_distribution" for note in program.notes)
    assert is_blocked == (function in BLOCKS)


def test_a_loop_that_the_schedule_names_stays():
    from polyop import Schedule

    program = schedule(typed(row_between), steps=Schedule().parallel("i"))
    assert not any(note.kind == "block_distribution" for note in program.notes)


# the memory of a block

pytestmark = pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")


def online_attention(q, k):
    y = output_tensor(q.shape, q.dtype)
    for i in range(q.shape[0]):
        top = -math.inf
        total = 0.0
        for j in range(k.shape[0]):
            score = dot(q[i], k[j])
            new = max(top, score)
            total = total * exp(top - new) + exp(score - new)
            y[i] = y[i] * exp(top - new) + exp(score - new) * k[j]
            top = new
        y[i] = y[i] / total
    return y


def in_numpy(q, k):
    scores = np.float64(q) @ np.float64(k).T
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights @ k / weights.sum(1, keepdims=True)


def longest_row(kernel):
    """Return how many keys the rows of a block can have."""
    (choice,) = (node for node in schedule(kernel).kernel.body if isinstance(node, If))
    return choice.condition.args[1].value


def test_rows_that_would_make_a_block_too_large_are_not_in_blocks():
    """A block has two rows for each of its iterations, of scores and of weights, and two numbers."""
    longest = longest_row(typed(online_attention, "float32"))
    assert longest == (MAX_BLOCK_BYTES - 2 * 4 * BLOCK_ROWS) // (2 * 4 * BLOCK_ROWS)
    op = polyop.kernel(online_attention)
    random = np.random.default_rng(0)
    for keys in (1, 1000, longest, longest + 1):
        for rows in (1, BLOCK_ROWS, BLOCK_ROWS + 2):
            q, k = (random.normal(size=(n, 3)).astype(np.float32) for n in (rows, keys))
            np.testing.assert_allclose(op(q, k), in_numpy(q, k), 2e-4, 2e-5)


def two_sizes(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    p = allocate((k.shape[0], 5), q.dtype)
    r = allocate((k.shape[0], k.shape[1]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            for d in range(k.shape[1]):
                r[j, d] = k[j, d] * q[i, 0]
            for a in range(5):
                p[j, a] = 0
                for d in range(k.shape[1]):
                    p[j, a] += r[j, d] * k[j, d]
        for j in range(k.shape[0]):
            for a in range(5):
                for d in range(k.shape[1]):
                    y[i, d] += p[j, a] * r[j, d]
    return y


def test_each_of_several_sizes_has_a_limit():
    kernel = typed(two_sizes, "float32")
    (choice,) = (node for node in schedule(kernel).kernel.body if isinstance(node, If))
    limits = [test.args[1].value for test in choice.condition.args]
    assert [test.name for test in choice.condition.args] == ["<=", "<="]
    blocks = BLOCK_ROWS * 4 * limits[0] * (5 + limits[1])
    assert MAX_BLOCK_BYTES / 8 < blocks <= MAX_BLOCK_BYTES
    op = polyop.kernel(two_sizes)
    for keys, features in ((limits[0], 2), (limits[0] + 1, 2), (2, limits[1]), (2, limits[1] + 1)):
        q, k = arrays(BLOCK_ROWS + 1, keys, features, "float32")
        r = k * q[:, :1, None]
        p = 5 * np.einsum("ijd,jd->ij", r, k)
        np.testing.assert_array_equal(op(q, k), np.einsum("ij,ijd->id", p, r))


def mixture_of_images(x, w):
    y = output_tensor((x.shape[0], w.shape[0], x.shape[2], x.shape[3]), x.dtype)
    for b in range(x.shape[0]):
        square = allocate(x.shape[1:], x.dtype)
        for c, h, v in grid(x.shape[1:]):
            square[c, h, v] = x[b, c, h, v] * x[b, c, h, v]
        for o, h, v in grid(y.shape[1:]):
            for c in range(x.shape[1]):
                y[b, o, h, v] += square[c, h, v] * w[o, c]
    return y


def test_three_sizes_have_a_limit():
    """All three are one condition of two operands each, as the grammar has it."""
    program = schedule(parse(mixture_of_images, [("float32", 4), ("float32", 2)], {}))
    assert list(violations(program.kernel)) == []
    (choice,) = (node for node in program.kernel.body if isinstance(node, If))
    limits = [e.args[1].value for e in walk(choice.condition) if isinstance(e, Op) and e.name == "<="]
    assert len(limits) == 3
    assert MAX_BLOCK_BYTES / 8 < BLOCK_ROWS * 4 * math.prod(limits) <= MAX_BLOCK_BYTES
    x, w = np.ones((2, 3, 4, 5), np.float32), np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(polyop.kernel(mixture_of_images)(x, w), np.full((2, 2, 4, 5), 3.0))


GROWTH = """
import pathlib, numpy, polyop
from test_block_distribution import online_attention

def peak():
    # getrusage would count the process that started this one
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) >> 10  # MiB

op = polyop.kernel(online_attention)
keys = numpy.linspace(-1, 1, {keys} * 2, dtype=numpy.float32).reshape({keys}, 2)
op(keys[:96], keys[:3])
pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
before = peak()
op(keys[:96], keys)
print(peak() - before)
"""


def test_an_online_softmax_of_many_keys_has_little_memory_of_its_own():
    """In blocks of rows, two threads had 147 MiB of their own."""
    found = run(GROWTH.format(keys=200_000), threads=2)
    assert int(found) <= 16
    assert int(run(GROWTH.format(keys=40_000), threads=2)) > 16  # here are blocks, so the measure sees memory


def run(script, threads):
    here = pathlib.Path(__file__).parent
    path = os.pathsep.join([str(here), *filter(None, sys.path)])
    env = os.environ | {"PYTHONPATH": path, "POLYOP_NUM_THREADS": str(threads)}
    return subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True, timeout=300
    ).stdout


# the rows of scalars


def spread(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    z = output_tensor(k.shape, q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[j] = 0
            for d in range(k.shape[1]):
                p[j] += q[i, d] * k[j, d]
        for j in range(k.shape[0]):
            t = p[j] * 2
            for d in range(k.shape[1]):
                y[i, d] += t * k[j, d]
            for d in range(k.shape[1]):
                z[j, d] += t * q[i, d]
    return y, z


def spread_halves(q, k):
    y = output_tensor((q.shape[0], k.shape[1]), q.dtype)
    z = output_tensor(k.shape, q.dtype)
    p = allocate((k.shape[0],), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            p[j] = 0
            for d in range(k.shape[1]):
                p[j] += q[i, d] * k[j, d]
        for j in range(k.shape[0]):
            t = float16(p[j])
            for d in range(k.shape[1]):
                y[i, d] += t * k[j, d]
            for d in range(k.shape[1]):
                z[j, d] += t * q[i, d]
    return y, z


NOTES = [
    (spread, "loop j_1: a place for t in each iteration, so that the sums have loops of their own"),
    (spread_halves, "loop j_1: no place for t in each iteration: memory would round float16"),
]


@pytest.mark.parametrize(("function", "text"), NOTES)
def test_what_becomes_of_scalars_is_said(function, text):
    notes = schedule(typed(function)).notes
    assert [note.text for note in notes if note.kind == "rows_of_scalars"] == [text]
