"""Suggestions of what to write instead of a call or an attribute that is not compiled, as tables."""

from __future__ import annotations

import ast
import difflib

from .language import WORDS

_LOOP = "write a loop over the elements"
FUNCTIONS = {
    "mean": "divide the sum of a row: sum(x[i]) / x.shape[1]",
    "cumsum": "add up in a loop: total += x[i], then y[i] = total",
    "matmul": "loop over i and j: c[i, j] = dot(a[i], b[:, j])",
    "amax": "write max(x[i]), of a row",
    "amin": "write min(x[i]), of a row",
    "argmax": "write a loop with an if: if x[i] > x[best]: best = i",
    "argmin": "write a loop with an if: if x[i] < x[best]: best = i",
    "any": "write a loop: found = found or x[i] > 0",
    "all": "write a loop: every = every and x[i] > 0",
    "select": "write where(condition, a, b)",
    "clip": "write min(max(x, low), high)",
    "clamp": "write min(max(x, low), high)",
    "print": "remove it: compiled code prints nothing",
    "enumerate": "write for i in range(x.shape[0]), and x[i] inside",
    "zip": "write for i in range(x.shape[0]), with x[i] and y[i] inside",
    "reversed": "write for i in range(n - 1, -1, -1)",
    "arange": "write for i in range(n)",
    "isinstance": "remove it: dtypes are known when the kernel is compiled",
    "maximum": "write max(a, b)",
    "minimum": "write min(a, b)",
    "absolute": "write abs(x)",
    "fabs": "write abs(x)",
    "rint": "write round(x)",
    "arctan": "write atan(x)",
    "arctan2": "write atan2(y, x)",
    "square": "write x * x",
    "reciprocal": "write 1 / x",
    "tan": "write sin(x) / cos(x)",
    "sinh": "write (exp(x) - exp(-x)) / 2",
    "cosh": "write (exp(x) + exp(-x)) / 2",
    "asin": "write atan2(x, sqrt(1 - x * x))",
    "acos": "write atan2(sqrt(1 - x * x), x)",
    "hypot": "write sqrt(x * x + y * y)",
    "log2": "write log(x) / log(2.0)",
    "log10": "write log(x) / log(10.0)",
    "log1p": "write log(1 + x)",
    "exp2": "write pow(2.0, x)",
    "sigmoid": "write 1 / (1 + exp(-x))",
    "relu": "write max(x, 0)",
    "zeros": "declare it: output_tensor(shape, dtype) is returned, allocate(shape, dtype) is not",
    "fill": "write a loop: y[i] = value",
    "copy": "copy in a loop: y[i] = x[i]",
    "item": "write x[i], or x[()] if x has no dimensions",
    "append": "write y[i] = ..., where y has its whole size from the start",
}
"""What to write, by the name of a function or method of Python, NumPy or PyTorch."""
for _name in ("empty", "ones", "full", "zeros_like", "empty_like", "ones_like", "full_like"):
    FUNCTIONS[_name] = FUNCTIONS["zeros"]
METHODS = {
    "sum": "write sum(x[i]), of a row",
    "prod": "write prod(x[i]), of a row",
    "dot": "write dot(x[i], w[:]), of two rows",
    "max": FUNCTIONS["amax"],
    "min": FUNCTIONS["amin"],
    "abs": "write abs(x[i])",
    "round": "write round(x[i])",
    "clone": FUNCTIONS["copy"],
    "reshape": "index the elements where they are: x[i * n + j]",
    "transpose": "swap the indices: x[j, i]",
    "tolist": _LOOP,
}
"""What to write for a method, where the function of the same name means something else, or there is none."""
ATTRIBUTES = {
    "T": "swap the indices: x[j, i]",
}
"""What to write, by the name of an attribute of a tensor."""
_NO_SUGGESTION = "a kernel can call only the words of the language: write out what the function computes"


def suggestion_for_call(node: ast.Call, bound: set[str]) -> str:
    """Return what to write for a call that is not a word of the language.

    ``bound`` are the names that the kernel binds: ``x.sum()`` is a method of a tensor, ``np.sum(x)`` is not.
    """
    if not isinstance(node.func, ast.Attribute):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        near = difflib.get_close_matches(name, WORDS, n=3, cutoff=0.8)
        return FUNCTIONS.get(name) or (f"did you mean {' or '.join(near)}?" if near else _NO_SUGGESTION)
    owner, name = node.func.value, node.func.attr
    root = owner
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if not isinstance(root, ast.Name) or root.id in bound:
        if name in ("astype", "to", "type") and node.args:
            return _cast(owner, node.args[0])
        return METHODS.get(name) or FUNCTIONS.get(name) or _LOOP
    if name in WORDS:
        return f"write {name}(...), without the module"
    return FUNCTIONS.get(name, _NO_SUGGESTION)


def _cast(owner: ast.expr, to: ast.expr) -> str:
    """Return what to write for ``x[i].astype(to)``."""
    element = ast.unparse(owner) if isinstance(owner, ast.Subscript) else "x[i]"
    name = to.value if isinstance(to, ast.Constant) else getattr(to, "attr", getattr(to, "id", None))
    word = WORDS.get(name) if isinstance(name, str) else None
    if name == "dtype":
        return f"write {element}: a store converts it"
    return f"write {word.name if word and word.kind == 'cast' else 'float32'}({element})"


def suggestion_for_text(text: str) -> str | None:
    """Return what to write for a number in a string, as in ``float("-inf")``; None if it is not a number.

    >>> suggestion_for_text("-inf"), suggestion_for_text("2.5"), suggestion_for_text("a")
    ('write -math.inf, with import math in the file', 'write 2.5', None)
    """
    try:
        value = repr(float(text))
    except ValueError:
        return None
    if value.strip("-") in ("inf", "nan"):
        constant = value.replace("inf", "math.inf").replace("nan", "math.nan")
        return f"write {constant}, with import math in the file"
    return f"write {value}"
