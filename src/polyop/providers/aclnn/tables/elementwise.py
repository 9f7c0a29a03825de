"""Arithmetic and elementwise functions."""

from __future__ import annotations

from typing import Any

from .. import special
from ..row import Function, Row

_UNARY: tuple[tuple[str, Function, str | None, bool], ...] = (
    # name          function of an element                                NumPy's ufunc   has an in-place form
    ("Abs",         lambda xp, x: xp.abs(x),                              "absolute",     False),
    ("Neg",         lambda xp, x: -x,                                     "negative",     True),
    ("Exp",         lambda xp, x: xp.exp(x),                              "exp",          True),
    ("Exp2",        lambda xp, x: xp.exp2(x),                             "exp2",         True),
    ("Expm1",       lambda xp, x: xp.expm1(x),                            "expm1",        True),
    ("Log",         lambda xp, x: xp.log(x),                              "log",          True),
    ("Log1p",       lambda xp, x: xp.log1p(x),                            "log1p",        True),
    ("Log2",        lambda xp, x: xp.log2(x),                             "log2",         True),
    ("Log10",       lambda xp, x: xp.log10(x),                            "log10",        True),
    ("Sqrt",        lambda xp, x: xp.sqrt(x),                             "sqrt",         True),
    ("Rsqrt",       lambda xp, x: 1 / xp.sqrt(x),                         None,           True),
    ("Reciprocal",  lambda xp, x: 1 / x,                                  None,           True),
    ("Square",      lambda xp, x: x * x,                                  "square",       False),
    ("Sin",         lambda xp, x: xp.sin(x),                              "sin",          True),
    ("Cos",         lambda xp, x: xp.cos(x),                              "cos",          True),
    ("Tan",         lambda xp, x: xp.tan(x),                              "tan",          True),
    ("Asin",        lambda xp, x: xp.asin(x),                             "arcsin",       True),
    ("Acos",        lambda xp, x: xp.acos(x),                             "arccos",       True),
    ("Atan",        lambda xp, x: xp.atan(x),                             "arctan",       True),
    ("Sinh",        lambda xp, x: xp.sinh(x),                             "sinh",         True),
    ("Cosh",        lambda xp, x: xp.cosh(x),                             "cosh",         True),
    ("Tanh",        lambda xp, x: xp.tanh(x),                             "tanh",         True),
    ("Asinh",       lambda xp, x: xp.asinh(x),                            "arcsinh",      True),
    ("Acosh",       lambda xp, x: xp.acosh(x),                            "arccosh",      True),
    ("Atanh",       lambda xp, x: xp.atanh(x),                            "arctanh",      True),
    ("Erf",         special.erf,                                          None,           True),
    ("Erfc",        special.erfc,                                         None,           True),
    ("Floor",       lambda xp, x: xp.floor(x),                            "floor",        True),
    ("Ceil",        lambda xp, x: xp.ceil(x),                             "ceil",         True),
    ("Round",       lambda xp, x: xp.round(x),                            "rint",         True),
    ("Trunc",       lambda xp, x: xp.trunc(x),                            "trunc",        True),
    ("Frac",        lambda xp, x: x - xp.trunc(x),                        None,           True),
    ("Sign",        lambda xp, x: xp.sign(x),                             "sign",         False),
    ("Sigmoid",     special.sigmoid,                                      None,           True),
)  # fmt: skip

_BINARY: tuple[tuple[str, Function, str, bool], ...] = (
    # name                     function of two elements                   NumPy's ufunc   has an in-place form
    ("Mul",                    lambda xp, x, y: x * y,                    "multiply",     True),
    ("Div",                    lambda xp, x, y: xp.divide(x, y),          "divide",       True),
    ("Maximum",                lambda xp, x, y: xp.maximum(x, y),         "maximum",      False),
    ("Minimum",                lambda xp, x, y: xp.minimum(x, y),         "minimum",      False),
    ("FloorDivide",            lambda xp, x, y: x // y,                   "floor_divide", True),
    ("FmodTensor",             lambda xp, x, y: xp.fmod(x, y),            "fmod",         True),
    ("RemainderTensorTensor",  lambda xp, x, y: x % y,                    "remainder",    True),
    ("Atan2",                  lambda xp, x, y: xp.atan2(x, y),           "arctan2",      True),
    ("LogAddExp",              lambda xp, x, y: xp.logaddexp(x, y),       "logaddexp",    False),
    ("BitwiseAndTensor",       lambda xp, x, y: x & y,                    "bitwise_and",  False),
    ("BitwiseOrTensor",        lambda xp, x, y: x | y,                    "bitwise_or",   True),
    ("BitwiseXorTensor",       lambda xp, x, y: x ^ y,                    "bitwise_xor",  True),
)  # fmt: skip

_SCALAR: tuple[tuple[str, Function, bool], ...] = (
    # name                     function of an element and a number        has an in-place form
    ("Muls",                   lambda xp, x, s: x * s,                    True),
    ("Divs",                   lambda xp, x, s: x / s,                    True),
    ("FloorDivides",           lambda xp, x, s: x // s,                   True),
    ("FmodScalar",             lambda xp, x, s: xp.fmod(x, s),            True),
    ("RemainderTensorScalar",  lambda xp, x, s: x % s,                    True),
    ("BitwiseAndScalar",       lambda xp, x, s: x & s,                    False),
    ("BitwiseOrScalar",        lambda xp, x, s: x | s,                    True),
    ("BitwiseXorScalar",       lambda xp, x, s: x ^ s,                    True),
)  # fmt: skip


def _quotient(xp: Any, x: Any, y: Any, mode: int) -> Any:
    """Return ``x / y`` unrounded (0), rounded towards zero (1) or down (2)."""
    ratio = special.floating(xp, x) / y
    return ratio if mode == 0 else xp.trunc(ratio) if mode == 1 else xp.floor(ratio)


def _finite(xp: Any, x: Any, nan: float, positive: float, negative: float) -> Any:
    x = xp.where(xp.isnan(x), nan, x)
    x = xp.where(x == float("inf"), positive, x)
    return xp.where(x == -float("inf"), negative, x)


_OTHERS = (
    Row("aclnnAdd(Tensor self, Tensor other, Scalar alpha, Tensor(a!) out) -> ()",
        lambda xp, x, y, alpha: x + special.scaled(y, alpha), ufunc="add", inplace=True),
    Row("aclnnAdds(Tensor self, Scalar other, Scalar alpha, Tensor(a!) out) -> ()",
        lambda xp, x, s, alpha: x + s * alpha, inplace=True),
    Row("aclnnSub(Tensor self, Tensor other, Scalar alpha, Tensor(a!) out) -> ()",
        lambda xp, x, y, alpha: x - special.scaled(y, alpha), ufunc="subtract", inplace=True),
    Row("aclnnSubs(Tensor self, Scalar other, Scalar alpha, Tensor(a!) out) -> ()",
        lambda xp, x, s, alpha: x - s * alpha, inplace=True),
    Row("aclnnRsub(Tensor self, Tensor other, Scalar alpha, Tensor(a!) out) -> ()",
        lambda xp, x, y, alpha: y - special.scaled(x, alpha)),
    Row("aclnnRsubs(Tensor self, Scalar other, Scalar alpha, Tensor(a!) out) -> ()",
        lambda xp, x, s, alpha: s - special.scaled(x, alpha)),
    Row("aclnnDivMod(Tensor self, Tensor other, int mode, Tensor(a!) out) -> ()",
        _quotient, inplace=True),
    Row("aclnnDivMods(Tensor self, Scalar other, int mode, Tensor(a!) out) -> ()",
        _quotient, inplace=True),
    Row("aclnnRemainderScalarTensor(Scalar self, Tensor other, Tensor(a!) out) -> ()",
        lambda xp, s, y: s % y),
    Row("aclnnPowTensorTensor(Tensor self, Tensor exponent, Tensor(a!) out) -> ()",
        special.power, inplace=True),
    Row("aclnnPowTensorScalar(Tensor self, Scalar exponent, Tensor(a!) out) -> ()",
        special.power, inplace=True),
    Row("aclnnPowScalarTensor(Scalar self, Tensor exponent, Tensor(a!) out) -> ()", special.power),
    Row("aclnnAddcmul(Tensor self, Tensor tensor1, Tensor tensor2, Scalar value, Tensor(a!) out) -> ()",
        lambda xp, x, a, b, value: x + special.scaled(a * b, value), inplace=True),
    Row("aclnnAddcdiv(Tensor self, Tensor tensor1, Tensor tensor2, Scalar value, Tensor(a!) out) -> ()",
        lambda xp, x, a, b, value: x + special.scaled(xp.divide(a, b), value), inplace=True),
    Row("aclnnLerp(Tensor self, Tensor end, Tensor weight, Tensor(a!) out) -> ()",
        lambda xp, x, end, weight: x + weight * (end - x), inplace=True),
    Row("aclnnLerps(Tensor self, Tensor end, Scalar weight, Tensor(a!) out) -> ()",
        lambda xp, x, end, weight: x + weight * (end - x), inplace=True),
    Row("aclnnClamp(Tensor self, Scalar? clipValueMin, Scalar? clipValueMax, Tensor(a!) out) -> ()",
        special.clamp),
    Row("aclnnClampMin(Tensor self, Scalar clipValueMin, Tensor(a!) out) -> ()",
        lambda xp, x, low: special.clamp(xp, x, low, None)),
    Row("aclnnClampMax(Tensor self, Scalar clipValueMax, Tensor(a!) out) -> ()",
        lambda xp, x, high: special.clamp(xp, x, None, high), inplace=True),
    Row("aclnnClampTensor(Tensor self, Tensor? clipValueMin, Tensor? clipValueMax, Tensor(a!) out) -> ()",
        special.clamp),
    Row("aclnnNanToNum(Tensor self, float nan, float posinf, float neginf, Tensor(a!) out) -> ()",
        _finite, inplace=True),
    Row("aclnnRoundDecimals(Tensor self, int decimals, Tensor(a!) out) -> ()",
        lambda xp, x, decimals: xp.round(x * 10.0**decimals) / 10.0**decimals, inplace=True),
    Row("aclnnBitwiseNot(Tensor self, Tensor(a!) out) -> ()", lambda xp, x: ~x, ufunc="invert"),
    Row("aclnnLeftShift(Tensor self, Tensor shiftBits, Tensor(a!) out) -> ()",
        lambda xp, x, bits: x << bits, ufunc="left_shift"),
    Row("aclnnRightShift(Tensor input, Tensor shiftBits, Tensor(a!) out) -> ()",
        lambda xp, x, bits: x >> bits, ufunc="right_shift"),
)  # fmt: skip

ROWS = (
    *(
        Row(f"aclnn{n}(Tensor self, Tensor(a!) out) -> ()", f, ufunc, inplace)
        for n, f, ufunc, inplace in _UNARY
    ),
    *(
        Row(f"aclnn{n}(Tensor self, Tensor other, Tensor(a!) out) -> ()", f, ufunc, inplace)
        for n, f, ufunc, inplace in _BINARY
    ),
    *(
        Row(f"aclnn{n}(Tensor self, Scalar other, Tensor(a!) out) -> ()", f, None, inplace)
        for n, f, inplace in _SCALAR
    ),
    *_OTHERS,
)
