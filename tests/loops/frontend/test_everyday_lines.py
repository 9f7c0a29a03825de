# ruff: noqa: F821 - kernels, whose words are no names here
"""Lines that people from NumPy, Numba, Taichi and CUDA write: each is taken, or refused with what to write.

A line that is taken has the value of the plain Python function, as the interpreter and the compiled code compute
it, for several dtypes. The values of NumPy's own functions are in the rows of ``OF_NUMPY``.
"""

import itertools
import linecache
import math
import re
import types

import ml_dtypes
import numpy as np
import pytest
import torch

import polyop
from polyop.core.errors import PolyopError
from polyop.loops.frontend.parse import parse
from polyop.loops.frontend.plain import plain
from polyop.loops.ir.interpret import interpret

pytestmark = pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")
numpy_2 = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0",
    reason="NumPy 1 promotes Python numbers by their value; a kernel promotes as NumPy 2",
)
numba = types.ModuleType("numba")
numba.prange = range  # Numba is not installed with polyop: its name and its function are enough
REAL, INTEGERS, ALL = ("float32", "float64"), ("int32", "uint8"), ("float32", "float64", "int32", "uint8")
COMPLEX = ("complex64", "complex128")
NUMBER = itertools.count()


def kernel(lines, output="y = output_tensor(x.shape, x.dtype)"):
    """Return the function ``f(x, w)`` with these lines between its output and its return."""
    body = "".join(f"    {line}\n" for line in (output, "m = w.shape[0]", *lines, "return y"))
    text, file = f"def f(x, w):\n{body}", f"<everyday {next(NUMBER)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {"np": np, "math": math, "numba": numba, "prange": numba.prange, "scale": lambda v: v * 2}
    exec(compile(text, file, "exec"), space)
    return space["f"]


def element(text):
    """Return the lines that compute an expression for each i."""
    return "for i in range(x.shape[0]):", f"    y[i] = {text}"


def arrays(dtype):
    values = [3, 1, 4, 1, 5, 0], [2, 7, 1, 8, 2, 8]
    x, w = (np.array(one).astype(dtype) for one in values)
    if x.dtype.kind in "fc" or dtype == "bfloat16":
        x = x - x.dtype.type(2.5)
        x[-1] = -0.0
    if x.dtype.kind == "c":
        x = x + 1j * w
    return [x.astype(dtype), w]


TAKEN = [  # the line, its dtypes
    (element("len(x) + i"), ALL),
    (element("x.size * x.ndim"), ALL),
    (element("abs(x[i]) + np.abs(w[i])"), (*ALL, "float16", "bfloat16")),
    (element("min(x[i], w[i]) + np.minimum(x[i], 2)"), ALL),
    (element("max(x[i], w[i], 2) + np.maximum(x[i], 2)"), ALL),
    (element("sum(x) + x.sum() + np.sum(x[1:])"), (*ALL, *COMPLEX)),
    (element("any(x > 2) + np.any(w > 7) * 2"), ALL),
    (element("all(w > 0) + x.all() * 2"), ALL),
    (element("np.mean(x) + w.mean()"), (*ALL, "float16", "bfloat16", *COMPLEX)),
    (element("np.dot(x, w) + x.dot(w)"), (*ALL, *COMPLEX)),
    (element("x.max() - np.amin(w)"), REAL),
    (element("copysign(x[i], -w[i]) + math.copysign(2, x[i])"), (*REAL, "float16")),
    (element("np.fmod(x[i], 2) + math.fmod(x[i], w[i])"), (*ALL, "float16", "int8")),
    (element("np.mod(x[i], 3) + np.remainder(x[i], w[i])"), (*ALL, "float16", "int8")),
    (element("np.cbrt(x[i])"), (*REAL, "float16")),
    (element("np.gcd(x[i], w[i]) + math.gcd(12, 18, i)"), (*INTEGERS, "int8", "uint64")),
    (element("np.lcm(x[i], w[i]) + round(x[i], 2)"), (*INTEGERS, "int8", "uint64")),
    (element("np.logical_and(x[i] > 0, w[i] > 2) | np.logical_not(x[i])"), (*ALL, *COMPLEX[:0])),
    (element("np.logical_or(x[i], w[i] > 2) + 2 * np.logical_xor(x[i], w[i])"), ALL),
    (element("np.isclose(x[i], w[i]) + 2 * np.isclose(x[i], w[i], atol=2.0, equal_nan=True)"), (*ALL, "float16")),
    (element("math.isclose(x[i], w[i], rel_tol=0.5)"), ALL),
    (element("np.clip(x[i], 0, 2) + np.clip(x[i], a_min=1, a_max=w[i])"), (*ALL, "bfloat16")),
    (element("np.square(x[i])"), (*ALL, "int8", *COMPLEX)),
    (element("np.sign(x[i]) * math.hypot(x[i], w[i])"), REAL),
    (element("np.degrees(x[i]) + np.rad2deg(w[i])"), (*REAL, "int32", "float16")),
    (element("math.radians(x[i]) + np.deg2rad(w[i])"), (*REAL, "int32", "float16")),
    (element("np.log1p(abs(x[i])) + np.float32(x[i])"), REAL),
    (element("math.floor(x[i] / 2) % 3 + math.ceil(x[i] / 2) % 3 + math.trunc(x[i])"), ("float32", "float64", "int32")),
    (element("x[math.floor(w[i] / 3)]"), ALL),
    (element("np.finfo(x.dtype).max / 2 + np.finfo(x.dtype).eps"), (*REAL, "float16", "bfloat16")),
    (element("np.finfo(np.float32).tiny * x[i] + np.finfo('float32').min"), REAL),
    (element("np.iinfo(x.dtype).max - x[i]"), (*INTEGERS, "int8", "uint64")),
    (element("np.iinfo(np.int8).min + int(x[i])"), ("int32",)),
    (element("min(x[i], float('inf')) + max(-math.inf, w[i])"), REAL),
    (element("float('nan') if i > 2 else x[i]"), REAL),
    (element("np.pi * x[i] + math.pi"), (*REAL, *COMPLEX)),
    (element("round(x[i] / 3, 2) + np.round(x[i] / 3, 1)"), (*REAL, "float16")),
    (element("round(x[i], 2) + round(x[i])"), INTEGERS),
    (element("pow(x[i], 2) + x[i] ** 3"), ALL),
    (element("int(x[i]) & 3 | 8 ^ ~int(w[i])"), ("int32", "float32")),
    (element("x[-1] + x[x.shape[0] - 1 - i]"), ALL),
    (element("x[i, ...] * 2"), ALL),
    (element("x[i] if x[i] > 2 else w[i]"), ALL),
    (element("not x[i] or x[i] != w[i]"), ALL),
    (element("x[i] if ~(x[i] > w[i]) else w[i]"), ALL),
    (element("(-1) ** 5 * x[i] + (-1) ** 6 + 0 ** 5"), REAL),
    (element("divmod(x[i], 3)[1] + divmod(i, 4)[0]"), ALL),
    (("for i in range(len(x)):", "    a, b = divmod(x[i], 3)", "    y[i] = a * 10 + b"), (*ALL, "int8")),
    (("a, b, c = x[0:3]", "y[0] = a + b * 2 + c * 3"), (*ALL, *COMPLEX)),
    (("for k in range(3):", "    a, b = x[2 * k : 2 * k + 2]", "    y[k] = a - b"), ALL),
    (("k = 1", "k, b = w[k : k + 2]", "y[0] = k - b"), INTEGERS),
    (("y[:] = x.clip(1, 2) + x.round()",), ALL),
    (("a, b, c, d, e, f = x", "a, b = b, a", "y[0] = a - b + f"), REAL),
    (("a = b = x[0]", "a += 1", "y[0] = a + b"), ALL),
    (("y[0], y[1] = x[1], x[0]",), ALL),
    (("t = np.zeros(x.shape, x.dtype)", *element("t[i] + x[i]")), (*ALL, "bfloat16")),
    (("t = np.zeros(3)", "t[0] = x[0]", "y[0] = t[0] + t[1]"), ALL),
    (("t = np.zeros_like(x)", "t[1:] += x[:-1]", "y[:] = t"), ALL),
    (("t = np.full_like(x, 2)", "y[:] = t * x"), (*ALL, *COMPLEX)),
    (("t = np.full((2, 2), 2.5)", "y[0] = t[0, 1] + t[1, 1]"), REAL),
    (("t = np.ones(len(x), dtype=np.float32)", "y[0] = t[0] + t[1]"), ALL),
    (("t = x.copy()", "t[0] = 5", "y[0] = x[0] + t[0] + t[1]"), ALL),
    (("t = np.empty((2, 2), int)", "t[0, 0] = 3", "y[0] = t[0, 0] + t[1, 1]"), ALL),
    (("for i in range(len(x)):", "    t = np.zeros(2, x.dtype)", "    t[0] += x[i]", "    y[i] = t[0] + t[1]"), ALL),
    (("for i in prange(x.shape[0]):", "    y[i] = x[i] * 2"), ALL),
    (("for i in numba.prange(1, len(x)):", "    y[i] = x[i] * 2"), ALL),
    (("best = float('-inf')", "for v in x:", "    if v > best:", "        best = v", "y[0] = best"), REAL),
    (("y[:] += x", "y[1:] *= 2"), (*ALL, *COMPLEX)),
    (("for i, (a, b) in enumerate(zip(x, w)):", "    y[i] = a * b"), ALL),
    (("i = 0", "while True:", "    if i == 3:", "        break", "    y[i] = x[i]", "    i += 1"), ALL),
    (('"""A docstring."""', "pass", "for i in range(0, len(x), 2):", "    y[i] = i"), ALL),
]  # fmt: skip
OUTPUTS = [  # a first line, which makes the output
    "y = np.zeros_like(x)",
    "y = np.zeros(x.shape, x.dtype)",
    "y = np.zeros(len(x), np.int8)",
    "y = np.zeros((2, x.shape[0]), dtype='float64')",
    "y = np.empty(x.shape, x.dtype)",
    "y = np.empty_like(x, dtype=np.float64)",
    "y = np.full(x.shape, 7, x.dtype)",
    "y = np.full_like(x, x[0])",
    "y = np.ones((2, len(x)))",
    "y = x.copy()",
    "y = np.copy(x)",
]
REFUSED = [  # a line, words of the error
    ("y[:] = x.T", "swap the indices"),
    ("assert x[0] > 0", "check arguments before you call"),
    ("raise ValueError(f'{x}')", "compiled code raises no errors"),
    ("print(x[0])", "compiled code prints nothing"),
    ("y[0] = x[0] is None", "compare numbers with == or !="),
    ("for i in range(3): pass\n    else: y[0] = 1", "set a flag before the break"),
    ("y[0] = (t := x[0])", "write the assignment in a separate line"),
    ("y[0] = scale(x[0])", "a lambda is not compiled|def"),
    ("w = [v * 2 for v in x]", "write for loops over the elements"),
    ("y[0] = any(v > 0 for v in x)", "write for loops over the elements"),
    ("y[0] = pow(2, 3, 5)", r"write pow\(x, y\) % n"),
    ("y[0] = x[i][j]", "there is no variable"),
    ("y[0] = math.remainder(x[0], 2.0)", "words of the language"),
    ("y[0] = np.sum(x, axis=0)", "takes no keyword arguments"),
    ("y[0] = np.zeros(3)[0]", r"make it in a line of its own: t = np.zeros\(shape, dtype\)"),
    ("t = np.full(3, x[0])", r"t = np.full\(shape, value, dtype\)"),
    ("t = np.zeros(3, order='F')", "make it in a line of its own"),
    ("a, b = x[:, 0]", "more indices than there are dimensions"),
    ("y[0], y[1] = x[1:3]", "One statement with multiple assignments"),
    ("y[:] = math.floor(x)", "write np.floor, which takes rows"),
    ("y[0] = np.finfo(x.dtype)", r"write finfo\(x.dtype\).max"),
    ("y[0] = np.iinfo(x.dtype).max", "iinfo of float32 has no number called max"),
    ("y[0] = np.log10(x[0])", r"write log\(x\) / log\(10.0\)"),
    ("y[0] = np.argmax(x)", "write a loop with an if"),
    ("y[0] = x[0].astype(np.float64)", r"write float64\(x\[0\]\)"),
    ("global G", "return the value in a tensor"),
    ("y[0] = {1: 2}[1]", "a table of numbers is a list"),
]


def text_of(value):
    return "; ".join(value[0] if value[0][:3] != "for" or len(value[0]) != 2 else value[0][1:]).strip()[:60]


def check(function, dtype, tolerance=0.0, compiled=True):
    """Compare the interpreter and the compiled code with plain Python."""
    inputs = arrays(dtype)
    expected = plain(function)(*(one.copy() for one in inputs))
    (interpreted,) = interpret(parse(function, [(dtype, 1)] * 2, {}), [one.copy() for one in inputs], {})
    results = [interpreted]
    if compiled:
        results.append(polyop.kernel(name=f"everyday::line{next(NUMBER)}")(function)(*inputs))
    for result in results:
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        same, rough = (one.astype(complex if one.dtype.kind == "c" else float) for one in (result, expected))
        np.testing.assert_allclose(same, rough, rtol=tolerance, atol=tolerance)


def few_digits(dtype):
    """Return what sums and functions may differ by."""
    return 0.0 if np.dtype(dtype).kind in "iu" else 8 * float(ml_dtypes.finfo(dtype).eps)


def test_there_are_66_lines_at_least():
    assert len(TAKEN) >= 66
    assert len({str(row[0]) for row in TAKEN}) == len(TAKEN)


@numpy_2
@pytest.mark.parametrize(("lines", "dtypes"), TAKEN, ids=map(text_of, TAKEN))
def test_a_line_has_the_value_of_the_plain_function(lines, dtypes):
    function = kernel(lines)
    chosen = sum(map(len, lines)) % len(dtypes)  # one of them is compiled: test_targets.py has the others
    for number, dtype in enumerate(dtypes):
        check(function, dtype, few_digits(dtype), compiled=number == chosen)


@pytest.mark.slow(2)
@numpy_2
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_function_that_makes_an_array_makes_an_output(output):
    lines = ("y[0] = x[1]",) if "2," not in output else ("y[1, 0] = x[1]",)
    check(kernel(lines, output), "float32")


@pytest.mark.parametrize(("line", "words"), REFUSED)
def test_a_line_that_is_refused_says_what_to_write(line, words):
    with pytest.raises(PolyopError) as caught:
        parse(kernel((line,)), [("float32", 1)] * 2, {})
    assert re.search(words, str(caught.value)), caught.value


def smooth(x, w):
    y = np.zeros((7, x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        y[0, i] = copysign(x[i], w[i])
        y[1, i] = np.fmod(x[i], w[i]) + np.mod(x[i], w[i])
        y[2, i] = np.cbrt(x[i])
        y[3, i] = np.clip(x[i], -1.0, w[i])
        y[4, i] = np.square(x[i]) + np.degrees(x[i]) + math.radians(w[i])
        y[5, i] = np.isclose(x[i], w[i]) * x[i] + round(x[i], 1) + math.floor(w[i])
    a, b, c = x[0:3]
    _, r = divmod(x[1], 0.7)
    y[6, 0] = a * np.mean(x) + b * c + r
    return y


@pytest.mark.slow
def test_gradients_tangents_and_batches():
    operator = polyop.kernel(name="everyday::smooth")(smooth)
    x, w = np.array([2.3, -1.7, 0.4, 5.2, -0.3]), np.array([1.1, 0.7, -0.6, 1.9, -2.2])
    tensors = [torch.tensor(one, requires_grad=True) for one in (x, w)]
    assert torch.autograd.gradcheck(operator, tensors, check_forward_ad=True)
    rows = np.stack([x, x + 0.1, -x]), np.stack([w, w * 2, -w])
    batched = torch.func.vmap(operator)(*map(torch.tensor, rows))
    np.testing.assert_allclose(batched, [plain(smooth)(*row) for row in zip(*rows, strict=True)], rtol=1e-12)


KINKS = [  # of x and w, the points, the derivatives by x: at a tie as those of abs, max and min
    ("copysign(x[i], w[i])", [(0.0, -1.0), (-0.0, 1.0), (2.0, -0.0), (-2.0, -np.inf)], [0, 0, -1, 1]),
    ("np.clip(x[i], 0.0, 2.0)", [(0.0, 0), (2.0, 0), (-1e-9, 0), (3.0, 0)], [1, 1, 0, 0]),
    ("np.fmod(x[i], w[i])", [(4.0, 2.0), (-0.0, 2.0), (5.0, np.inf)], [1, 1, 1]),
    ("np.cbrt(x[i])", [(0.0, 0), (-8.0, 0), (1e300, 0)], [np.inf, 1 / 12, 1e-200 / 3]),
    ("math.floor(x[i]) + round(x[i], 1)", [(1.0, 0), (0.5, 0)], [0, 0]),
]


@pytest.mark.slow(1)
@pytest.mark.parametrize(("text", "points", "slopes"), KINKS, ids=[row[0] for row in KINKS])
def test_derivatives_at_kinks(text, points, slopes):
    operator = polyop.kernel(name=f"everyday::kink{next(NUMBER)}")(kernel(element(text)))
    x, w = (torch.tensor(one, dtype=torch.float64, requires_grad=True) for one in zip(*points, strict=True))
    (slope,) = torch.autograd.grad(operator(x, w).sum(), (x,))
    np.testing.assert_allclose(slope, slopes, rtol=1e-12)


EDGES = {"int8": 1, "uint8": 1, "int32": 4, "int64": 8, "uint64": 8}


def divisors(a, b):
    y = np.empty((5, a.shape[0]), a.dtype)
    for i in prange(a.shape[0]):
        y[0, i] = np.gcd(a[i], b[i])
        y[1, i] = np.lcm(a[i], b[i])
        y[2, i] = np.fmod(a[i], b[i])
        y[3, i] = np.mod(a[i], b[i])
        y[4, i] = np.square(a[i])
    return y


@pytest.mark.slow(1)
@pytest.mark.parametrize("dtype", EDGES)
def test_integers_at_the_ends_of_their_dtypes_are_numpys(dtype):
    """Of 8 bits all pairs; gcd(-128, 0), a remainder of -128 and -1, and by zero are among them."""
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2, 3, 6, 12, info.max // 3 * 2]
    ends = range(info.min, info.max + 1) if info.bits == 8 else ends + [-1, -2, -6] * (info.min < 0)
    a, b = (one.ravel() for one in np.meshgrid(*[np.array(list(ends), dtype)] * 2))
    with np.errstate(all="ignore"):
        expected = [np.gcd(a, b), np.lcm(a, b), np.fmod(a, b), np.remainder(a, b), a * a]
    np.testing.assert_array_equal(polyop.kernel(name=f"everyday::of_{dtype}")(divisors)(a, b), expected)


def signs(a, b):
    y = np.empty((5, a.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        y[0, i] = np.copysign(a[i], b[i])
        y[1, i] = np.fmod(a[i], b[i])
        y[2, i] = np.cbrt(a[i])
        y[3, i] = np.isclose(a[i], b[i])
        y[4, i] = math.isclose(a[i], b[i])
    return y


@pytest.mark.slow(1)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_at_zeros_infinities_and_nan_are_numpys(dtype):
    values = [
        0.0,
        -0.0,
        1,
        -1,
        2.5,
        -2.5,
        np.inf,
        -np.inf,
        np.nan,
        -np.nan,
        7,
        1e-5,
        1.00001,
        1.0000001,
        65000,
    ]
    a, b = (one.ravel() for one in np.meshgrid(*[np.array(values, dtype)] * 2))
    result = polyop.kernel(name=f"everyday::signs_of_{dtype}")(signs)(a, b)
    with np.errstate(all="ignore"):
        expected = [
            np.copysign(a, b),
            np.fmod(a, b),
            np.cbrt(a),
            np.isclose(a, b),
            list(map(math.isclose, a, b)),
        ]
    expected = np.array(expected, dtype)
    np.testing.assert_allclose(result, expected, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(
        np.signbit(result) | np.isnan(expected), np.signbit(expected) | np.isnan(expected)
    )


def pairs(x, w):
    y = np.zeros_like(x)
    for k in range(w.shape[0]):
        a, b = x[k : w[k]]
        y[k] = a - b
    return y


@pytest.mark.parametrize("ends", [(2, 3, 4), (3, 3, 4), (2, 2, 4), (2, 3, 9)])
def test_the_number_of_elements_is_checked_where_data_decide(ends):
    operator = polyop.kernel(name=f"everyday::pairs{next(NUMBER)}")(pairs)
    x, w = np.arange(4.0) ** 2, np.array(ends)
    if ends[:2] == (2, 3):  # a slice that ends behind the tensor is shorter, as in Python
        np.testing.assert_array_equal(operator(x, w), plain(pairs)(x, w))
        return
    with pytest.raises(ValueError, match="to unpack"):
        plain(pairs)(x, w)
    with pytest.raises((PolyopError, IndexError), match="another number of elements than there are names"):
        operator(x, w)


def running(x):
    y = np.zeros_like(x)
    for i in numba.prange(1, x.shape[0]):
        y[i] = y[i - 1] + x[i]
    return y


def test_explain_says_that_prange_is_a_hint(capsys):
    from polyop.loops.ir.grammar import statements
    from polyop.loops.loop_tree import why_serial
    from polyop.loops.pipeline import schedule

    program = schedule(parse(running, [("float64", 1)], {}))
    (loop,) = (one for one in statements(program.kernel.body) if getattr(one, "hint", "") == "prange")
    assert re.search("prange is a range here: threads share what is proved", why_serial(program, loop))


@polyop.kernel
def of_bools(x, y):
    z = output_tensor((4,), "int64")
    z[0] = np.gcd(x[0], y[0])
    z[1] = np.lcm(x[0], y[0])
    z[2] = round(x[0], 2)
    z[3] = np.sign(x[0])
    return z


@polyop.kernel
def of_a_bool(x, y):
    z = output_tensor((2,), "int64")
    z[0] = np.gcd(x[0], y[0]) * y[1]
    z[1] = np.lcm(x[0], y[1])
    return z


@pytest.mark.parametrize("dtype", ["uint8", "uint64", "int16"])
def test_a_bool_has_the_dtype_of_the_other_integer(dtype):
    x, y = np.array([True]), np.array([200, 200]).astype(dtype)
    np.testing.assert_array_equal(of_a_bool(x, y), of_a_bool.python(x, y))


@pytest.mark.parametrize("x", [True, False])
@pytest.mark.parametrize("y", [True, False])
def test_bools_are_integers_for_functions_of_integers(x, y):
    for function in (of_bools, of_bools.python):
        result = function(np.array([x]), np.array([y]))
        assert result.tolist() == [math.gcd(x, y), math.lcm(x, y), round(x, 2), int(x)]
