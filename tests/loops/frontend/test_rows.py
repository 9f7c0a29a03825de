# ruff: noqa: F821, PLR1714 - kernels, whose words are no names here
"""Rows, slices, sums of rows and tables: each kernel beside the same function in plain Python."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polyop
from polyop.core.errors import ArgumentTypeError, ArgumentValueError, KernelError
from polyop.loops.frontend.parse import parse
from polyop.loops.frontend.plain import plain
from polyop.loops.ir.interpret import interpret

torch = pytest.importorskip("torch", reason="gradients are compared with finite differences by PyTorch")
SMOOTHING = (0.25, 0.5, 0.25)


def dot(a, b):
    """A helper may have the name of a word: then the helper is meant."""
    return sum(a * b) + 1


def softmax(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        e = exp(x[i] - max(x[i]))
        y[i] = e / sum(e)
    return y


def layer_norm(x, w, b):
    y = output_tensor(x.shape, x.dtype)
    for i, row in enumerate(x):
        d = row - sum(row) / x.shape[1]
        y[i, :] = d / np.sqrt(sum(d * d) / x.shape[1] + 1e-5) * w[:] + b[:]
    return y


def stencil(x):
    y = output_tensor(x.shape, x.dtype)
    y[0] = x[0]
    y[-1] = x[-1]
    y[1:-1] = SMOOTHING[0] * x[:-2] + SMOOTHING[1] * x[1:-1] + SMOOTHING[2] * x[2:]
    return y


def table(x):
    y = output_tensor(x.shape, x.dtype)
    w = [0.5, 2.0, 0.5 * x[0]]
    for i in range(1, x.shape[0] - 1):
        total = 0.0
        for k in range(3):
            total += w[k] * x[i + k - 1]
        y[i] = total
    return y


def chosen(x, w):
    y = output_tensor(x.shape, x.dtype)
    y[:] = where(x[:] > 0, x * w[:], -x)
    y[::2] += 1 if x.size > 2 else x[::2]
    y[:, 1:3] *= 2
    return y


def overlapping(x):
    y = output_tensor(x.shape, x.dtype)
    y[:] = x
    y[1:] = y[:-1]
    y[:3] = x[-3:]
    y[::-1] = y * 2
    y[2:5] -= y[0:3]
    return y


def products(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = dot(a[i], b[:, j])
    return c


def running(x):
    y = output_tensor((x.shape[0], 4), x.dtype)
    for i in range(x.shape[0]):
        past = x[max(i - 2, 0) : i + 1]
        y[i, 0] = sum(past)
        y[i, 1] = max(past) - min(past)
        y[i, 2] = x[i] * y[i, 0]
        part = y[i, 1:3]
        y[i, 3] = part[0] + part[-1]
    return y


def outer(x, w):
    y = output_tensor((x.shape[0], w.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * w[:] + prod(w[:])
    return y


def counts(x):
    y = output_tensor((3,), "int64")
    y[0] = sum(x > 1)
    y[1] = max(x)
    y[2] = sum(x)
    return y


def outer_of_slices(x, w):
    """A slice of one place is broadcast: its place is that of a loop, at a distance, backwards, in steps."""
    y = output_tensor((x.shape[0], w.shape[0]), x.dtype)
    n = x.shape[0]
    for i in range(n):
        y[i] = x[i : i + 1] * w[:]
    for i in range(1, n - 1):
        y[i] += x[i - 1 : i] * w[:] + (x[i : i + 1] + x[i + 1 : i + 2]) * w
    for i in range(n - 1, -1, -1):
        y[i] -= w[:] / (2 + x[i : i + 1])
    for i in range(0, n, 2):
        y[i, :] *= x[i : i + 1]
    for i, j in grid(y.shape):
        y[i, j : j + 1] += x[i : i + 1] * w[j : j + 1]
    return y


def columns(x):
    y = output_tensor(x.shape, x.dtype)
    y[:, :] = x[:, :] - x[:, 0:1] + x[:1] * x[:, -1:]
    first = x[:, :1] * 2
    y[:, :] += first
    for i in range(x.shape[0]):
        y[i] += x[i, 1:2] * y[i : i + 1, :][0] + sum(x[i, :1] * x[i])
    return y


def steps_past_the_end(x):
    """A step that is as long as the slice leaves one place."""
    y = output_tensor(x.shape, x.dtype)
    y[:, :] = x[:, :] + x[-2::2, :] * x[:, -3:-1:2]
    for i in range(x.shape[0]):
        y[i] -= x[i : i + 2 : 2, 0] * x[i, :1:3]
    y[:3:3, :] *= x[1:3:2]
    y[1:3:2, 0:2:2] += 7
    return y


X = np.array([[0.3, -1.2, 2.4, 0.15], [0.9, 1.7, -0.4, 0.05], [3.1, -0.7, 0.6, 1.1]])
V = np.array([0.3, -1.2, 2.4, 0.15, 0.9, 1.7, -0.4])
CASES = [  # a kernel, its arguments
    (softmax, (X,)),
    (softmax, (X.astype(np.float32),)),
    (layer_norm, (X, V[:4], V[3:])),
    (stencil, (V,)),
    (stencil, (V[:2],)),
    (table, (V,)),
    (chosen, (X, V[:4])),
    (overlapping, (V,)),
    (products, (X, X.T.copy())),
    (running, (V,)),
    (outer, (V, V[:3])),
    (outer_of_slices, (V, V[:3])),
    (outer_of_slices, (V.astype(np.float32), V[:0].astype(np.float32))),
    (columns, (X,)),
    (columns, (X[:0],)),
    (steps_past_the_end, (X,)),
    (counts, (np.array([3, -1, 120, 100], np.int8),)),
]


def named(case):
    return f"{case[0].__name__}-{'-'.join(str(a.shape) for a in case[1])}"


@pytest.fixture(scope="session")
def operators():
    return {function: polyop.kernel(name=f"rows::{function.__name__}")(function) for function, _ in CASES}


def chained(x):
    """What follows a slice counts the dimensions that it leaves."""
    y = output_tensor(x.shape, x.dtype)
    y[1:3][0] = x[1:][0] * 2 + x[:, 1:][1, 0]
    y[1:][1, 1:][0] = x[:, 0][1] + x[0][1:][1]
    y[:, 2][1:2] += sum(x[1:3][0]) + x[::-1][0][1:3][1]
    t = y[1:]
    t[0][1:][2] -= x[1:, :2][1][1]
    return y


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    "case",
    [*[c for c in CASES if c[0] in (outer_of_slices, columns, steps_past_the_end)], (chained, (X,))],
    ids=named,
)
def test_slices_of_slices_and_of_one_place(case):
    function, arrays = case
    operator = polyop.kernel(function, name=f"rows::{function.__name__}_alone")
    expected = operator.python(*arrays)
    kernel = parse(function, [(str(a.dtype), a.ndim) for a in arrays], {})
    (interpreted,) = interpret(kernel, arrays)
    for result in (interpreted, operator(*arrays)):
        np.testing.assert_allclose(result, expected, rtol=1e-12 if expected.dtype != np.float32 else 1e-6)
    if arrays[0].size and expected.dtype == np.float64:
        points = [torch.tensor(a, requires_grad=True) for a in arrays]
        assert torch.autograd.gradcheck(operator, points, check_forward_ad=True)


@pytest.mark.slow(6)
@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_row_is_what_numpy_has(case, operators):
    function, arrays = case
    expected = plain(function)(*arrays)
    kernel = parse(function, [(str(a.dtype), a.ndim) for a in arrays], {})
    (interpreted,) = interpret(kernel, arrays)
    for result in (interpreted, operators[function](*arrays)):
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-12 if expected.dtype != np.float32 else 1e-6)


@pytest.mark.slow(1)
@pytest.mark.parametrize("case", [c for c in CASES if c[1][0].dtype == np.float64], ids=named)
def test_gradients_of_rows(case, operators):
    function, arrays = case
    points = [torch.tensor(a, requires_grad=True) for a in arrays]
    assert torch.autograd.gradcheck(lambda *t: operators[function](*t), points, check_forward_ad=True)


def sliced(x, lo: int, hi: int):
    y = output_tensor((3,), x.dtype)
    part = x[lo:hi]
    y[0] = sum(part)
    y[1] = sum(x[lo:])
    y[2] = sum(x[:hi])
    return y


SLICED = polyop.kernel(name="rows::sliced")(sliced)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(0, 6), lo=st.integers(-8, 8), hi=st.integers(-8, 8))
def test_ends_of_slices_count_as_in_python(n, lo, hi):
    x = np.arange(1.0, n + 1)
    np.testing.assert_array_equal(SLICED(x, lo, hi), plain(sliced)(x, lo, hi))


@pytest.mark.parametrize(
    "text",
    ["x[1:]", "x[:2]", "x[-2:]", "x[:-1]", "x[1:-1]", "x[::2]", "x[1::3]", "x[::-1]", "x[5:]", "x[:9]"],
)
@pytest.mark.parametrize("n", [0, 1, 4])
def test_constant_slices_count_as_in_python(text, n, tmp_path):
    body = f"    y[0] = sum({text})\n"
    lines = f"def f(x):\n    y = output_tensor((1,), x.dtype)\n{body}    return y\n"
    file = tmp_path / "kernel.py"
    file.write_text(lines)
    space = {}
    exec(compile(lines, str(file), "exec"), space)
    x = np.arange(1.0, n + 1)
    (result,) = interpret(parse(space["f"], [("float64", 1)], {}), [x])
    np.testing.assert_array_equal(result, plain(space["f"])(x))


def at(x, w, k: int):
    y = output_tensor(w.shape, w.dtype)
    y[:] = x[k : k + 1] + w[:]
    return y


def into_one_place(x, w, k: int):
    y = output_tensor(w.shape, w.dtype)
    y[0:1] = x[k : k + 1] + w[:1]
    return y


def result_of(function, *arguments):
    """Return the result, or what NumPy and the kernel say of rows of different sizes."""
    try:
        return function(*arguments)
    except (ValueError, KernelError) as problem:
        assert re.search("broadcast|rows of different sizes are combined", str(problem))
        return "refused"


AT, INTO = (polyop.kernel(one, name=f"rows::{one.__name__}") for one in (at, into_one_place))


@pytest.mark.parametrize("operator", [AT, INTO])
@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 1), (0, 3), (1, 0), (1, 1), (1, 3), (3, 0), (3, 1), (3, 3)])
def test_a_slice_of_one_place_is_broadcast_or_refused_as_in_numpy(operator, n, m):
    x, w = np.arange(1.0, n + 1), np.arange(4.0, m + 4)
    for k in range(-n - 2, n + 2):
        expected = result_of(operator.python, x, w, k)
        np.testing.assert_array_equal(result_of(operator, x, w, k), expected)


ERRORS = [  # a line of a kernel of x (two dimensions) and w (one), the kind of error, words of its text
    ("y[0, 0] = x[0]", ArgumentTypeError, r"x\[0\] has 1 dimension, where a number is needed"),
    ("y[0] = x", ArgumentValueError, "a row of 2 dimensions does not fit, but got a place of 1 dimension"),
    ("y[0] = x[0, 0, 0]", ArgumentValueError, r"x.* has 2 dimensions and needs as many indices"),
    ("y[0, :2] = w[:3]", None, ""),
    (
        "y[:, 1:] = x[:, 2:]",
        ArgumentValueError,
        "rows of different sizes are combined.*sizes that differ by 1",
    ),
    (
        "for i in range(k): y[0] = w[i : i + 1] * x[0]",
        ArgumentTypeError,
        r"only a size that is 1 for certain is broadcast.*may be outside.*loop over range\(x.shape\[0\]\)",
    ),
    (
        "for i in range(w.shape[0]): y[0] = w[i + 1 : i + 2] * x[0]",
        ArgumentTypeError,
        "only a size that is 1 for certain is broadcast",
    ),
    *(
        (line, ArgumentTypeError, "only a size that is 1 for certain is broadcast.*write the element")
        for line in (
            "y[0] = w[int8(w[0]) : int8(w[0]) + 1]",
            "i = int32(w[0]) % x.shape[0]; y[0] = x[1, i : i + 1] * w[:]",
            "i = uint64(w[0]); y[0, 0] = dot(w[::-1], w[i : i + 1] + 1)",
            "i = int64(w[0]); y[0] = max(w[i : i + 1], w[:])",
        )
    ),
    ("i = int8(w[0]); y[0, 0] = sum(w[i : i + 1])", None, ""),
    ("i = int8(w[0]); y[0, i : i + 1] = w[i : i + 1]", None, ""),
    ("i = int8(w[0]); y[0, i : i + 1] = x[1, i : i + 1] * w[i * i : i * i + 1]", None, ""),
    ("y[0] = x[0, ::k]", ArgumentTypeError, "the step of a slice must be a constant"),
    ("y[0] = x[0, 3::-1]", ArgumentTypeError, "a slice that runs backwards has no ends"),
    ("y[0, 0] = sum(x[0, 0])", ArgumentTypeError, r"sum takes a row: x\[0, 0\] is a number"),
    ("y[0, 0] = sum(w[:]) if k > 0 else 1", ArgumentTypeError, "not always computed.*write an if statement"),
    ("x[0] = 1", ArgumentValueError, "the input tensor is written but not in the return value: x"),
    ("t = x[0]; t[1] = 2", ArgumentTypeError, "the input tensor is written but not in the return value: x"),
    ("t = x[0] + 1; t = x[1]", ArgumentTypeError, "t is a row, and is assigned once"),
]


@pytest.mark.parametrize(("line", "kind", "words"), ERRORS, ids=[row[0] for row in ERRORS])
def test_errors_say_what_is_wrong_with_a_row(line, kind, words, tmp_path):
    lines = (
        f"def f(x, w, k: int):\n    y = output_tensor(x.shape, x.dtype)\n    {line}\n    w[0]\n    return y\n"
    )
    lines = lines.replace("    w[0]\n", "    first = w[0]\n")
    file = tmp_path / "kernel.py"
    file.write_text(lines)
    space = {}
    exec(compile(lines, str(file), "exec"), space)
    if kind is None:
        assert parse(space["f"], [("float64", 2), ("float64", 1)], {"k": int}).outputs == ("y",)
        return
    with pytest.raises(kind) as caught:
        parse(space["f"], [("float64", 2), ("float64", 1)], {"k": int})
    assert re.search(words, str(caught.value), re.DOTALL), caught.value


@pytest.mark.parametrize("sizes", [(4, 3, 4), (4, 4, 5), (3, 4, 4)])
def test_rows_of_different_sizes_are_an_error_at_the_call(sizes, operators):
    n, m, k = sizes
    words = r"line \d+: rows of different sizes.*where x.shape\[1\] must be [wb].shape\[0\]"
    with pytest.raises(KernelError, match=words):
        operators[layer_norm](np.ones((2, n)), np.ones(m), np.ones(k))
    with pytest.raises(KernelError, match=words):
        torch.vmap(operators[layer_norm], in_dims=(0, None, None))(
            torch.ones(3, 2, n), torch.ones(m), torch.ones(k)
        )


def test_rows_are_batched(operators):
    x, w = torch.tensor(np.stack([X, X * 2, -X])), torch.tensor(np.stack([V[:4], V[2:6], V[3:]]))
    batched = torch.vmap(operators[layer_norm])(x, w, -w)
    for k in range(3):
        np.testing.assert_allclose(batched[k], operators[layer_norm](x[k], w[k], -w[k]), rtol=1e-12)


def scaled_by(a, b):
    return dot(a, b) * 2


def nested(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = scaled_by(x[i], x[0])
    return y


def test_a_helper_of_a_helper_is_found_in_the_module_of_its_caller():
    np.testing.assert_allclose(polyop.kernel(name="rows::nested")(nested)(X), 2 * (X @ X[0] + 1))


def by_rank(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x.ndim == 2:
            for j in range(x.shape[1]):
                y[i, j] = 2 * x[i, j] if x.dtype == "float32" else 3 * x[i, j]
        elif x.dtype != np.float64 and x.dtype != int64:
            y[i] = x[i] + 1
        else:
            y[i] = -x[i]
    return y


@pytest.mark.parametrize("x", [X, X.astype(np.float32), V, V.astype(np.float32), V.astype(np.int64)])
def test_a_test_of_dtype_or_rank_compiles_one_branch(x):
    result = polyop.kernel(name="rows::by_rank")(by_rank)(x)
    expected = plain(by_rank)(x)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def moving(x):
    y = output_tensor((2,), x.dtype)
    k = 0
    for i in range(2):
        k += i
        row = x[k]
        k = 2
        y[i] = row[0] + sum(row)
        k = 0
    return y


def test_a_named_row_stays_where_it_was_when_its_index_changes():
    np.testing.assert_allclose(polyop.kernel(name="rows::moving")(moving)(X), plain(moving)(X))
