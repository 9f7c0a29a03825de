"""How operators of the IR are written in C, as tables."""

INFIX = {"+": "+", "-": "-", "*": "*", "/": "/", "&": "&", "|": "|", "^": "^"}
SHIFTS = {"<<": "shl", ">>": "shr"}
OF_INTEGERS = {"pow": "ipow", "fmod": "rem", "gcd": "gcd", "lcm": "lcm"}
"""Functions of integer.h that are declared where they are wanted."""
COMPARE = ("<", "<=", ">", ">=", "==", "!=")
