# ruff: noqa: F821 - kernels, whose words are no names here
"""deterministic="batch": each row of batches of 1 to 70 rows has the bits that it has alone."""

import inspect

import ml_dtypes
import numpy as np
import pytest

import instruction_sets
import polyop
from batch_kernels import linear, softmax
from polyop.loops.emit.printer import source
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.schedule import Schedule
from polyop.loops.library.options import Options, flags_of
from polyop.loops.pipeline import schedule
from polyop.loops.targets.table import TARGETS

ROWS, COLUMNS = 70, 19


def difference(v, w):
    y = output_tensor(v.shape, v.dtype)
    for i in range(v.shape[0]):
        y[i] = v[i] * w[0] - w[0] * v[i] + v[i] * v[i]
    return y


def layer_norm(x, g, b):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        mean = 0.0
        for j in range(x.shape[1]):
            mean += x[i, j]
        mean /= x.shape[1]
        var = 0.0
        for j in range(x.shape[1]):
            var += (x[i, j] - mean) * (x[i, j] - mean)
        inv = rsqrt(var / x.shape[1] + 1e-5)
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - mean) * inv * g[j] + b[j]
    return y


def gelu(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            cube = x[i, j] * x[i, j] * x[i, j]
            y[i, j] = 0.5 * x[i, j] * (1 + tanh(0.79788456 * (x[i, j] + 0.044715 * cube)))
    return y


def dots(x, w):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for k in range(x.shape[1]):
            s += x[i, k] * w[k]
        y[i] = s * w[0] + s
    return y


def linear_t(x, m):
    y = output_tensor((x.shape[0], m.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(m.shape[0]):
            y[i, j] = 0
            for k in range(m.shape[1]):
                y[i, j] += x[i, k] * m[j, k]
    return y


def column(x):
    """Its rows are the lanes, and it adds to elements in memory."""
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = 0
    for k in range(x.shape[1]):
        for i in range(x.shape[0]):
            y[i] += x[i, k] * x[i, 0] - x[i, 0] * x[i, 1]
    return y


def chains(v):
    y = output_tensor(v.shape, v.dtype)
    for i in range(v.shape[0]):
        a = v[i] * v[i] + 0.3
        y[i] = exp(v[i]) * tanh(a) - sin(v[i]) * cos(a) + erf(v[i]) * a
        y[i] += log(a) * v[i] + pow(a, v[i]) - v[i] * v[i]
    return y


def more(v):
    y = output_tensor(v.shape, v.dtype)
    for i in range(v.shape[0]):
        a = abs(v[i]) + 0.1
        y[i] = expm1(v[i]) * a + log1p(a) * v[i] - atan(v[i]) * a + sigmoid(v[i]) * v[i] + sqrt(a) * a
        y[i] += atan2(v[i], a) * a + hypot(v[i], a) + exp2(v[i]) * a - tan(v[i]) * a
        y[i] -= lgamma(a) * a + erfc(v[i]) * v[i]
    return y


def recur(x, x2):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s = 0.0
        for t in range(x.shape[1]):
            s = x2[i, t] * s + x[i, t]
            y[i, t] = s
    return y


def stencil(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1] - 1):
            y[i, j] = 0.3 * x[i, j - 1] + 0.4 * x[i, j] + 0.3 * x[i, j + 1] - x[i, j] * x[i, j - 1]
    return y


def attention(x, m):
    y = output_tensor((x.shape[0], m.shape[1]), x.dtype)
    for i in range(x.shape[0]):
        top = -1e30
        total = 0.0
        for d in range(m.shape[1]):
            y[i, d] = 0
        for k in range(m.shape[0]):
            s = 0.0
            for d in range(m.shape[1]):
                s += x[i, d] * m[k, d]
            old = top
            top = max(top, s)
            scale = exp(old - top)
            w = exp(s - top)
            total = total * scale + w
            for d in range(m.shape[1]):
                y[i, d] = y[i, d] * scale + w * m[k, d]
        for d in range(m.shape[1]):
            y[i, d] /= total
    return y


def masked(v):
    y = output_tensor(v.shape, v.dtype)
    for i in range(v.shape[0]):
        if v[i] > 0:
            y[i] = v[i] * v[i] - 0.1 * v[i]
        else:
            y[i] = exp(v[i]) * v[i] + v[i] * v[i]
    return y


KERNELS = (
    difference,
    softmax,
    layer_norm,
    gelu,
    dots,
    linear,
    linear_t,
    column,
    chains,
    more,
    recur,
    stencil,
    attention,
    masked,
)
DTYPES = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}
OF_ROWS = ("x", "x2", "v")


def tensors(function, dtype):
    """Return the tensors of a kernel by name; those of ``OF_ROWS`` have a row for each sample."""
    rng = np.random.default_rng(1)
    made = {
        "x": rng.standard_normal((ROWS, COLUMNS)),
        "x2": rng.uniform(0.2, 0.9, (ROWS, COLUMNS)),
        "v": rng.standard_normal(ROWS) * 2,
        "m": rng.standard_normal((COLUMNS, COLUMNS)),
        "g": rng.uniform(0.5, 2, COLUMNS),
        "b": rng.standard_normal(COLUMNS),
        "w": rng.standard_normal(COLUMNS),
    }
    return {name: made[name].astype(dtype) for name in inspect.signature(function).parameters}


def rows_of(arrays, start, stop):
    return [a[start:stop].copy() if name in OF_ROWS else a for name, a in arrays.items()]


@pytest.mark.slow(14)
@pytest.mark.parametrize("isa", instruction_sets.EACH)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", KERNELS, ids=lambda f: f.__name__)
def test_a_row_has_the_bits_that_it_has_alone(function, dtype, isa, monkeypatch):
    monkeypatch.setenv("POLYOP_LOOPS_ISA", isa)
    name = f"same_bits::{function.__name__}_{dtype}_{isa}"
    operator = polyop.kernel(function, name=name, deterministic="batch")
    arrays = tensors(function, DTYPES[dtype])
    alone = [operator(*rows_of(arrays, k, k + 1)).tobytes() for k in range(ROWS)]
    for start, stop in (*((0, size) for size in range(1, ROWS + 1)), (3, ROWS), (17, ROWS)):
        assert operator(*rows_of(arrays, start, stop)).tobytes() == b"".join(alone[start:stop]), (start, stop)
    rough = {"float32": 1e-4, "float64": 1e-9}.get(dtype, 0.1)
    ours, exact = (
        np.asarray(f(*arrays.values()), np.float64) for f in (operator, polyop.kernel(function).python)
    )
    np.testing.assert_allclose(ours, exact, rough, rough)


def windows(d, x, like):
    y = np.zeros((d.shape[0], x.shape[0], like.shape[0]), x.dtype)
    for b in range(d.shape[0]):
        for c in range(x.shape[0]):
            for p in range(like.shape[0]):
                for i in range(d.shape[1]):
                    y[b, c, p] += d[b, i] * x[c, i + p]
    return y


@pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")
def test_the_size_of_a_batch_chooses_no_order_of_a_sum():
    """With more windows than rows another version of the loops would run."""
    operator = polyop.kernel(windows, name="same_bits::windows", deterministic="batch")
    random = np.random.default_rng(0)
    d, x = (random.normal(size=size).astype(np.float32) for size in ((9, 600), (3, 605)))
    like, together = np.zeros(5, np.float32), operator(d, x, np.zeros(5, np.float32))
    for rows in (1, 2, 5):
        assert operator(d[:rows], x, like).tobytes() == together[:rows].tobytes()


@pytest.mark.slow(1)
@pytest.mark.parametrize("function", [layer_norm, gelu, recur], ids=lambda f: f.__name__)
def test_so_has_its_gradient(function):
    torch = pytest.importorskip("torch", reason="the gradient is taken by PyTorch")
    operator = polyop.kernel(function, name=f"same_bits::d_{function.__name__}", deterministic="batch")
    arrays = tensors(function, np.float32)

    def gradient(start, stop):
        first, *others = map(torch.tensor, rows_of(arrays, start, stop))
        result = operator(first.requires_grad_(), *others)
        (found,) = torch.autograd.grad((result * result).sum(), first)
        return found.numpy()

    alone = [gradient(k, k + 1).tobytes() for k in range(ROWS)]
    for size in (2, 7, 8, 9, 15, 16, 17, 31, 33, 48, 63, 65, ROWS):
        assert gradient(0, size).tobytes() == b"".join(alone[:size]), size


@pytest.mark.parametrize("target", [name for name, row in TARGETS.items() if row.language == "c"])
def test_only_such_a_kernel_says_itself_what_is_fused(target):
    """A sum of products is; the compiler is told to fuse nothing, by a flag that its own flags do not undo."""
    kernel = parse(linear, [("float32", 2), ("float32", 2)], {})
    steps = Schedule().deterministic()
    text = source(schedule(kernel, steps=steps), target, "f")
    plain = source(schedule(kernel), target, "f")
    assert "#define POLYOP_UNFUSED 1" in text
    assert "polyop_madd_f32v4(" in text
    assert "madd" not in plain.lower() and "UNFUSED" not in plain
    for family in ("gcc", "clang"):
        contraction = [f for f in flags_of(family, Options(target, schedule=steps)) if "fp-contract" in f]
        assert contraction[-1] == "-ffp-contract=off"
        assert "-ffp-contract=off" not in flags_of(family, Options(target))


def test_nvcc_fuses_nothing_either():
    assert "--fmad=false" in flags_of("nvcc", Options("cuda", schedule=Schedule().deterministic()))
    assert "--fmad=false" not in flags_of("nvcc", Options("cuda"))
