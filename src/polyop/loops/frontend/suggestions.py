"""What to write instead of a call that is not compiled, as tables."""

from __future__ import annotations

import ast
import difflib

from .language import WORDS

_LOOP = "write a loop over the elements"
FUNCTIONS = {
    "sum": "add up in a loop: total += x[i]",
    "mean": "add up in a loop, then divide: total / x.shape[0]",
    "prod": "multiply in a loop: product *= x[i]",
    "cumsum": "add up in a loop: total += x[i], then y[i] = total",
    "dot": "add up in a loop: total += x[i] * y[i]",
    "matmul": "add up in three loops: y[i, j] += a[i, k] * b[k, j]",
    "amax": "write a loop: best = max(best, x[i])",
    "amin": "write a loop: best = min(best, x[i])",
    "argmax": "write a loop with an if: if x[i] > x[best]: best = i",
    "argmin": "write a loop with an if: if x[i] < x[best]: best = i",
    "any": "write a loop: found = found or x[i] > 0",
    "all": "write a loop: every = every and x[i] > 0",
    "where": "write a if condition else b",
    "select": "write a if condition else b",
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
    "item": "write x[i], or x[()] of a tensor without dimensions",
    "append": "write y[i] = ..., into a tensor whose size is known",
}
"""By the name of a function or a method of Python, NumPy or PyTorch: what to write."""
for _name in ("empty", "ones", "full", "zeros_like", "empty_like", "ones_like", "full_like"):
    FUNCTIONS[_name] = FUNCTIONS["zeros"]
METHODS = {
    "max": FUNCTIONS["amax"],
    "min": FUNCTIONS["amin"],
    "abs": "write abs(x[i])",
    "round": "write round(x[i])",
    "clone": FUNCTIONS["copy"],
    "reshape": "index the elements where they are: x[i * n + j]",
    "transpose": "swap the indices: x[j, i]",
    "tolist": _LOOP,
}
"""What means something else as a method, or is one only."""
ATTRIBUTES = {
    "size": "multiply the sizes: x.shape[0] * x.shape[1]",
    "ndim": "write len(x.shape)",
    "T": "swap the indices: x[j, i]",
}
"""By the name of an attribute of a tensor."""
_OTHERWISE = "only the words of the language are called: write in place what it does"


def instead_of(node: ast.Call, bound: set[str]) -> str:
    """Return what to write for a call of no word of the language; ``bound`` are the function's names."""
    if not isinstance(node.func, ast.Attribute):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        near = difflib.get_close_matches(name, WORDS, n=3, cutoff=0.8)
        return FUNCTIONS.get(name) or (f"the nearest are {', '.join(near)}" if near else _OTHERWISE)
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
    return FUNCTIONS.get(name, _OTHERWISE)


def _cast(owner: ast.expr, to: ast.expr) -> str:
    """Return the cast word for ``x[i].astype(to)``."""
    of = ast.unparse(owner) if isinstance(owner, ast.Subscript) else "x[i]"
    last = to.value if isinstance(to, ast.Constant) else getattr(to, "attr", getattr(to, "id", None))
    word = WORDS.get(last) if isinstance(last, str) else None
    if last == "dtype":
        return f"write {of}: a store converts it"
    return f"write {word.name if word and word.kind == 'cast' else 'float32'}({of})"


def instead_of_text(text: str) -> str | None:
    """Return what to write for a number that is spelt as text, as in ``float("-inf")``.

    >>> instead_of_text("-inf"), instead_of_text("Infinity"), instead_of_text("a")
    ('write -math.inf, with import math in the file', 'write math.inf, with import math in the file', None)
    """
    try:
        value = repr(float(text))
    except ValueError:
        return None
    if value.strip("-") in ("inf", "nan"):
        written = value.replace("inf", "math.inf").replace("nan", "math.nan")
        return f"write {written}, with import math in the file"
    return f"write {value}"
