"""C text of a value and its type, and that of a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...ir.grammar import Const
from .ctypes import computed


@dataclass(frozen=True)
class Value:
    """C text and its element type. ``truth``: a condition; as a vector, a mask with elements ``elem``."""

    text: str
    elem: str
    vec: bool = False
    truth: bool = False


_SPECIAL = {"nan": '__builtin_nan("")', "inf": "__builtin_inf()", "-inf": "(-__builtin_inf())"}


def constant(expr: Const) -> Value:
    """Return a number in C."""
    elem = computed(expr.type)
    value: Any = expr.value
    if elem == "bool":
        return Value(str(int(bool(value))), "bool", truth=True)
    if elem[0] == "f":
        number = float(value)
        text = _SPECIAL.get(repr(number), repr(number))
        return Value(f"(({elem}){text})" if text[0] in "-_(" else text + "f" * (elem == "f32"), elem)
    text = f"{int(value)}{'ll' if abs(int(value)) > 2**31 - 1 else ''}"
    if int(value) == -(2**63):
        text = "(-9223372036854775807ll - 1)"
    if elem[0] == "u" and int(value) > 2**31 - 1:
        text = f"{int(value)}ull"
    return Value(f"({elem}){text}" if elem != "i64" or value < 0 else text, elem)
