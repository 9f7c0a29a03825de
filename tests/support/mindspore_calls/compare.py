"""The comparison of the two sides: value, structure, dtype, shape and gradient."""

from __future__ import annotations

import numpy as np

TOLERANCE = {"Float16": 4e-3, "BFloat16": 2e-2, "Float32": 2e-5, "Float64": 1e-5}
"""By dtype. MindSpore computes some functions of Float64 in Float32."""


def difference(ours, theirs):  # noqa: PLR0911 - one return for each kind of result
    """Return what differs between two described results, or an empty string."""
    if ours == theirs:
        return ""
    if ours is None or theirs is None or ours[0] != theirs[0]:
        return f"{shown(ours)}, and MindSpore's is {shown(theirs)}"
    if ours[0] in ("tensor", "array"):
        if ours[1:3] != theirs[1:3]:
            return f"{shown(ours)}, and MindSpore's is {shown(theirs)}"
        tolerance = TOLERANCE.get(ours[1], 0)
        if np.allclose(ours[3], theirs[3], rtol=tolerance, atol=tolerance, equal_nan=True):
            return ""
        return f"{shown(ours)} {ours[3][:6]}, and MindSpore's is {theirs[3][:6]}"
    if ours[0] in ("tuple", "list", "dict", "parameter") and len(ours) == len(theirs):
        return next((text for a, b in zip(ours[1:], theirs[1:], strict=True) if (text := item(a, b))), "")
    return f"{shown(ours)}, and MindSpore's is {shown(theirs)}"


def item(ours, theirs):
    if isinstance(ours, list) and isinstance(theirs, list):
        if ours and isinstance(ours[0], str) and len(ours) == 2 and isinstance(ours[1], list):  # of a dict
            return difference(ours[1], theirs[1]) if ours[0] == theirs[0] else f"{ours[0]}, {theirs[0]}"
        return difference(ours, theirs)
    return "" if ours == theirs else f"{ours!r}, and MindSpore's is {theirs!r}"


def shown(value):
    """Return a result in few words."""
    if value is None:
        return "nothing"
    if value[0] in ("tensor", "array"):
        return f"{value[1]}{value[2]}"
    if value[0] in ("tuple", "list"):
        return f"{value[0]}({', '.join(map(shown, value[1:]))})"
    return " ".join(map(str, value))[:160]


def compared(ours, theirs):
    """Return (calls that both answer, calls that only polyop answers, differences by call)."""
    both, only_ours, differences = 0, [], {}
    for call, (value, gradient) in ours.items():
        their_value, their_gradient = theirs[call]
        if their_value[0] == "error":
            if value[0] != "error":
                only_ours.append((call, their_value[1]))
            continue
        both += 1
        text = difference(value, their_value)
        if not text and gradient != their_gradient and (their_gradient or [""])[0] != "error":
            text = (words := difference(gradient, their_gradient)) and f"gradient: {words}"
        if text:
            differences[call] = text
    return both, only_ours, differences
