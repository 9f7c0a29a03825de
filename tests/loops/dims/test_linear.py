"""In which inputs a kernel is linear: what is proved, and that it is true on numbers."""

# ruff: noqa: F821 - the words of the language

import contextlib
import random

import numpy as np
import pytest

from loop_samples import generate
from polyop.core.errors import GradientError
from polyop.loops.derive.forms import adjoint, tangent
from polyop.loops.derive.functional import functional
from polyop.loops.dims.linear import find_linear
from polyop.loops.frontend.parse import parse
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.types import is_real


def scaled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = -2.0 * x[i] / x.shape[0]
    return y


def add_one(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + 1.0
    return y


def add_zero(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] + 0.0
    return y


def square(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
    return y


def relu(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = max(0.0, x[i])
    return y


def masked(x, m):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] if m[i] > 1.0 else 0.0
    return y


def masked_by_statement(x, m):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 0.0
        if m[i] > 1.0:
            y[i] = x[i]
    return y


def bias(x, b):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] - b[i]
    return y


def affine(x, w, b):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * w[i] + b[i]
    return y


def triple(x, w, v):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * w[i] * v[i]
    return y


def ratio(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] / w[i]
    return y


def largest(x):
    y = output_tensor((1,), x.dtype)
    y[0] = x[0]
    for i in range(x.shape[0]):
        y[0] = max(y[0], x[i])
    return y


def decayed(x, d):
    y = output_tensor(x.shape, x.dtype)
    state = 0.0
    for i in range(x.shape[0]):
        state = state * d[i] + x[i]
        y[i] = state
    return y


def product(x):
    y = output_tensor((1,), x.dtype)
    y[0] = 1.0
    for i in range(x.shape[0]):
        y[0] *= x[i]
    return y


def scaled_in_steps(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i]
        y[i] *= w[i]
    return y


def two_outputs(x, w):
    y = output_tensor(x.shape, x.dtype)
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * w[i]
        z[i] = w[i] * w[i]
    return y, z


def gathered(index, table):
    y = output_tensor(index.shape, table.dtype)
    for i in range(index.shape[0]):
        y[i] = table[index[i]]
    return y


def wide(index):
    y = output_tensor(index.shape, float64)
    for i in range(index.shape[0]):
        y[i] = float64(index[i])
    return y


def more_than_64_terms(a, b, c, d, e, f, x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = (a[i] + 1.0) * (b[i] + 1.0) * (c[i] + 1.0) * (d[i] + 1.0) * (e[i] + 1.0) * (f[i] + 1.0)
        y[i] += x[i] * (a[i] + 1.0)
    return y


def in_place(x, y):
    for i in range(x.shape[0]):
        y[i] += x[i]
    return y


def ten_terms(x, w):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * exp(w[i]) + 3.0 * x[i] * w[i] * w[i]
    return y


CASES = [  # function, the largest sets of inputs with the outputs that depend on them
    (scaled, [("x", "y")]),
    (add_one, []),
    (add_zero, [("x", "y")]),
    (square, []),
    (relu, []),
    (masked, [("x", "y")]),
    (masked_by_statement, [("x", "y")]),
    (bias, [("x b", "y")]),
    (affine, [("x b", "y"), ("w b", "y")]),
    (triple, [("x", "y"), ("w", "y"), ("v", "y")]),
    (ratio, [("x", "y")]),
    (largest, []),
    (decayed, [("x", "y")]),
    (product, []),
    (scaled_in_steps, [("x", "y")]),
    (two_outputs, [("x", "y")]),
    (gathered, [("table", "y")]),
    (wide, [("index", "y")]),
    (in_place, [("x y", "y")]),
    (more_than_64_terms, []),  # they are joined to one, in which nothing is linear
    (ten_terms, [("x", "y")]),
]


def typed(function):
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return parse(function, [("int64" if n == "index" else "float64", 1) for n in names], {})


@pytest.mark.parametrize(("function", "expected"), CASES, ids=lambda v: getattr(v, "__name__", None))
def test_what_is_proved(function, expected):
    proved = {(row.inputs, row.outputs) for row in find_linear(typed(function))}
    assert proved == {(frozenset(a.split()), frozenset(b.split())) for a, b in expected}


def draw_inputs(kernel, rank_sizes, draw):
    arrays = {}
    for name in kernel.parameters:
        if name in kernel.buffers:
            buffer = kernel.buffers[name]
            shape = (rank_sizes,) * len(buffer.shape)
            if buffer.dtype == "bool":
                arrays[name] = draw.random(shape) < 0.5
            elif "int" in buffer.dtype:
                arrays[name] = draw.integers(0, rank_sizes, shape).astype(buffer.dtype)
            else:
                arrays[name] = draw.uniform(0.5, 1.5, shape).astype(buffer.dtype)
    return arrays


def compare(total, whole, parts, tolerance, text):
    """Compare where no number is infinite."""
    finite = np.isfinite([whole, *parts]).all(0)
    largest = max(1.0, *(float(np.abs(x[finite], dtype=np.float64).max(initial=0)) for x in parts))
    np.testing.assert_allclose(total[finite], whole[finite], tolerance, tolerance * largest, err_msg=text)


def try_on_numbers(kernel, attributes=(), size=4):
    """Assert that addends of inputs give addends of outputs; return how many claims were tried."""
    draw, tried = np.random.default_rng(0), 0
    text = str(kernel)
    tolerance = 0.1 if "float16" in text else 1e-3 if "float32" in text else 1e-9
    tolerance = 0.3 if "float8" in text else tolerance

    def run(arrays):
        results = interpret(kernel, [np.array(x) for x in arrays.values()], dict(attributes))
        return dict(zip(kernel.outputs, results, strict=True))

    for row in find_linear(kernel):
        whole = draw_inputs(kernel, size, draw)
        try:
            expected = run(whole)
        except (IndexError, ValueError):  # the kernel takes no such sizes
            continue
        one = {n: draw.permuted(x) if n in row.inputs else x for n, x in whole.items()}
        other = {n: x - one[n] if n in row.inputs else x for n, x in whole.items()}
        first, second = run(one), run(other)
        for name, y in expected.items():
            parts = [first[name], second[name]] if name in row.outputs else [first[name]]
            compare(sum(parts), y, parts, tolerance, f"{row}: {name}")
        tried += 1
    return tried


def forms(kernel):
    """Yield a kernel, its gradient and its tangent."""
    yield kernel
    if any(buffer.role == "inplace" for buffer in kernel.buffers.values()):
        return
    tensors = [name for name in kernel.parameters if name in kernel.buffers]
    with contextlib.suppress(GradientError):
        yield adjoint(kernel, [True] * len(kernel.outputs)).kernel
    with contextlib.suppress(GradientError):
        yield tangent(kernel, [is_real(kernel, name) for name in tensors])


@pytest.mark.parametrize(("function", "expected"), CASES, ids=lambda v: getattr(v, "__name__", None))
def test_it_is_true_on_numbers(function, expected):
    assert sum(map(try_on_numbers, forms(typed(function)))) >= len(expected)


@pytest.mark.slow(2)
def test_it_is_true_of_the_programs(program):
    kernel = parse(
        program.function, [(dtype, len(axes)) for dtype, axes, _ in program.rows], dict(program.attributes)
    )
    for form in forms(kernel):
        try_on_numbers(form, program.attributes.items())


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 10), *(pytest.param(k, 25, marks=pytest.mark.slow) for k in (2, 4))]
)
def test_it_is_true_of_random_kernels(seed, count):
    tried = 0
    for number in range(count):
        source = generate.Generator(random.Random(f"{seed} {number}"), real=True)
        for form in forms(functional(parse(source.function(), source.types, {}))):
            tried += try_on_numbers(form)
    assert tried > count / 10


def test_gradients_are_linear_in_the_gradients_of_outputs():
    kernel = adjoint(typed(affine), [True]).kernel
    assert frozenset({"d_y"}) in {row.inputs for row in find_linear(kernel)}
