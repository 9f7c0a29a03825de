"""How operators of the IR are written in C, as tables."""

INFIX = {"+": "+", "-": "-", "*": "*", "/": "/", "&": "&", "|": "|", "^": "^"}
SHIFTS = {"<<": "shl", ">>": "shr"}
OF_INTEGERS = {"pow": "ipow", "fmod": "rem", "gcd": "gcd", "lcm": "lcm"}
"""Functions of integer.h that are declared where they are wanted."""
COMPARE = ("<", "<=", ">", ">=", "==", "!=")
EXACT = frozenset(
    (
        "abs",
        "sign",
        "round",
        "floor",
        "ceil",
        "trunc",
        "sqrt",
        "rsqrt",
        "isnan",
        "isinf",
        "isfinite",
        "copysign",
    )
)
"""Functions of math.h that are always declared and have no separate precise version."""

OF_NO_LIBM = ("sigmoid", "lgamma", "digamma", "trigamma", "fmod")
"""Functions of math.h that libm does not have, or with a global variable for the sign (lgamma), or exact."""
