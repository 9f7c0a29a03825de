# ruff: noqa: F821, RET504 - programs in the language, whose words are no names here
"""The interpreter of the IR gives the results of the function run as plain Python on NumPy arrays."""

import inspect
import math
import sys

import ml_dtypes
import numpy as np
import pytest

from loop_samples import everyday
from polyop.core.errors import ArgumentValueError
from polyop.loops.frontend.language import BYTE_FLOATS, NUMBERS, WORDS
from polyop.loops.frontend.parse import outline, parse
from polyop.loops.frontend.plain import plain
from polyop.loops.ir.grammar import INT, Buffer, Const, Kernel, Store, Type
from polyop.loops.ir.interpret import interpret
from polyop.loops.ir.verify import violations

numpy_2 = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0",
    reason="NumPy 1 promotes Python numbers by their value; a kernel promotes as NumPy 2",
)
SCALE = 3
SHAPE = (2, 3)
LAST = (3,)


def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i, j, k in grid((a.shape[0], b.shape[1], a.shape[1])):
        c[i, j] += a[i, k] * b[k, j]
    return c


def softmax(x):
    """Row by row, with scalars that are assigned anew in each row."""
    n, m = x.shape
    y = output_tensor(x.shape, x.dtype)
    for i in parallel(n):
        top = x[i, 0]
        for j in range(1, m):
            top = max(top, x[i, j])
        total = 0.0
        for j in reduce(m):
            y[i, j] = exp(x[i, j] - top)
            total += y[i, j]
        for j in vectorize(m):
            y[i, j] /= total
    return y


def stencil(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            y[i, j] = 0.25 * (x[i, j - 1] + x[i, j + 1] + x[i - 1, j] + x[i + 1, j])
    return y


def in_place(a):
    for arg in grid(a.shape):
        a[arg] *= 2
    return a


def grid_elements(a):
    y = output_tensor((a.shape[1], a.shape[0]), a.dtype)
    for arg in grid(a.shape):
        y[arg[1], arg[0]] = a[arg] + a[arg[0], arg[-1]]
    return y


def attributes(a, k, flag=True, j=1):
    y = output_tensor((a.shape[0], j + 1), a.dtype)
    for i in range(a.shape[0]):
        y[i, j] = a[i, 0] * k if flag and k > 0 else a[i, 0] - k
    return y


def two_outputs(a):
    s = output_tensor(a.shape, a.dtype)
    p = output_tensor((a.shape[0],), "float64")
    for i in range(a.shape[0]):
        p[i] = 1
        for j in range(a.shape[1]):
            s[i, j] = a[i, j] + a[i, j]
            p[i] = a[i, j] * p[i]
    return s, p


def backwards(a):
    y = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0] - 1, -1, -1):
        for j in range(a.shape[1] - 1, 0, -2):
            y[i, j] = a[i, j] - i
        for j in range(0, a.shape[1], 3):
            y[i, j] = a[i, j] + j
    return y


def triangle(a):
    y = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(min(i + 1, a.shape[1])):
            y[i, j] = a[i, j]
    return y


def branches(a):
    y = output_tensor(a.shape, a.dtype)
    for i, j in grid(a.shape):
        if a[i, j] > 1:
            t = a[i, j]
        elif -1 < a[i, j] <= 1 and i != j:
            t = a[i, j] * 3
        else:
            t = 0
        y[i, j] = t
    return y


def logic(a):
    y = output_tensor(a.shape, "bool")
    for i, j in grid(a.shape):
        found = a[i, j] > 0 or i < j
        y[i, j] = (found and a[i, j] != 2) | (i == j) ^ (a[i, j] < 0)
    return y


def logic_of_numbers(a):
    y = output_tensor(a.shape, a.dtype)
    for i, j in grid(a.shape):
        y[i, j] = a[i, j] and (j or a[i, 0])
        if a[i, j] and j:
            y[i, j] += 1
    return y


def arithmetic(a):
    y = output_tensor((a.shape[0], a.shape[1], 5), "float64")
    for i, j in grid(a.shape):
        y[i, j, 0] = a[i, j] // 3
        y[i, j, 1] = a[i, j] % 3
        y[i, j, 2] = -a[i, j] / 3
        y[i, j, 3] = (j - 3) // 2 + (j - 3) % 2
        y[i, j, 4] = a[i, j] ** 2 + 2**j
    return y


def augmented(a):
    for i, j in grid(a.shape):
        a[i, j] += 1
        a[i, j] -= j
        a[i, j] *= 2
        a[i, j] //= 3
        a[i, j] %= 5
        a[i, j] **= 2
        a[i, j] /= 3
        n = i
        n += 2
        n *= 3
        n &= 7
        n |= 8
        n ^= 3
        a[i, j] += n
    return a


def shapes(a):
    n = a.shape[0]
    s = a.shape
    t = allocate(s + LAST, a.dtype)
    y = output_tensor((len(a), t.shape[1] * 2), t.dtype)
    for i in range(n):
        for j in range(s[1]):
            t[i, j, -1] = a[i, j]
            y[i, 2 * j] = t[i, j, 2] + len(t) + n
    return y


def outside(a):
    y = output_tensor(SHAPE, np.float64)
    for i, j in grid(SHAPE):
        y[i, j] = SCALE * math.pi + np.inf * (i + 1)
    return y


def siblings(a):
    y = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        t = a[i, 0]
        for j in range(a.shape[1]):
            y[i, j] = t
    for j in range(a.shape[1]):
        t = j
        for i in range(a.shape[0]):
            y[i][j] += t
    return y


def moving_bound(a):
    y = output_tensor(a.shape, a.dtype)
    n = 1
    for i in range(a.shape[0]):
        for j in range(n):
            n = min(n + 1, a.shape[1])
            y[i, j] += 1
        for j in range(n - 1, -1, -1):
            n -= 1
            y[i, j] += a[i, j]
        n = max(n, 1)
    return y


def ignored(a):
    y = output_tensor(a.shape, a.dtype)
    with attr("tile", 3):
        for i in serial(a.shape[0]):
            with block_realize(y):
                for j in serial(0, a.shape[1], 1):
                    y[i, j] = a[i, j]
    return y


def typed(a):
    y = output_tensor(a.shape, float64)
    for i, j in grid(a.shape):
        t: float = 0.5
        t = t + float32(a[i, j])
        y[i, j] = int16(t) + float64(int8(a[i, j])) + int(t) + float(j) + bool_(a[i, j])
    return y


def rounded(a):
    y = output_tensor((a.shape[0], a.shape[1], 7), a.dtype)
    for i, j in grid(a.shape):
        h = a[i, j]
        y[i, j, 0] = floor(h) + ceil(h) + trunc(h)
        y[i, j, 1] = round(h) + abs(stop_gradient(h)) + sign(h)
        y[i, j, 2] = max(h, 1, a[i, 0]) - min(h, j)
        y[i, j, 3] = isnan(h) + isinf(h) * 2
        y[i, j, 4] = isfinite(h)
        y[i, j, 5] = ceil_div(i + 5, j + 1)
        y[i, j, 6] = power(h, 2) + pow(h, 3)
    return y


def functions(a):
    y = output_tensor((a.shape[0], a.shape[1], 11), "float64")
    for i, j in grid(a.shape):
        h = abs(a[i, j])
        y[i, j, 8] = (
            exp2(h) + log1p(h) + log2(h) + sigmoid(h) + erfc(h) + lgamma(h) + digamma(h + 1) + trigamma(h + 1)
        )
        y[i, j, 9] = sinh(h) + cosh(h) + tan(h)
        y[i, j, 10] = asin(sigmoid(h)) + acos(sigmoid(-h))
        y[i, j, 0] = exp(h) + expm1(h)
        y[i, j, 1] = log(h) + with_gradient(sqrt(h), exp(h), 2, sin(h), 0.5) + rsqrt(h)
        y[i, j, 2] = tanh(h)
        y[i, j, 3] = erf(h)
        y[i, j, 4] = sin(h) + cos(h)
        y[i, j, 5] = atan(h)
        y[i, j, 6] = atan2(a[i, j], a[i, 0]) + hypot(a[i, j], h)
        y[i, j, 7] = sqrt(j) + exp(0.5) + tanh(i + 1)
    return y


def bits(a):
    y = output_tensor(a.shape, a.dtype)
    for i, j in grid(a.shape):
        y[i, j] = (a[i, j] & 6) | ~a[i, j] & (j ^ 1) | (a[i, j] >> 2) ^ (a[i, j] << (j & 3))
    return y


def rows(a):
    """A tensor declared in a loop starts as zeros each time; two loops may use the same name."""
    y = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        row = allocate((a.shape[1], 2), a.dtype)
        for j in range(a.shape[1]):
            row[j, i % 2] += a[i, j]
            y[i, j] = row[j, 0] - row[j, 1]
        if a[i, 0] > 0:
            row_0 = allocate((), "float64")
            row_0[()] += 1
            y[i, 0] = row_0
    for i in range(a.shape[0]):
        row = allocate((3,), "int8")
        row[i % 3] += 1
        y[i, 0] += row[0]
    return y


def sums_of_rows(a):
    y = output_tensor((a.shape[0], 5), "float64")
    for i in range(a.shape[0]):
        y[i, 0] = sum(a[i])
        y[i, 1] = prod(a[i, :2])
        y[i, 2] = dot(a[i], a[0])
        y[i, 3] = max(a[i]) - min(a[i, 1:])
        y[i, 4] = sum(where(a[i] > 1, a[i], 0))
    return y


PROGRAMS = [
    (matmul, {}), (softmax, {}), (stencil, {}), (in_place, {}), (grid_elements, {}), (two_outputs, {}),
    (attributes, {"k": 2}), (attributes, {"k": 0.5, "flag": False, "j": 2}), (backwards, {}), (triangle, {}),
    (branches, {}), (logic, {}), (logic_of_numbers, {}), (arithmetic, {}), (augmented, {}), (shapes, {}),
    (outside, {}), (siblings, {}), (moving_bound, {}), (ignored, {}), (typed, {}), (rounded, {}),
    (functions, {}), (rows, {}), (sums_of_rows, {}), (everyday.words, {}), (everyday.words_of_rows, {}),
]  # fmt: skip
DTYPES = (*NUMBERS, *BYTE_FLOATS)
NUMERIC = [name for name in DTYPES if name != "bool"]


def values(name, shape, seed=0):
    """Small numbers, negative ones too where the dtype has them."""
    random = np.random.default_rng(seed)
    low = 1 if name == "float8_e8m0fnu" else 0 if name.startswith(("u", "bool")) else -4
    return random.integers(low, 5, shape).astype(np.dtype(getattr(ml_dtypes, name, name)))


def both(function, arrays, attributes=None):
    """Return the outputs of the plain function and of the interpreter."""
    attributes = attributes or {}
    expected = plain(function)(*(a.copy() for a in arrays), **attributes)
    kernel = parse(function, [(str(a.dtype), a.ndim) for a in arrays], attributes)
    assert violations(kernel) == []
    copies = [a.copy() for a in arrays]
    results = interpret(kernel, arrays, {**outline(function).defaults, **attributes})
    for one, other in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(one, other, err_msg="an input was changed")
    return expected if isinstance(expected, tuple) else (expected,), results


def agree(function, arrays, attributes=None):
    for one, other in zip(*both(function, arrays, attributes), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.astype("float64"), other.astype("float64"))


@pytest.mark.slow(60)
@numpy_2
@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize(("function", "attributes"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_the_interpreter_is_the_plain_function(function, attributes, name):
    second = [values(name, (4, 2), 1)] if function is matmul else []
    agree(function, [values(name, (3, 4)), *second], attributes)


@numpy_2
@pytest.mark.parametrize("name", ["int8", "int64", "uint8", "uint32"])
def test_bit_operators(name):
    agree(bits, [values(name, (3, 4))])


def gather(x, index):
    y = output_tensor((index.shape[0], x.shape[1]), x.dtype)
    for i in range(index.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[index[i], j]
    return y


def histogram(x, count):
    for i in range(x.shape[0]):
        count[int(x[i])] += 1
    return count


def sparse(start, column, value, x):
    y = output_tensor((start.shape[0] - 1,), value.dtype)
    for i in range(len(y)):
        for k in range(start[i], start[i + 1]):
            y[i] += value[k] * x[column[k]]
    return y


def scalar_tensors(a, b):
    y = output_tensor((), a.dtype)
    y[()] = a + b[()] * 2
    return y


def largest(x):
    y = output_tensor((2,), x.dtype)
    y[0] = x[0]
    low = x[0]
    for i in range(1, x.shape[0]):
        y[0] = max(y[0], x[i])
        low = min(low, x[i])
    y[1] = low
    return y


@numpy_2
def test_indirect_indices_wrap_as_in_numpy():
    agree(gather, [values("float32", (4, 3)), np.array([3, -1, 0, -4, 1], np.int32)])
    agree(histogram, [np.array([0.0, 2.9, -1.0]), np.zeros(4, np.int16)])
    start, column = np.array([0, 2, 2, 3]), np.array([1, 0, 2], np.uint8)
    agree(sparse, [start, column, values("float32", (3,)), values("float32", (3,), 1)])


@numpy_2
@pytest.mark.parametrize("name", DTYPES)
def test_tensors_without_dimensions(name):
    agree(scalar_tensors, [values(name, ()), values(name, (), 1)])


def test_a_nan_wins_in_max_and_min():
    for position in range(3):
        x = np.array([1.0, 5.0, -3.0])
        x[position] = np.nan
        expected, results = both(largest, [x])
        assert np.isnan(expected[0]).all() and np.isnan(results[0]).all()


@numpy_2
@pytest.mark.parametrize("function", [matmul, softmax, stencil, in_place, backwards, triangle])
def test_empty_tensors(function):
    for shape in ((0, 3), (1, 1)) if function is softmax else ((0, 3), (3, 0), (1, 1)):
        second = [values("float32", (shape[1], 2))] if function is matmul else []
        agree(function, [values("float32", shape), *second])


def off_by_one(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i + 1]
    return y


def test_an_index_out_of_range_names_the_buffer_the_index_and_the_line():
    kernel = parse(off_by_one, [("float32", 1)], {})
    line = inspect.getsourcelines(off_by_one)[1] + 3
    text = rf"x\[3\] is out of range: its shape is \(3,\)\n  at .*test_interpret.py:{line}\n    y\[i\] = x\[i \+ 1\]"
    with pytest.raises(IndexError, match=text):
        interpret(kernel, [np.ones(3, np.float32)])


def negative_size(x):
    y = output_tensor((x.shape[0] - 2,), x.dtype)
    return y


def test_a_negative_size_and_a_wrong_input_are_errors():
    kernel = parse(negative_size, [("float32", 1)], {})
    with pytest.raises(
        ArgumentValueError, match=r"negative_size: y: a size cannot be negative, but got \(-1,\)"
    ):
        interpret(kernel, [np.ones(1, np.float32)])
    with pytest.raises(
        ArgumentValueError, match="input x must be float32 with 1 dimensions, but got float64"
    ):
        interpret(kernel, [np.ones(1)])


def test_a_buffer_that_is_not_zeroed_starts_with_rubbish():
    for name, expected in (("float16", math.nan), ("bfloat16", math.nan), ("int8", 101), ("bool", True)):
        y = Buffer("y", name, (Const(2, INT),), "output", zeroed=False)
        store = Store("y", (Const(0, INT),), Const(0, Type(name)))
        (result,) = interpret(Kernel("f", (), {}, {"y": y}, ("y",), (store,)), [])
        np.testing.assert_array_equal(result.astype(float), [0, expected])


@numpy_2
def test_and_or_and_select_evaluate_only_what_they_need():
    def safe(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i - 1] if i > 0 and x[i - 1] > 0 else 0
            y[i] += 1 if i + 1 == x.shape[0] or x[i + 1] > 0 else 2
        return y

    agree(safe, [values("int32", (5,))])


ELSEWHERE = ("cast", "random", "complex")
"""Kinds of words that test_language.py, test_random_numbers.py and test_complex.py run."""


def test_every_word_of_mathematics_is_in_a_program():
    text = "".join(inspect.getsource(f) for f, _ in PROGRAMS)
    missing = [name for name, row in WORDS.items() if row.kind not in ELSEWHERE and f"{name}(" not in text]
    assert not missing, missing


def test_the_words_are_not_names_of_this_module():
    """The words are nowhere in this module: plain() has not put them there."""
    assert not {"output_tensor", "grid", "erf"} & set(vars(sys.modules[__name__]))
