"""Comparisons, logic and selection."""

from __future__ import annotations

from typing import Any

from .. import special
from ..row import Function, Row

_COMPARE: tuple[tuple[str, Function, str], ...] = (
    # name  function of x and a tensor or number y         NumPy's ufunc
    ("Eq",  lambda xp, x, y: x == y,                       "equal"),
    ("Ne",  lambda xp, x, y: x != y,                       "not_equal"),
    ("Lt",  lambda xp, x, y: x < y,                        "less"),
    ("Le",  lambda xp, x, y: x <= y,                       "less_equal"),
    ("Gt",  lambda xp, x, y: x > y,                        "greater"),
    ("Ge",  lambda xp, x, y: x >= y,                       "greater_equal"),
)  # fmt: skip


def _close(xp: Any, x: Any, y: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    near = (xp.abs(x - y) <= atol + rtol * xp.abs(y)) & xp.isfinite(x) & xp.isfinite(y)
    return (x == y) | near | (xp.isnan(x) & xp.isnan(y) & equal_nan)


_OTHERS = (
    Row("aclnnLogicalAnd(Tensor self, Tensor other, Tensor(a!) out) -> ()",
        lambda xp, x, y: (x != 0) & (y != 0), ufunc="logical_and", inplace=True),
    Row("aclnnLogicalOr(Tensor self, Tensor other, Tensor(a!) out) -> ()",
        lambda xp, x, y: (x != 0) | (y != 0), ufunc="logical_or", inplace=True),
    Row("aclnnLogicalXor(Tensor self, Tensor other, Tensor(a!) out) -> ()",
        lambda xp, x, y: (x != 0) ^ (y != 0), ufunc="logical_xor"),
    Row("aclnnLogicalNot(Tensor self, Tensor(a!) out) -> ()",
        lambda xp, x: x == 0, ufunc="logical_not", inplace=True),
    Row("aclnnIsFinite(Tensor self, Tensor(a!) out) -> ()", lambda xp, x: xp.isfinite(x), ufunc="isfinite"),
    Row("aclnnIsInf(Tensor self, Tensor(a!) out) -> ()", lambda xp, x: xp.isinf(x), ufunc="isinf"),
    Row("aclnnIsPosInf(Tensor self, Tensor(a!) out) -> ()", lambda xp, x: x == float("inf")),
    Row("aclnnIsNegInf(Tensor self, Tensor(a!) out) -> ()", lambda xp, x: x == -float("inf")),
    Row("aclnnSignbit(Tensor self, Tensor(a!) out) -> ()",
        lambda xp, x: xp.signbit(special.floating(xp, x)), ufunc="signbit"),
    Row("aclnnIsClose(Tensor self, Tensor other, float rtol, float atol, bool equalNan, Tensor(a!) out)"
        " -> ()", _close),
    Row("aclnnEqual(Tensor self, Tensor other, Tensor(a!) out) -> ()",
        lambda xp, x, y: xp.asarray(x.shape == y.shape and bool(xp.all(x == y)))),
    Row("aclnnSWhere(Tensor condition, Tensor self, Tensor other, Tensor(a!) out) -> ()",
        lambda xp, condition, x, y: xp.where(condition != 0, x, y)),
    Row("aclnnInplaceMaskedFillScalar(Tensor(a!) selfRef, Tensor mask, Scalar value) -> ()",
        lambda xp, x, mask, value: xp.where(mask, value, x)),
    Row("aclnnInplaceMaskedFillTensor(Tensor(a!) selfRef, Tensor mask, Tensor value) -> ()",
        lambda xp, x, mask, value: xp.where(mask, xp.astype(value, x.dtype), x)),
)  # fmt: skip

ROWS = (
    *(
        Row(f"aclnn{n}Tensor(Tensor self, Tensor other, Tensor(a!) out) -> ()", f, ufunc, inplace=True)
        for n, f, ufunc in _COMPARE
    ),
    *(
        Row(f"aclnn{n}Scalar(Tensor self, Scalar other, Tensor(a!) out) -> ()", f, inplace=True)
        for n, f, _ in _COMPARE
    ),
    *_OTHERS,
)
