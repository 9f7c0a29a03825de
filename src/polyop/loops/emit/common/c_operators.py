"""How operators of the IR are written in C, as tables."""

INFIX = {"+": "+", "-": "-", "*": "*", "/": "/", "&": "&", "|": "|", "^": "^"}
SHIFTS = {"<<": "shl", ">>": "shr"}
COMPARE = ("<", "<=", ">", ">=", "==", "!=")
EXACT = frozenset(
    ("abs", "sign", "round", "floor", "ceil", "trunc", "sqrt", "rsqrt", "isnan", "isinf", "isfinite")
)
"""Functions of math.h that are always declared and have no separate precise version."""

OF_NO_LIBM = ("sigmoid", "lgamma", "digamma", "trigamma")
"""Functions of math.h that libm does not have, or with a global variable for the sign (lgamma)."""
