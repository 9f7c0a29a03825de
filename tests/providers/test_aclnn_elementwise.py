"""Every elementwise and comparing aclnn operator against NumPy in double precision."""

import operator

import ml_dtypes
import numpy as np
import pytest
import torch

from polyop.providers.aclnn import launch, loops, prototype
from polyop.providers.aclnn.registry import builtin
from polyop.providers.aclnn.tables import comparison, elementwise

TOLERANCE = {np.float32: 2e-6, np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3}
SHAPES = [((3, 4), (3, 4)), ((), ()), ((0, 3), (0, 3)), ((2, 1, 4), (3, 1)), ((5,), ())]
RANGES = {"any": (-3, 3), "above 0": (0.2, 3), "inside 1": (-0.9, 0.9), "above 1": (1.1, 3)}

UNARY = {  # name: NumPy's function, where it is tried
    "Abs": (np.abs, "any"), "Neg": (np.negative, "any"), "Exp": (np.exp, "any"), "Exp2": (np.exp2, "any"),
    "Expm1": (np.expm1, "any"), "Log": (np.log, "above 0"), "Log1p": (np.log1p, "inside 1"),
    "Log2": (np.log2, "above 0"), "Log10": (np.log10, "above 0"), "Sqrt": (np.sqrt, "above 0"),
    "Rsqrt": (lambda x: x**-0.5, "above 0"), "Reciprocal": (lambda x: x**-1.0, "above 0"),
    "Square": (np.square, "any"), "Sin": (np.sin, "any"), "Cos": (np.cos, "any"), "Tan": (np.tan, "inside 1"),
    "Asin": (np.arcsin, "inside 1"), "Acos": (np.arccos, "inside 1"), "Atan": (np.arctan, "any"),
    "Sinh": (np.sinh, "any"), "Cosh": (np.cosh, "any"), "Tanh": (np.tanh, "any"),
    "Asinh": (np.arcsinh, "any"), "Acosh": (np.arccosh, "above 1"), "Atanh": (np.arctanh, "inside 1"),
    "Erf": (lambda x: torch.erf(torch.tensor(x)).numpy(), "any"),
    "Erfc": (lambda x: torch.erfc(torch.tensor(x)).numpy(), "any"), "Floor": (np.floor, "any"),
    "Ceil": (np.ceil, "any"), "Round": (np.round, "any"), "Trunc": (np.trunc, "any"),
    "Frac": (lambda x: np.fmod(x, 1), "any"), "Sign": (np.sign, "any"),
    "Sigmoid": (lambda x: 0.5 + 0.5 * np.tanh(x / 2), "any"),
}  # fmt: skip
BINARY = {
    "Mul": np.multiply, "Div": np.divide, "Maximum": np.maximum, "Minimum": np.minimum,
    "FloorDivide": np.floor_divide, "FmodTensor": np.fmod, "RemainderTensorTensor": np.mod,
    "Atan2": np.arctan2, "LogAddExp": np.logaddexp, "PowTensorTensor": lambda x, y: np.abs(x) ** y,
}  # fmt: skip
SCALAR = {
    "Muls": np.multiply, "Divs": np.divide, "FloorDivides": np.floor_divide, "FmodScalar": np.fmod,
    "RemainderTensorScalar": np.mod, "PowTensorScalar": lambda x, s: np.abs(x) ** s,
    "ClampMin": np.maximum, "ClampMax": np.minimum,
}  # fmt: skip
BITS = {"And": np.bitwise_and, "Or": np.bitwise_or, "Xor": np.bitwise_xor}
SHIFTS = {"LeftShift": np.left_shift, "RightShift": np.right_shift}
COMPARE = {"Eq": operator.eq, "Ne": operator.ne, "Lt": operator.lt, "Le": operator.le,
           "Gt": operator.gt, "Ge": operator.ge}  # fmt: skip
LOGIC = {"LogicalAnd": np.logical_and, "LogicalOr": np.logical_or, "LogicalXor": np.logical_xor}
ONE_OF_LOGIC = {"LogicalNot": np.logical_not, "IsFinite": np.isfinite, "IsInf": np.isinf,
                "IsPosInf": np.isposinf, "IsNegInf": np.isneginf, "Signbit": np.signbit}  # fmt: skip

INF, NAN = float("inf"), float("nan")
SPECIAL = np.array([0.0, -1.5, 2.0, INF, -INF, NAN, -0.0, 3.0])
X, Y, Z = np.random.default_rng(0).integers(-48, 48, (3, 4, 3)) / 16 + 1 / 32  # exact in float16
MORE = {  # name without "aclnn": arguments before out, expected
    "Add": [((X, Y, 1), X + Y), ((X, Y, 2.5), X + 2.5 * Y)],
    "Adds": [((X, 2, 1.5), X + 3)],
    "Sub": [((X, Y, 1), X - Y), ((X, Y, -2), X + 2 * Y)],
    "Subs": [((X, 2, 1.5), X - 3)],
    "Rsub": [((X, Y, 3), Y - 3 * X)],
    "Rsubs": [((X, 4, 0.5), 4 - X / 2)],
    "DivMod": [((X, Y, 0), X / Y), ((X, Y, 1), np.trunc(X / Y)), ((X, Y, 2), np.floor(X / Y))],
    "DivMods": [((X, 0.7, 0), X / 0.7), ((X, 0.7, 1), np.trunc(X / 0.7)), ((X, 0.7, 2), np.floor(X / 0.7))],
    "RemainderScalarTensor": [((5.0, Y), np.mod(5.0, Y))],
    "PowScalarTensor": [((2.0, X), 2**X)],
    "Addcmul": [((X, Y, Z, 0.5), X + 0.5 * Y * Z)],
    "Addcdiv": [((X, Y, Z, 2), X + 2 * Y / Z)],
    "Lerp": [((X, Y, Z), X + Z * (Y - X))],
    "Lerps": [((X, Y, 0.25), 0.75 * X + 0.25 * Y)],
    "Clamp": [((X, -1, 0.5), np.clip(X, -1, 0.5)), ((X, None, 0), np.minimum(X, 0)),
              ((SPECIAL, 1.0, None), np.maximum(SPECIAL, 1.0))],
    "ClampTensor": [((X, Y, Z), np.minimum(np.maximum(X, Y), Z)), ((X, None, Z), np.minimum(X, Z))],
    "NanToNum": [((SPECIAL, 9.0, 8.0, -7.0), np.nan_to_num(SPECIAL, nan=9, posinf=8, neginf=-7))],
    "RoundDecimals": [((X, 1), np.round(X, 1))],
    "IsClose": [((X, X + 1e-3, 1e-2, 1e-3, False), np.ones_like(X, bool)),
                ((SPECIAL, SPECIAL, 0.0, 0.0, False), SPECIAL == SPECIAL),
                ((SPECIAL, SPECIAL, 0.0, 0.0, True), np.ones(8, bool))],
    "Equal": [((X, X), np.array(True)), ((X, Y), np.array(False)), ((X, X[:2]), np.array(False))],
    "SWhere": [((X > 0, X, Y), np.where(X > 0, X, Y)), ((X > 0, X, Y[0, 0]), np.where(X > 0, X, Y[0, 0]))],
}  # fmt: skip
IN_PLACE_ONLY = {  # name: self, further arguments, expected
    "InplaceMaskedFillScalar": (X, (X > 0, 7.0), np.where(X > 0, 7.0, X)),
    "InplaceMaskedFillTensor": (X, (X > 0, np.array(7.0)), np.where(X > 0, 7.0, X)),
}


def values(shape, where, dtype, seed):
    low, high = RANGES[where]
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def wide(array):
    """The same values as every second element of a larger array."""
    if not array.ndim:
        return array
    holder = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    holder[..., ::2] = array
    return holder[..., ::2]


def agrees(result, expected, dtype):
    tolerance = TOLERANCE.get(dtype, 0)
    with np.errstate(all="ignore"):
        expected = np.asarray(expected).astype(dtype)
    kind = np.float64 if tolerance else expected.dtype
    np.testing.assert_allclose(result.astype(kind), expected.astype(kind), rtol=tolerance, atol=tolerance)


def check(name, inputs, expected, dtype, attributes=()):
    """Run an operator on dense and strided tensors, in both orders of arguments, and in place."""
    expected = np.asarray(expected)
    row = builtin()[f"aclnn{name}"]
    for make in (lambda a: a, wide):
        out = make(np.zeros(expected.shape, dtype))
        before = [np.array(i) for i in inputs if isinstance(i, np.ndarray)]
        launch(f"aclnn{name}", [*map(make_if(make), inputs), *attributes, out])
        agrees(out, expected, dtype)
        for old, new in zip(before, (i for i in inputs if isinstance(i, np.ndarray)), strict=True):
            assert old.tobytes() == new.tobytes()
    own = inputs[0]
    if row.inplace and own.shape == expected.shape:
        target = wide(np.array(own))
        launch(f"aclnnInplace{name}", [target, *inputs[1:], *attributes])
        agrees(target, expected, own.dtype.type)


def make_if(make):
    return lambda value: make(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("dtype", TOLERANCE, ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_an_element(name, dtype):
    function, where = UNARY[name]
    for shape, _ in SHAPES:
        x = values(shape, where, dtype, 1)
        check(name, [x], function(x.astype(np.float64)), dtype)


@pytest.mark.parametrize("name", [n for n in UNARY if n not in ("Log", "Log2", "Log10", "Atanh")])
def test_functions_of_integers_have_floating_results(name):
    function, where = UNARY[name]
    x = np.array(
        [1, 2, 3] if where.startswith("above") else [0, 1, 1] if where == "inside 1" else [-2, 0, 3], np.int32
    )
    out = np.zeros(3, np.float32)
    launch(name, [x, out])
    agrees(out, function(x.astype(np.float64)), np.float32)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_elements(name, dtype):
    for left, right in SHAPES:
        where = "above 0" if name.startswith("Pow") else "any"
        x, y = values(left, where, dtype, 1), values(right, where, dtype, 2)
        check(name, [x, y], BINARY[name](x.astype(np.float64), y.astype(np.float64)), dtype)


@pytest.mark.parametrize(
    "name", [n for n in BINARY if n not in ("Div", "Atan2", "LogAddExp", "PowTensorTensor")]
)
def test_functions_of_two_integers(name):
    x, y = np.array([[7, -7, 5, 0]], np.int32), np.array([[2], [-3]], np.int32)
    check(name, [x, y], BINARY[name](x, y), np.int32)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", SCALAR)
def test_functions_of_an_element_and_a_number(name, dtype):
    for shape, _ in SHAPES:
        x = values(shape, "above 0" if name.startswith("Pow") else "any", dtype, 1)
        # 1.5 is exact in every dtype
        check(name, [x], SCALAR[name](x.astype(np.float64), 1.5), dtype, [1.5])


def test_powers_of_integers():
    x, out = np.array([-2, -1, 0, 1, 3], np.int32), np.zeros(5, np.int32)
    launch("PowTensorScalar", [x, 3, out])
    assert out.tolist() == [-8, -1, 0, 1, 27]
    base = np.array([-2, -1, 1, 3], np.int32)
    out = np.zeros(4, np.int32)
    launch("PowTensorTensor", [base, np.full(4, -1, np.int32), out])
    assert out.tolist() == [0, -1, 1, 0]


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_], ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", BITS)
def test_bits(name, dtype):
    x, y = np.array([[0, 1, 6, 5]]).astype(dtype), np.array([[3], [1]]).astype(dtype)
    check(f"Bitwise{name}Tensor", [x, y], BITS[name](x, y), dtype)
    check(f"Bitwise{name}Scalar", [x], BITS[name](x, dtype(1)), dtype, [True if dtype is np.bool_ else 1])
    check("BitwiseNot", [x], np.invert(x), dtype)


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts(name):
    x, bits = np.array([1, 5, -16], np.int32), np.array([3, 1, 2], np.int32)
    check(name, [x, bits], SHIFTS[name](x, bits), np.int32)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8], ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", COMPARE)
def test_comparisons(name, dtype):
    for left, right in SHAPES:
        x = values(left, "above 0", np.float32, 1).round().astype(dtype)
        y = values(right, "above 0", np.float32, 2).round().astype(dtype)
        check(f"{name}Tensor", [x, y], COMPARE[name](x, y), np.bool_)
        check(f"{name}Scalar", [x], COMPARE[name](x, dtype(2)), np.bool_, [2])


def test_a_comparison_goes_into_any_dtype():
    out = np.zeros(3, np.float32)
    launch("GtScalar", [np.array([1.0, 2.0, NAN]), 1.5, out])
    assert out.tolist() == [0, 1, 0]


@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.float32], ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", LOGIC)
def test_logic(name, dtype):
    x, y = np.array([[0, 1, 2]]).astype(dtype), np.array([[0], [3]]).astype(dtype)
    check(name, [x, y], LOGIC[name](x, y), np.bool_)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16], ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", ONE_OF_LOGIC)
def test_kinds_of_numbers(name, dtype):
    check(name, [SPECIAL.astype(dtype)], ONE_OF_LOGIC[name](SPECIAL), np.bool_)


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", MORE)
def test_other_operators(name, dtype):
    for arguments, expected in MORE[name]:
        inputs = [
            a.astype(dtype) if isinstance(a, np.ndarray) and a.dtype == np.float64 else a for a in arguments
        ]
        count = sum(isinstance(a, np.ndarray) or a is None for a in inputs)
        if isinstance(inputs[0], float):
            count = len(inputs)
        reference = np.bool_ if expected.dtype == np.bool_ else dtype
        check(name, inputs[:count], expected, reference, inputs[count:])


@pytest.mark.parametrize("name", IN_PLACE_ONLY)
def test_operators_that_exist_in_place_only(name):
    own, rest, expected = IN_PLACE_ONLY[name]
    for target in (own.astype(np.float32), wide(own.astype(np.float32))):
        launch(name, [target, *rest])
        agrees(target, expected, np.float32)


def test_division_by_zero_gives_infinity_without_a_warning():
    out = np.zeros(3, np.float32)
    launch("Div", [np.array([1, -1, 0], np.float32), np.zeros(3, np.float32), out])
    assert out[0] == INF
    assert out[1] == -INF
    assert np.isnan(out[2])
    half = np.zeros(1, np.float16)
    launch("Exp", [np.array([20], np.float16), half])
    assert half[0] == INF


def test_no_operator_is_left_out():
    tried = {*UNARY, *BINARY, *SCALAR, *SHIFTS, *LOGIC, *ONE_OF_LOGIC, *MORE, *IN_PLACE_ONLY, "BitwiseNot"}
    tried |= {f"Bitwise{n}{kind}" for n in BITS for kind in ("Tensor", "Scalar")}
    tried |= {f"{n}{kind}" for n in COMPARE for kind in ("Tensor", "Scalar")}
    rows = (*elementwise.ROWS, *comparison.ROWS)
    assert {f"aclnn{n}" for n in tried} == {row.name for row in rows}
    assert len(rows) > 100


@pytest.mark.parametrize("name", loops())
def test_a_loop_equals_its_operator(name):
    """The ufunc alone gives the same as the operator, bit for bit, where it has a loop for the dtype."""
    ufunc = getattr(np, loops()[name])
    compared = 0
    for dtype in (np.float32, np.float16, np.int32, np.bool_):
        x = np.array([1, 2, 0, 1]).astype(dtype)
        inputs = [x, np.array([1, 3, 2, 1]).astype(dtype)][: ufunc.nin]
        factor = [1] if any(True for _ in prototype(name).attributes()) else []
        with np.errstate(all="ignore"):
            try:
                expected = ufunc(*inputs)
            except TypeError:
                continue
        if expected.dtype not in (dtype, np.bool_):
            continue
        out = np.zeros_like(expected)
        launch(name, [*inputs, *factor, out])
        np.testing.assert_array_equal(out, expected)
        compared += 1
    assert compared
