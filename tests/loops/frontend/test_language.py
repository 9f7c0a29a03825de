# ruff: noqa: F821 - kernels, whose words are no names here
"""The words of the language, runs as plain Python, and types of expressions compared with those of NumPy."""

import builtins
import itertools
import math
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from polyop.loops.frontend.language import LOOPS, NUMBERS, WORDS
from polyop.loops.frontend.plain import plain
from polyop.loops.ir.grammar import BOOL, COMPLEX, FLOAT, INT, PARTS, Const, Type, Var
from polyop.loops.ir.operate import as_condition, operate, power, select, where
from polyop.loops.ir.operators import OPERATORS
from polyop.loops.ir.scalars import is_python
from polyop.loops.ir.types import Refusal, cast, converted, counted, join

numpy_2 = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0",
    reason="NumPy 1 promotes Python numbers by their value; a kernel promotes as NumPy 2",
)


def words(x, factor=2):
    y = output_tensor(x.shape, x.dtype)
    t = allocate(x.shape, "float64")
    for arg in grid(x.shape):
        t[arg] = x[arg] * factor
        y[arg] = t[arg] + erf(0.0)
    return y


def test_plain_leaves_the_function_and_its_module_alone():
    before = dict(vars(sys.modules[__name__]))
    copy = plain(words)
    np.testing.assert_array_equal(copy(np.ones((2, 2), np.int8)), np.full((2, 2), 2, np.int8))
    np.testing.assert_array_equal(copy(np.ones(2), factor=3), [3, 3])
    assert copy.__name__ == "words"
    assert dict(vars(sys.modules[__name__])) == before
    assert range is builtins.range and max is builtins.max and abs is builtins.abs
    with pytest.raises(NameError, match="output_tensor"):
        words(np.ones(2))


LATE = 1


def test_plain_keeps_closures_and_sees_the_module_as_it_is_at_the_call(monkeypatch):
    inner = 10

    def kernel(x):
        y = output_tensor(x.shape, x.dtype)
        y[0] = inner + LATE
        return y

    copy = plain(kernel)
    assert copy(np.zeros(1)) == [11]
    monkeypatch.setattr(sys.modules[__name__], "LATE", 5)
    inner = 20
    assert copy(np.zeros(1)) == [25]


def test_plain_is_silent_about_overflow_and_division():
    def kernel(x):
        y = output_tensor(x.shape, x.dtype)
        y[0] = exp(x[0]) + 1 / (x[0] - x[0])
        y[1] = sqrt(-x[0])
        return y

    result = plain(kernel)(np.full(2, 1e30, np.float32))
    assert result[0] == np.inf and np.isnan(result[1])


def test_python_numbers_stay_python_numbers():
    for name, row in WORDS.items():
        if row.kind not in ("math", "composed"):
            continue
        for value in (1, 0.5, True) if OPERATORS.get(row.operator or "+").kinds != "iu" else (1, True):
            result = row.meaning(*[value] * row.min_inputs)
            assert is_python(result), (name, value, result)
    assert is_python(1) and not is_python(np.float64(1)) and not is_python(np.True_)


EXPECTED = [  # by hand, or by Python's own mathematics
    ("erf", (0.5,), math.erf(0.5)), ("rsqrt", (4.0,), 0.5), ("ceil_div", (7, 2), 4), ("ceil_div", (8, 2), 4),
    ("sign", (-2.5,), -1.0), ("round", (2.5,), 2.0), ("round", (3.5,), 4.0), ("trunc", (-2.7,), -2.0),
    ("floor", (-2.5,), -3.0), ("ceil", (-2.5,), -2.0), ("floor", (3,), 3), ("atan2", (1.0, -1.0), math.pi * 0.75),
    ("max", (1, 3, 2), 3), ("min", (4, 3.5), 3.5), ("power", (2, 10), 1024), ("isfinite", (math.inf,), False),
    ("isnan", (math.nan,), True), ("isinf", (-math.inf,), True), ("abs", (-3,), 3), ("len", ((5, 6),), 2),
    ("int", (2.9,), 2), ("float", (2,), 2.0), ("int8", (300,), 44), ("uint8", (-1,), 255), ("int32", (-2.7,), -2),
    ("exp", (True,), math.e), ("exp2", (3,), 8.0), ("log2", (8.0,), 3.0), ("log1p", (1e-12,), math.log1p(1e-12)),
    ("sinh", (0.5,), math.sinh(0.5)), ("cosh", (0.5,), math.cosh(0.5)), ("tan", (0.5,), math.tan(0.5)),
    ("asin", (0.5,), math.asin(0.5)), ("acos", (0.5,), math.acos(0.5)), ("erfc", (5,), math.erfc(5)),
    ("sigmoid", (2,), 1 / (1 + math.exp(-2))), ("sigmoid", (-800.0,), 0.0), ("sigmoid", (800.0,), 1.0),
    ("lgamma", (6,), math.log(120)), ("lgamma", (-0.5,), math.log(2 * math.pi**0.5)), ("lgamma", (-1,), math.inf),
    ("copysign", (2, -0.0), -2.0), ("fmod", (-7, 3), -1), ("mod", (-7, 3), 2), ("cbrt", (-27,), -3.0),
    ("gcd", (12, -18, 8), 2), ("lcm", (4, 6), 12), ("square", (3,), 9), ("clip", (5, 0, 3), 3), ("degrees", (math.pi,), 180),
    ("radians", (180,), math.pi), ("isclose", (1.0, 1.0 + 1e-6), True), ("math.isclose", (1.0, 1.0 + 1e-6), False),
    ("math.floor", (-0.5,), -1), ("math.ceil", (0.5,), 1), ("math.trunc", (-1.5,), -1), ("round", (2.345, 1), 2.3),
    ("logical_and", (2, 0), False), ("logical_or", (2, 0), True), ("logical_xor", (2, 1), False),
    ("logical_not", (0.0,), True),
    ("digamma", (1,), -0.5772156649015329), ("trigamma", (1.0,), math.pi**2 / 6),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "expected"), EXPECTED)
def test_meanings(name, inputs, expected):
    assert WORDS[name].meaning(*inputs) == pytest.approx(expected, rel=1e-15)


def test_each_composed_function_has_an_expected_value():
    assert {name for name, row in WORDS.items() if row.kind == "composed"} <= {name for name, *_ in EXPECTED}


def test_the_table_of_words():
    assert LOOPS == ("range", "serial", "vectorize", "parallel", "reduce", "prange", "grid")
    assert list(WORDS["grid"].meaning((2, 2))) == list(itertools.product((0, 1), (0, 1)))
    for row in WORDS.values():
        kinds = ("buffer", "loop", "with", "cast", "size", "math", "complex", "reduction", "random")
        assert row.kind in (*kinds, "composed", "limit")
        assert row.kind != "composed" or row.expansion
        assert len(row.parameters) == (row.max_inputs if row.kind == "composed" else 0)
        assert (row.kind == "math") == bool(row.operator) and (row.kind == "cast") == (row.type is not None)
        assert not row.operator or row.operator in OPERATORS
    for name in (*NUMBERS, *PARTS):
        assert WORDS[name].meaning(1).dtype.name == name
    assert [WORDS[n].counts() for n in ("exp", "pow", "range", "max")] == [
        "one input", "two inputs", "one to three inputs", "one or more inputs",
    ]  # fmt: skip


def test_the_front_end_imports_no_framework_and_no_islpy():
    code = """import sys
import polyop.loops.frontend.parse, polyop.loops.ir.interpret
print(*sorted({'torch', 'jax', 'mindspore', 'islpy', 'numba'} & set(sys.modules)))"""
    assert (
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        == "\n"
    )


# ---- types

PYTHON = {"int": 3, "float": 0.5, "python bool": True}


def expression(name, value):
    """An expression of the type: a constant where only that has it."""
    if name == "python bool":
        return Const(value, BOOL)
    return Var("v", {"int": INT, "float": FLOAT}.get(name) or Type(name))


def scalar(name, number):
    if name in PYTHON:
        return {"int": int, "float": float, "python bool": bool}[name](number)
    return np.dtype(getattr(ml_dtypes, name, name)).type(number)


def type_of(value):
    if is_python(value):
        return BOOL if isinstance(value, bool) else INT if isinstance(value, int) else FLOAT
    return Type(value.dtype.name)


BINARY = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "pow": lambda a, b: a**b,
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    **{name: WORDS[name].meaning for name in ("max", "min", "atan2")},
}  # fmt: skip
UNARY = {
    "neg": lambda a: -a,
    **{w.operator: w.meaning for w in WORDS.values() if w.kind == "math" and w.max_inputs == 1},
}


def check(name, names, function, build):
    """The type of the expression is that of NumPy's result, or both refuse."""
    inputs = [scalar(n, k) for n, k in zip(names, (3, 2), strict=False)]
    arguments = [expression(n, v) for n, v in zip(names, inputs, strict=True)]
    try:
        with np.errstate(all="ignore"):
            expected = type_of(function(*inputs))
    except TypeError:
        with pytest.raises(Refusal):
            build(*arguments)
        return
    found = build(*arguments).type
    found = counted(found) if name in ("max", "min") else found  # a wider type may hold a Python number
    # weak and Python bools: a comparison of Python numbers is the bool that NumPy's are
    assert found == expected, (name, names, str(expected), str(found))


ARITHMETIC = ("+", "-", "*", "/", "//", "%", "pow")


# where the language is stricter, or gives what the table of ml_dtypes lacks
def out_of_scope(name, names):
    bfloat = "bfloat16" in names
    python_bools = [n for n in names if n == "python bool"]
    return (
        (bfloat and name in ("max", "min", "atan2") and len(set(names)) > 1)  # no common dtype in NumPy
        or (name in ARITHMETIC and {*names} == {"bfloat16", "float"})  # bfloat16 since ml_dtypes 0.7
        or (name in ("max", "min") and len(python_bools) == 2)
    )


@numpy_2
@pytest.mark.parametrize("name", sorted(BINARY))
def test_the_type_of_a_binary_operator_is_numpys(name):
    build = power if name == "pow" else lambda a, b: operate(name, a, b)
    for one, other in itertools.product([*NUMBERS, *PYTHON], repeat=2):
        if out_of_scope(name, (one, other)):
            assert build(expression(one, True), expression(other, True)).type is not None
        else:
            check(name, (one, other), BINARY[name], build)


@pytest.mark.slow(60)
@numpy_2
@pytest.mark.parametrize("of", [*NUMBERS, *PYTHON])
@pytest.mark.parametrize("name", sorted(UNARY))
def test_the_type_of_a_unary_operator_is_numpys(name, of):
    check(name, (of,), UNARY[name], lambda a: operate(name, a))


def test_bfloat16_meets_other_dtypes_as_its_scalars_do():
    scalars = ml_dtypes.bfloat16
    for name in NUMBERS:
        met = scalars(1) * np.dtype(getattr(ml_dtypes, name, name)).type(1)
        assert join(Type("bfloat16"), Type(name)).dtype == met.dtype.name


@numpy_2
@pytest.mark.parametrize("name", ARITHMETIC)
def test_bfloat16_meets_a_python_float_as_its_scalars_did(name):
    build = power if name == "pow" else lambda a, b: operate(name, a, b)
    pair = expression("bfloat16", 3), expression("float", 2)
    assert join(Type("bfloat16"), FLOAT).dtype == "float32"
    assert {build(*order).type for order in (pair, pair[::-1])} == {Type("float32")}


def test_join_is_symmetric_and_a_weak_type_gives_way():
    types = [INT, FLOAT, COMPLEX, *map(Type, (*NUMBERS, *PARTS))]
    for one, other in itertools.product(types, types):
        assert join(one, other) == join(other, one)
    assert [str(join(FLOAT, Type(n))) for n in ("float16", "int8", "bool")] == [
        "float16",
        "float64",
        "float64",
    ]


@numpy_2
def test_complex_numbers_meet_others_as_in_numpy():
    for name, of in itertools.product([n for n in NUMBERS if n != "bfloat16"], (*PARTS, COMPLEX)):
        strong = np.dtype(name).type(1)
        met = strong * (1j if of == COMPLEX else np.dtype(of).type(1))
        assert join(Type(name), of if of == COMPLEX else Type(of)).dtype == met.dtype.name


def test_constants_are_converted_and_folded():
    n = Var("n", INT)
    assert operate("+", Const(2, INT), Const(3, INT)) == Const(5, INT)
    assert operate("-", operate("+", n, Const(2, INT)), Const(2, INT)) == n
    assert operate("+", Const(-2, INT), n) == operate("-", n, Const(2, INT))
    assert operate("*", n, Const(1, INT)) == n and operate("*", Const(1, INT), n) == n
    assert operate("//", n, Const(0, INT)).args == (n, Const(0, INT))
    assert operate("//", Const(1, INT), Const(0, INT)).name == "//"
    assert power(Const(2, INT), Const(-1, INT)).type == FLOAT
    assert cast(Const(0.1, FLOAT), Type("float32")) == Const(float(np.float32(0.1)), Type("float32"))
    assert cast(Const(300, INT), Type("int8")).name == "cast"
    assert operate("neg", Const(-128, Type("int8"))).name == "neg"
    assert operate("<", Var("u", Type("uint8")), Const(300, INT)) == Const(True, BOOL)
    assert operate("==", Const(-1, INT), Var("u", Type("uint64"))) == Const(False, BOOL)
    with pytest.raises(Refusal, match="a Python int that meets int8 must fit into it"):
        converted(Const(300, INT), Type("int8"))


def test_conditions_and_choices():
    x, i = Var("x", Type("float16")), Var("i", INT)
    assert as_condition(x).name == "!=" and as_condition(x).args[1].type == x.type
    assert (
        select(x, x, i).type == Type("float64", counts="float16")
        and select(as_condition(x), i, Const(0.5, FLOAT)).type == FLOAT
    )
    assert where(x, x, i).type == select(x, x, Const(3, INT)).type == x.type
    assert all(a.type.dtype == "float64" for a in select(as_condition(x), i, Const(0.5, FLOAT)).args[1:])
    assert select(x, as_condition(x), as_condition(i)).type == BOOL


def test_every_operator_but_the_lazy_ones_has_a_meaning():
    lazy = {name for name, row in OPERATORS.items() if row.meaning is OPERATORS["select"].meaning}
    assert lazy == {"and", "or", "cast", "select"}
    with pytest.raises(AssertionError, match="no functions of the values"):
        OPERATORS["select"].meaning(True, 1, 2)
    assert OPERATORS["round"].meaning(np.int64(2**60 + 1)) == 2**60 + 1
    assert OPERATORS["ceil_div"].meaning(np.int8(7), np.int8(2)) == 4
