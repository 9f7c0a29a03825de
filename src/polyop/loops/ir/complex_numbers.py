"""Typed operators of complex numbers. Only the front end has them: it replaces them by pairs of real ones.

>>> from polyop.loops.ir.grammar import Type, Var
>>> z = Var("z", Type("complex64"))
>>> operate_complex("*", (z, z)).type.dtype, operate_complex("abs", (z,)).type.dtype
('complex64', 'float32')
"""

from __future__ import annotations

from .grammar import BOOL, INT, PARTS, Const, Expr, Op, Type
from .types import Refusal, cast, common

MAX_POWER = 64
"""The largest power that is a chain of products."""
RESULTS = {
    **dict.fromkeys(("+", "-", "*", "/", "neg", "conj", "stop_gradient"), "same"),
    **dict.fromkeys(("exp", "log", "sqrt", "sin", "cos", "sinh", "cosh"), "same"),
    **dict.fromkeys(("abs", "real", "imag", "angle"), "part"),
    **dict.fromkeys(("==", "!=", "isnan", "isinf", "isfinite"), "bool"),
}
"""The operators, and whether they give a complex number, one of the dtype of its parts, or a bool."""
_ORDER = "compare abs(z) or real(z)"
_HINTS = {
    **dict.fromkeys(("<", "<=", ">", ">=", "max", "min"), _ORDER),
    "tan": "write sin(z) / cos(z)",
    "tanh": "write sinh(z) / cosh(z)",
    "sign": "write z / abs(z)",
    "rsqrt": "write 1 / sqrt(z)",
    "log2": "write log(z) / log(2.0)",
    "exp2": "write exp(z * log(2.0))",
}


def operate_complex(name: str, arguments: tuple[Expr, ...]) -> Expr:
    """Return an operator of numbers one of which is complex; raise ``Refusal`` for one without a meaning."""
    common_type = common(arguments)
    if name == "pow" and _is_small_power(arguments):
        return Op("pow", (arguments[0], arguments[1]), arguments[0].type)
    if name == "pow":
        raise _no_power(arguments[1])
    if name not in RESULTS:
        hint = _HINTS.get(name, "write it for real(z) and imag(z)")
        raise Refusal(f"{name} of complex numbers is not compiled", common_type, hint)
    result = {"same": common_type, "part": part_of(common_type), "bool": BOOL}[RESULTS[name]]
    return Op(name, tuple(cast(a, common_type) for a in arguments), result)


def _no_power(exponent: Expr) -> Refusal:
    """Return the error about a power with this exponent, with the shortest form of what it means."""
    hint, seen = "write exp(w * log(z)) for z ** w", str(exponent.type)
    if isinstance(exponent, Const):
        seen = str(exponent.value)
        roots = {"0.5": "sqrt(z)", "-0.5": "1 / sqrt(z)"}
        is_whole = (
            exponent.type.dtype not in PARTS and seen.endswith(".0") and abs(exponent.value) <= MAX_POWER
        )
        hint = (
            f"write z ** {int(exponent.value)}"
            if is_whole
            else f"write {roots[seen]}"
            if seen in roots
            else hint
        )
    exponents = f"a constant int of at most {MAX_POWER}"
    rule = f"a power of a complex number is compiled only if the exponent is {exponents}"
    return Refusal(rule, seen, hint)


def _is_small_power(arguments: tuple[Expr, ...]) -> bool:
    base, exponent = arguments
    whole = isinstance(exponent, Const) and exponent.type == INT and base.type.dtype in PARTS
    return whole and isinstance(exponent, Const) and abs(exponent.value) <= MAX_POWER


def part_of(of: Type) -> Type:
    """Return the type of the real part of a complex number."""
    return Type(PARTS[of.dtype], of.weak)
