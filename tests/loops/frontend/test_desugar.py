# ruff: noqa: F821 - kernels, whose words are no names here
"""Helpers, exits, iterators and assignments: each kernel beside the same function in plain Python."""

import math
import re

import numpy as np
import pytest

import polyop
from polyop.core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from polyop.loops.frontend.parse import parse, run_static_checks
from polyop.loops.frontend.plain import plain
from polyop.loops.ir.interpret import interpret

torch = pytest.importorskip("torch", reason="gradients are compared with finite differences by PyTorch")
HALF = np.float32(0.5)
RADII = (1, 2, 3)


def squared(v):
    return v * v


def clamped(v, high, low=0.0):
    """A helper with a default, and two early returns."""
    if v > high:
        return high
    if v < low:
        return low
    return v


def sum_and_difference(a, b):
    total = a + b
    return total, a - b


def first_above(x, limit):
    for i in range(x.shape[0]):
        if x[i] > limit:
            return i
    return -1


def norm(v, w):
    return math.sqrt(squared(v) + squared(w))


def halved(v):
    v *= HALF
    return v


def add_row(y, i, v):
    for j in range(y.shape[1]):
        y[i, j] += v


def calls_itself(v):
    return calls_itself(v - 1) if v > 0 else v


def returns_nothing(v):
    v = v + 1


def reads_an_array(v):
    return v + TABLE[0]


TABLE = np.ones(3)


def expression(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = norm(x[i], 2.0) + np.maximum(x[i], 0) * np.exp(-x[i]) + halved(x[i])
    return y


def branches(x, high: float):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = clamped(x[i], high) + clamped(high=0.5, v=x[i], low=-0.5)
    return y


def lazily(x):
    y = output_tensor(x.shape, x.dtype)
    n = x.shape[0]
    for i in range(n):
        y[i] = clamped(x[i + 1], 0.5) if i + 1 < n else 1.0
        if i > 0 and clamped(x[i - 1], 1.0) > 0.2:
            y[i] += 1
    return y


def swapped(x):
    y = output_tensor(x.shape, x.dtype)
    n, m = x.shape[0], 2
    for i in range(n):
        a, b = sum_and_difference(x[i], m)
        a, b = b, a
        c = d = a * b
        y[i] = a + c - d * 0.5
    return y


def searched(x, limit: float):
    y = output_tensor((2,), "int64")
    y[0] = first_above(x, limit)
    y[1] = x.ndim * 100 + x.size
    return y


def rows_added(x):
    y = output_tensor((x.shape[0], 3), x.dtype)
    for i in range(x.shape[0]):
        add_row(y, i, x[i])
    return y


def skipping(x, limit: float):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            if x[i, j] > limit:
                break
            if x[i, j] < 0:
                if x[i, j] < -1:
                    total -= 1
                    continue
                total += x[i, j] * 2
            total += x[i, j] * x[i, j]
        y[i] = total
    return y


def two_levels(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(3):
                if x[i, j] > k:
                    break
                y[i] += x[i, j]
            if y[i] > 2:
                break
    return y


def early(x, step: int):
    y = output_tensor(x.shape, x.dtype)
    if x.shape[0] < 3:
        return y
    for i in range(0, x.shape[0], step):
        y[i] = x[i] * 2
        if x[i] > 1:
            return y
    for i in range(x.shape[0] - 1, 0, -step):
        y[i] += 1
    return y


def halving(x):
    y = output_tensor(x.shape, "int64")
    for i in range(x.shape[0]):
        v, n = abs(x[i]), 0
        while v > 0.01:
            v /= 2
            n += 1
            if n > 20:
                break
        y[i] = n
    return y


def newton(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        root, target = 1.0, abs(x[i]) + 1
        while True:
            better = 0.5 * (root + target / root)
            if abs(better - root) < 1e-9:
                break
            root = better
        y[i] = root
    return y


def bounded_newton(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        root, target = 1.0, x[i] * x[i] + 1
        for _ in range(40):
            better = 0.5 * (root + target / root)
            done = abs(better - root) < 1e-12
            root = better
            if done:
                break
        y[i] = root
    return y


def counted(x):
    y = output_tensor(x.shape, x.dtype)
    for i, v in enumerate(x):
        y[i] = v * i
    for i, k in enumerate(range(2, x.shape[0]), 1):
        y[i] += k
    for v, w, k in zip(x, reversed(range(x.shape[0])), range(1, 100, 3), strict=False):
        y[w] += v * k
    return y


def unrolled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(3, x.shape[0] - 3):
        for r in RADII:
            left = x[i - r]
            y[i] += left * r
        for k, w in enumerate([0.25, 0.5, 0.25]):
            y[i] += w * x[i + k - 1]
        for k in reversed((1, 2)):
            if x[i] > k:
                break
            y[i] += k
    return y


V = np.array([0.3, -1.2, 2.4, 0.15, 0.9, 1.7, -0.4, 0.05, 3.1])
M = np.array([[0.5, 1.5, -0.4, 3.2], [-1.5, 0.2, -0.1, 0.6], [0.1, 0.2, 0.3, 2.5]])
CASES = [  # a kernel, its arguments
    (expression, (V,)),
    (expression, (V.astype(np.float32),)),
    (branches, (V, 1.0)),
    (lazily, (V,)),
    (swapped, (V,)),
    (searched, (V, 2.0)),
    (searched, (V, 9.0)),
    (rows_added, (V,)),
    (skipping, (M, 2.0)),
    (two_levels, (M,)),
    (early, (V[:2], 1)),
    (early, (V, 2)),
    (early, (V, 5)),
    (early, (V[3:5].repeat(4), 3)),
    (halving, (V,)),
    (newton, (V,)),
    (bounded_newton, (V,)),
    (counted, (V,)),
    (unrolled, (V,)),
]
DIFFERENTIABLE = (
    expression,
    branches,
    lazily,
    swapped,
    rows_added,
    skipping,
    two_levels,
    early,
    counted,
    unrolled,
)


def named(case):
    return f"{case[0].__name__}-{'-'.join(str(getattr(a, 'shape', a)) for a in case[1])}"


@pytest.fixture(scope="session")
def operators():
    return {function: polyop.kernel(name=f"desugar::{function.__name__}")(function) for function, _ in CASES}


@pytest.mark.slow(9)
@pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")
@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_kernel_does_what_python_does(case, operators):
    function, (x, *numbers) = case
    expected = plain(function)(x, *numbers)
    names = list(function.__annotations__)
    attributes = dict(zip(names, numbers, strict=True))
    kernel = parse(function, [(str(x.dtype), x.ndim)], attributes)
    (interpreted,) = interpret(kernel, [x], attributes)
    compiled = operators[function](x, *numbers)
    for result in (interpreted, compiled):
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-12 if x.dtype == np.float64 else 1e-6)


@pytest.mark.slow(3)
@pytest.mark.filterwarnings("ignore::polyop.UninitialisedWarning")
@pytest.mark.parametrize(
    "case",
    [c for c in CASES if c[0] in (*DIFFERENTIABLE, bounded_newton) and c[1][0].dtype == np.float64],
    ids=named,
)
def test_gradients_and_tangents_are_those_of_the_iterations_that_ran(case, operators):
    function, (x, *numbers) = case
    point = torch.tensor(x, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda t: operators[function](t, *numbers), (point,), check_forward_ad=function is not bounded_newton
    )


def test_a_while_has_tangents_and_a_gradient(operators):
    operator = operators[newton]
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.tensor(V), torch.ones(len(V), dtype=torch.float64))
        _, tangent = torch.autograd.forward_ad.unpack_dual(operator(dual))
    np.testing.assert_allclose(tangent, np.sign(V) / (2 * np.sqrt(np.abs(V) + 1)), rtol=1e-6)
    x = torch.tensor(V, requires_grad=True)
    operator(x).sum().backward()
    np.testing.assert_allclose(x.grad, tangent, rtol=1e-6)


def test_numbers_of_a_loop_do_not_count_iterations_after_it_has_ended():
    """A search through 2**40 numbers ends at the fourth."""

    def search(x, limit: int):
        y = output_tensor((1,), "int64")
        for i in range(limit):
            y[0] += 1
            if i * x[0] > 10:
                break
        return y

    assert polyop.kernel(name="desugar::search")(search)(np.array([4.0]), 2**40) == [4]


def test_a_tangent_leaves_the_loops_that_the_kernel_leaves():
    """The flag of the outer loop is tested after the inner one, so it stays in memory."""

    def doubled_until(x, limit: int):
        y = output_tensor((1,), x.dtype)
        for i in range(limit):
            while y[0] < limit and x[0] == i:
                y[0] += x[1] * x[1]
                if y[0] > 10:
                    break
            if x[0] <= i:
                break
        return y

    operator = polyop.kernel(name="desugar::doubled_until")(doubled_until)
    with torch.autograd.forward_ad.dual_level():
        point = torch.tensor([1.0, 2.0])
        dual = torch.autograd.forward_ad.make_dual(point, torch.tensor([0.0, 1.0]))
        value, tangent = torch.autograd.forward_ad.unpack_dual(operator(dual, 2**40))
    assert (value, tangent) == (12.0, 12.0)


def test_a_tangent_with_a_scalar_of_an_iteration_leaves_its_loop():
    """The scalar starts with zero in each iteration, inside of the condition that ends the loop."""

    def sums_until(x):
        y = output_tensor((1,), x.dtype)
        n = 0.0  # a float: an integer would count, and the loop be a for
        while n < 5 and x[0] > n:
            n += 1
            square = x[1] * x[1]
            for i in range(x.shape[0]):
                if i < 0:  # never: so the square is proved to belong to an iteration
                    y[0] += square
                y[0] += x[i]
        return y

    operator = polyop.kernel(name="desugar::sums_until")(sums_until)
    with torch.autograd.forward_ad.dual_level():
        point = torch.tensor([3.0, 2.5])
        dual = torch.autograd.forward_ad.make_dual(point, torch.tensor([1.0, 0.0]))
        value, tangent = torch.autograd.forward_ad.unpack_dual(operator(dual))
    assert (value, tangent) == (16.5, 3.0)


ERRORS = [  # lines of a kernel, the kind of error, words of its text
    (("y[0] = calls_itself(x[0])",), UnsupportedError, "calls_itself calls itself, and recursion is not compiled.*write a loop"),
    (("y[0] = returns_nothing(x[0])",), UnsupportedError, "the helper returns_nothing returns nothing.*in a line of its own"),
    (("y[0] = x[0] + add_row(y, 0, x[0])",), UnsupportedError, "the helper add_row returns nothing.*in a line of its own"),
    (("y[0] = squared()",), UnsupportedError, "the helper squared needs v"),
    (("y[0] = squared(x[0], 1)",), UnsupportedError, "the helper squared takes 1 arguments?, but got 2"),
    (("y[0] = squared(w=x[0])",), UnsupportedError, "the helper squared has no parameter w"),
    (("y[0] = squared(x[0], v=1)",), UnsupportedError, "the helper squared gets v twice"),
    (("y[0] = reads_an_array(x[0])",), ArgumentValueError, "the array TABLE from outside the function may change"),
    (("a, b = squared(x[0])", "y[0] = a"), ArgumentValueError, "a, b"),
    (("for i, v in range(3):", "    y[i] = v"), ArgumentValueError, "only grid has several loop variables"),
    (("for k, v in reversed(enumerate(x)):", "    y[k] = v"), ArgumentTypeError, r"enumerate has no last item.*reversed\(range\(len\(x\)\)\)"),
    (("for k, v in reversed(enumerate((1, 2))):", "    y[k] = v"), ArgumentTypeError, "enumerate has no last item"),
    (("for a, b in reversed(zip(x, x)):", "    y[0] = a + b"), ArgumentTypeError, r"zip has no last item.*zip\(reversed\(x\), reversed\(x\)\)"),
    (("for i, v in enumerate(reversed(reversed(x))):", "    y[i] = v"), ArgumentTypeError, "reversed has no last item.*write x alone"),
    (("for p in zip(x, x):", "    y[0] = p"), ArgumentValueError, r"zip.* has a name for each item.*for a, b in zip\(x, x\)"),
    (("for a, b, c in zip(x, x):", "    y[0] = a"), ArgumentValueError, r"zip\(x, x\) gives 2 items at a time, but got 3 names"),
    (("for k in (1, 2):", "    k = 3"), ArgumentValueError, "iter var cannot be overwritten: k"),
    (("if x[0] > 0:", "    return x", "return y"), ArgumentValueError, "every return of a kernel gives the same tensors.*return x, in line 4"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "kind", "words"), ERRORS, ids=["; ".join(row[0]) for row in ERRORS])
def test_errors_name_the_line_and_the_way_out(lines, kind, words, tmp_path):
    text = "def f(x):\n    y = output_tensor(x.shape, x.dtype)\n" + "".join(f"    {line}\n" for line in lines)
    text += "" if "return y" in lines else "    return y\n"
    file = tmp_path / "kernels.py"
    file.write_text(text)
    space = dict(globals())
    exec(compile(text, str(file), "exec"), space)
    with pytest.raises(kind) as caught:
        run_static_checks(space["f"])
        parse(space["f"], [("float64", 1)], {})
    assert re.search(words, str(caught.value), re.DOTALL), caught.value


def among(x, key):
    y = output_tensor(x.shape[: key.ndim], "int32")
    for i in range(x.shape[0]):
        y[i] = 2 * (x[i] in (1, x[0], 5)) + (x[i] not in [2, 5])
    return y


def among_sizes(x, key):
    y = output_tensor(x.shape[: key.ndim], "int32")
    for i in range(x.shape[0]):
        y[i] = (
            4 * ((len(x) + i) in (1, 8))
            + 2 * (x[i * len(x) // len(x)] not in {1, len(x)})
            + (i in [len(x) - 1, -1])
        )
    return y


def among_words(x, key):
    y = output_tensor(x.shape, "int32")
    for i in range(x.shape[0]):
        if (i > 0 and abs(x[i - 1]) in (max(x[i], 2), 7)) or random(key, i) not in (0.5, 0):
            y[i] = 1 + (sum(x[: i + 1]) in (8, 10))
    return y


def among_maxima(x, key):
    y = output_tensor(x.shape[: key.ndim], "int32")
    for i in range(x.shape[0]):
        y[i] = max(x[:]) in (6, 7)
    return y


def push(t, i, v):
    t[i] += 1
    return v


def pushed_among(t, i, v):
    return 2 if push(t, i, v) in (1, 5, 7) else 3


def among_helpers(x, key):
    y = output_tensor(x.shape[: key.ndim], "int32")
    for i in range(x.shape[0]):
        y[i] = 10 * y[i] + pushed_among(y, i, x[i])
        if push(y, i, x[i]) in (push(y, i, 2), push(y, i, 5)):
            y[i] += 100
    return y


AMONG = (among, among_sizes, among_words, among_maxima, among_helpers)


@pytest.mark.parametrize("function", AMONG)
def test_a_number_is_looked_up_among_numbers(function):
    x, key = np.array([7, 1, 2, 5, 4, 7]), np.array([3, 4], np.uint32)
    op = polyop.kernel(function, name=f"desugar::{function.__name__}")
    expected = plain(function)(x, key)
    np.testing.assert_array_equal(op(x, key), expected)
    typed = parse(function, [("int64", 1), ("uint32", 1)], {})
    np.testing.assert_array_equal(interpret(typed, [x, key], {})[0], expected)


def test_each_number_that_is_looked_among_is_computed():
    """As in Python, whose tuple is made first: an index outside is an error also behind an equal number."""

    def outside(x, k):
        y = output_tensor(x.shape, "int32")
        for i in range(x.shape[0]):
            y[i] = x[i] in (x[0], x[i + k])
        return y

    op = polyop.kernel(outside, name="desugar::outside")
    for run in (op, op.python):
        with pytest.raises(Exception, match="index|out of"):
            run(np.ones(3), 1)
