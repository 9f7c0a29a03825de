# ruff: noqa: F821 - kernels, whose words are no names here
"""Conversions, comparisons and choices of scalars give the values of the plain function, on all targets.

The plain function is the definition. Each table below is compiled for each instruction set of this machine, in
vector lanes and one by one, and for CUDA, which runs in an emulation.
"""

import platform

import ml_dtypes
import numpy as np
import pytest

import polyop
from instruction_sets import EACH
from loop_samples.emulate import function_of
from polyop.core.dtypes import dtype
from polyop.core.errors import ArgumentTypeError
from polyop.loops.derive.forms import adjoint, batched
from polyop.loops.frontend.language import WORDS
from polyop.loops.frontend.parse import parse
from polyop.loops.frontend.plain import plain
from polyop.loops.ir.grammar import statements, walk
from polyop.loops.ir.interpret import interpret
from polyop.loops.targets import isa

TARGETS = [*isa.available(), "cuda"]
BEST_FIRST = [*EACH, pytest.param("cuda", marks=pytest.mark.slow)]
"""For long tables: every change compiles them for the best instruction set."""
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def typed(function, arrays, attributes=None):
    tensors = [(dtype(a.dtype).name, a.ndim) for a in arrays]
    return parse(function, tensors, attributes or {})


def library(target, kernels, batch, emulate):
    if target == "cuda":
        return emulate.build(emulate.text(kernels))
    return batch.build(batch.text(kernels, target), "-DPOLYOP_GRAIN=1")


def check(target, cases, batch, emulate):
    """Compare compiled kernels, and the interpreter, with what is wanted.

    A case is a function, its arrays, what it gives, and its attributes.
    """
    cases = [(*case, {}) if len(case) == 3 else case for case in cases]
    kernels = [typed(function, arrays, attributes) for function, arrays, _, attributes in cases]
    path = library(target, kernels, batch, emulate)
    wrong = []
    for number, (kernel, (function, arrays, wanted, attributes)) in enumerate(
        zip(kernels, cases, strict=True)
    ):
        rows = [(dtype(a.dtype).name, a.ndim) for a in arrays]
        run = batch.bound(function, rows, attributes, path, number)
        for name, results in (
            ("compiled", run(*arrays)),
            ("interpreted", interpret(kernel, arrays, attributes)),
        ):
            for output, one, other in zip(kernel.outputs, results, wanted, strict=True):
                if one.dtype != other.dtype or not np.array_equal(
                    one, other, equal_nan=one.dtype.kind == "f"
                ):
                    at = np.flatnonzero((one != other).ravel())[:3]
                    shown = "; ".join(f"[{k}] is {one.flat[k]!r}, wanted {other.flat[k]!r}" for k in at)
                    wrong.append(f"{function.__name__} of {rows}, {name}: {output}{shown}")
    assert not wrong, "\n".join(wrong)


def conversion(to):
    text = f"""def to_{to}(x):
    stored = output_tensor(x.shape, "{to}")
    back = output_tensor(x.shape, "float64")
    scaled = output_tensor(x.shape, "float64")
    last = output_tensor((1,), "float64")
    for i in range(x.shape[0]):
        stored[i] = x[i]
        back[i] = {to}(x[i])
        scaled[i] = {to}(x[i] * 1.0) * 0.5
    last[0] = {to}(x[x.shape[0] - 1])
    return stored, back, scaled, last
"""
    return function_of(text, f"to_{to}")


def truncated(values, to):
    """The values, cut off, as an integer of Python that wraps around: each is one that 64 bits hold."""
    bits, signed = np.dtype(to).itemsize * 8, to[0] == "i"
    wrapped = [int(value) % 2**bits for value in values.tolist()]
    return np.array([n - 2**bits if signed and n >= 2 ** (bits - 1) else n for n in wrapped], to)


@pytest.mark.slow(1)
@pytest.mark.parametrize("target", TARGETS)
def test_a_float_becomes_an_integer_by_truncation_and_wraps(target, batch, emulate):
    """Of words of 32 bits for narrow integers, of 64 bits for the others: beyond them see the test below."""
    numbers = [
        150.0,
        -200.0,
        5.5,
        -2.0,
        -129.0,
        0.0,
        -0.5,
        255.9,
        256.0,
        -0.99,
        65408.0,
        -32769.0,
        1e9,
        -(2.0**31),
    ]
    cases = []
    for of in ("float16", "bfloat16", "float32", "float64"):
        for to in INTEGERS if of in ("float32", "float64") else ("int8", "uint8", "int32", "uint32"):
            more = (
                [3e9, -3e9, 2.0**40 + 2.0**20, -(2.0**40) - 2.0**20]
                if to[-2:] in ("64", "32") and to != "int32"
                else []
            )
            mine = [n for n in [*numbers, *more] if of != "float16" or abs(n) < 65504]
            x = np.array((mine * 8)[:67], np.float64).astype(dtype(of).numpy)
            whole = truncated(x.astype(np.float64), to)
            last = whole[-1:].astype(np.float64)
            cases.append(
                (conversion(to), (x,), (whole, whole.astype(np.float64), whole * np.float64(0.5), last))
            )
    check(target, cases, batch, emulate)


@pytest.mark.slow(1)
@pytest.mark.parametrize("target", TARGETS)
def test_a_float_that_no_integer_holds_gives_one_value_on_all_targets(target, batch, emulate):
    beyond = [np.nan, np.inf, -np.inf, 1e19, -1e19, 2e19, 3e9, -3e9, 5e9, -0.0, 2.0**63, -(2.0**63), 2.0**31]
    least = {"int32": -(2**31), "int64": -(2**63), "uint64": 2**63}
    cases = []
    for of in ("float32", "float64"):
        for to in INTEGERS:
            x = np.array((beyond * 8)[:67], of)
            whole = WORDS[to].meaning(x)
            assert whole[0] == least.get(to, 0), "NaN"
            assert platform.machine() != "x86_64" or whole.tolist() == [one_by_numpy(e, to) for e in x]
            back = whole.astype(np.float64)
            cases.append((conversion(to), (x,), (whole, back, back * 0.5, back[-1:])))
    check(target, cases, batch, emulate)


def one_by_numpy(number, to):
    with np.errstate(invalid="ignore"):
        return np.array([number]).astype(to)[0].item()


COMPARED = ("<", "<=", ">", ">=", "==", "!=")


def comparisons(name, left, right):
    """A kernel with a column of bools for each comparison of two texts."""
    rows = "\n".join(f"        y[i, {k}] = {left} {sign} {right}" for k, sign in enumerate(COMPARED))
    text = f"""def {name}(a, b):
    y = output_tensor((a.shape[0], 6), "bool")
    for i in range(a.shape[0]):
{rows}
    return y
"""
    return function_of(text, name)


def edges(of):
    """Numbers around the limits of an integer dtype, and around those that a float64 cannot hold."""
    info = np.iinfo(of)
    numbers = [info.min, info.min + 1, 0, 1, 2, info.max // 2, info.max // 2 + 1, info.max - 1, info.max]
    numbers += [n for n in (-1, -2, 2**53, 2**53 + 1, 255, 256, -128) if info.min <= n <= info.max]
    return np.array(numbers, of)


@pytest.mark.parametrize("target", BEST_FIRST)
def test_integers_are_compared_exactly(target, batch, emulate):
    cases = []
    for one in INTEGERS:
        for other in INTEGERS[INTEGERS.index(one) :]:  # each comparison has its mirror image among the six
            a, b = (half.ravel() for half in np.meshgrid(edges(one), edges(other)))
            cases.append((f"{one}_{other}", "a[i]", "b[i]", a, b))
        a = edges(one)
        cases += [
            (f"{one}_{n}", "a[i]", text, a, a)
            for n, text in enumerate(("i - 1", "a.shape[0]", "-1", "2**63", "300"))
        ]
    rows = []
    for name, left, right, a, b in cases:
        function = comparisons(name, left, right)
        rows.append((function, (a, b), (plain(function)(a, b),)))
    check(target, rows, batch, emulate)


FLOATS = ("float16", "bfloat16", "float32", "float64")
ALL = (*INTEGERS, *FLOATS)


def numbers_of(of, most=2**53):
    """Numbers of a dtype, among them its least and greatest, that a float64 holds."""
    if of in FLOATS:
        return np.array([0.0, -1.5, 0.1, 3.0, 300.0, -2.0, 1e4, 7.0], dtype(of).numpy)
    return np.clip([0, 1, -1, 100, 300, -most, most, 7], np.iinfo(of).min, np.iinfo(of).max).astype(of)


def choice(name, first, second, to, attribute=""):
    """A kernel that stores one of two values: of an expression, of a branch, of a scalar, of ``or``."""
    text = f"""def {name}(a, b, c{attribute}):
    y = output_tensor((a.shape[0], 3), "{to}")
    for i in range(a.shape[0]):
        y[i, 0] = {first} if c[i] else {second}
        v = {second}
        if c[i]:
            v = {first}
        y[i, 1] = v
        w = v
        if i == 3:
            w = {second}
        y[i, 2] = w
    return y
"""
    return function_of(text, name)


def case_of(function, arrays, attributes=None):
    wanted = plain(function)(*arrays, **(attributes or {}))
    return (function, arrays, (wanted,), attributes or {})


@pytest.mark.slow
@pytest.mark.parametrize("target", BEST_FIRST)
def test_a_choice_and_a_scalar_hold_the_values_of_all_dtypes(target, batch, emulate):
    cases = []
    for number, one in enumerate(ALL):
        for other in ALL[number + 1 :]:
            a, b = numbers_of(one), numbers_of(other)
            if "uint64" in (one, other):
                a, b = abs(a), abs(b)  # no type holds all of a uint64 and a negative number
            function = choice(f"{one}_or_{other}", "a[i]", "b[i]", "float64")
            cases.append(case_of(function, (a, b, np.arange(8) % 2 == 0)))
    check(target, cases, batch, emulate)


PYTHON_NUMBERS = [
    ("300", "", {}),
    ("-1", "", {}),
    ("70000", "", {}),
    ("0.1", "", {}),
    ("1e300", "", {}),
    ("k", ", k: int = 2", {"k": 300}),
    ("k", ", k: int = 2", {"k": -1}),
    ("k", ", k: int = 2", {"k": 2**40 + 1}),
    ("f", ", f: float = 0.5", {"f": 0.1}),
    ("f", ", f: float = 0.5", {"f": 1e300}),
    ("i * 100 - 3", "", {}),
    ("a.shape[0] * 100", "", {}),
]


@pytest.mark.slow
@pytest.mark.parametrize("target", BEST_FIRST)
def test_a_choice_and_a_scalar_hold_a_python_number(target, batch, emulate):
    cases = []
    for number, (text, attribute, attributes) in enumerate(PYTHON_NUMBERS):
        for of in ALL:
            if of == "uint64" and (text == "-1" or "-1" in str(attributes) or "- 3" in text):
                continue  # no type holds both
            a = numbers_of(of, 2**40)
            to = "float64" if of in FLOATS or "." in text or "e" in text or text == "f" else "int64"
            function = choice(f"{of}_or_{number}", "a[i]", text, to, attribute)
            cases.append(case_of(function, (a, a, np.arange(8) % 2 == 0), attributes))
    check(target, cases, batch, emulate)


def clipped(x, low: int = 0, high: int = 1):
    y = output_tensor((x.shape[0], 4), "int64")
    for i in range(x.shape[0]):
        y[i, 0] = max(x[i], low)
        y[i, 1] = min(x[i], high)
        y[i, 2] = min(max(x[i], low), high)
        y[i, 3] = max(x[i], i * 50 - 3, 250)
    return y


def used(x, g, k: int = 0, f: float = 0.5):
    """Arithmetic counts a Python number as a number of the other's dtype, whatever type holds it."""
    y = output_tensor((x.shape[0], 4), "float64")
    for i in range(x.shape[0]):
        v = k
        if x[i] > 2:
            v = x[i]
        y[i, 0] = v
        y[i, 1] = v + x[i]
        w = g[i] if x[i] > 2 else f
        y[i, 2] = w
        y[i, 3] = w * g[i]
    return y


@pytest.mark.parametrize("target", BEST_FIRST)
def test_the_greatest_of_integers_and_arithmetic_with_what_is_held(target, batch, emulate):
    cases = []
    for of in INTEGERS:
        x = numbers_of(of, 2**40)
        for low, high in ((-5, 300), (300, 5), (-1, 2**41)):
            if of != "uint64":
                cases.append(case_of(clipped, (x,), {"low": low, "high": high}))
        for k in (3, 100):  # what Python's arithmetic takes: more raises OverflowError there
            numbers = (np.linspace(-1, 2, 8, dtype=g) for g in ("float32", "float64"))
            cases += [case_of(used, (x, g), {"k": k, "f": 0.1}) for g in numbers]
    check(target, cases, batch, emulate)


def leaky(x, slope: float = 0.1):
    y = output_tensor(x.shape, "float64")
    for i in range(x.shape[0]):
        v = x[i] * x[i] if x[i] > 0 else slope
        w = v
        if i == 1:
            w = 0.3
        y[i] = w * 3.0 + v
    return y


def test_what_is_held_has_gradients_and_batches():
    x = np.array([1.5, 2.0, -1.0, 3.0], np.float32)
    kernel = typed(leaky, (x,), {"slope": 0.1})
    gradient = adjoint(kernel, (True,)).kernel
    names = [name for name in gradient.parameters if name in gradient.buffers]
    arrays = [
        np.zeros((), bool) if gradient.buffers[n].absent else x if n == "x" else np.ones(4) for n in names
    ]
    (found,) = interpret(gradient, arrays, {"slope": 0.1})
    np.testing.assert_allclose(found, [12.0, 4.0, 0.0, 24.0])
    together = batched(kernel, (0,))
    (rows,) = interpret(together, [np.stack([x, -x])], {"slope": 0.1})
    np.testing.assert_allclose(rows, [plain(leaky)(x), plain(leaky)(-x)], 1e-6)


NARROW = {
    "choice": "y[i] = x[i] if x[i] > 0 else slope",
    "arithmetic": "y[i] = x[i] * (x[i] if x[i] > 0 else slope)",
    "nested": "y[i] = x[i] if x[i] > 0 else (slope if x[i] < 3 else x[i])",
    "scalar": "v = slope\n        if x[i] > 0:\n            v = x[i]\n        y[i] = v",
    "copies": "v = slope\n        if x[i] > 0:\n            v = x[i]\n        w = v\n        v = 0.1\n        y[i] = v * x[i] + w",
    "sum": "v = slope\n        for k in range(3):\n            v += x[i]\n        y[i] = v",
}


@pytest.mark.parametrize("name", NARROW)
def test_a_float32_kernel_computes_in_float32(name):
    text = f"""def {name}(x, slope: float = 0.1):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        {NARROW[name]}
    return y
"""
    kernel = typed(function_of(text, name), (np.ones(3, np.float32),), {"slope": float})
    wide = {
        e
        for node in statements(kernel.body)
        for e in walk(node)
        if e.type.dtype == "float64" and not e.type.weak
    }
    assert not wide, wide
    assert name != "sum" or any(getattr(node, "op", "") == "+" for node in statements(kernel.body))


def test_a_uint64_and_a_negative_number_have_no_type():
    with pytest.raises(ArgumentTypeError, match="uint64 holds no negative number"):
        typed(choice("signs", "a[i]", "-1", "int64"), (np.ones(1, np.uint64),) * 2 + (np.ones(1, bool),))


def changed(x, z, f: float = 0.5):
    y = output_tensor((x.shape[0], 5), "float64")
    for i in range(x.shape[0]):
        v = x[i]
        s = v + x[i]
        v = v * f
        y[i, 0] = s
        y[i, 1] = v
        v = x[i]
        v += x[i]
        y[i, 2] = v
        v *= f
        if z[i] > 0:
            v = z[i]
            v = v / 3
        y[i, 3] = v
        v = i
        for _ in range(3):
            v = v + 1
        w = z[i]
        w *= v
        y[i, 4] = w + v
    return y


@pytest.mark.slow
def test_a_scalar_has_a_type_from_each_assignment_to_its_reads(batch, emulate):
    z = np.linspace(-1, 2, 8, dtype=np.float32)
    cases = [case_of(changed, (numbers_of(of, 2**40), z), {"f": 0.5}) for of in INTEGERS]
    for target in (TARGETS[0], "cuda"):
        check(target, cases, batch, emulate)


def test_a_scalar_of_one_type_stays_one_variable():
    text = """def same(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        v = x[i]
        v = v * 2
        v += x[i]
        y[i] = v
    return y
"""
    kernel = typed(function_of(text, "same"), (np.ones(3, np.float32),))
    assert {node.name for node in statements(kernel.body) if hasattr(node, "name")} == {"v"}


@polyop.kernel
def chosen_of_two(x, y):
    chosen = output_tensor((2,), "float64")
    chosen[0] = where(x[0] > 1, x[0], y[0])
    chosen[1] = where(x[1] > 1, x[1], y[1])
    row = where(1, x[0:2], y[0:2])
    chosen[0] += row[0]
    return chosen


@pytest.mark.parametrize("other", ["float16", "bfloat16", "uint64", "int8", "bool"])
def test_where_takes_bfloat16_beside_any_dtype(other):
    """``np.where`` has no common dtype for bfloat16 and float16; sums of them have."""
    x = np.array([1.0, 3.0], ml_dtypes.bfloat16)
    y = np.array([1, 0]).astype(ml_dtypes.bfloat16 if other == "bfloat16" else other)
    for function in (chosen_of_two, chosen_of_two.python):
        assert function(x, y).tolist() == [2.0, 3.0]
        assert function(y, x).tolist() == [2.0, 3.0]
