"""Suggestions of what to write instead of a call or an attribute that is not compiled, as tables."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Sequence

from .language import WORDS

_LOOP = "write a loop over the elements"
FUNCTIONS = {
    "cumsum": "add up in a loop: total += x[i], then y[i] = total",
    "matmul": "loop over i and j: c[i, j] = dot(a[i], b[:, j])",
    "amax": "write max(x[i]), of a row",
    "amin": "write min(x[i]), of a row",
    "argmax": "write a loop with an if: if x[i] > x[best]: best = i",
    "argmin": "write a loop with an if: if x[i] < x[best]: best = i",
    "select": "write where(condition, a, b)",
    "clamp": "write clip(x, low, high)",
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
    "arcsin": "write asin(x)",
    "arccos": "write acos(x)",
    "gamma": "write exp(lgamma(x))",
    "gammaln": "write lgamma(x)",
    "psi": "write digamma(x)",
    "polygamma": "write trigamma(x)",
    "expit": "write sigmoid(x)",
    "arctan2": "write atan2(y, x)",
    "reciprocal": "write 1 / x",
    "fmax": "write a if b != b else max(a, b)",
    "fmin": "write a if b != b else min(a, b)",
    "nan_to_num": "write 0.0 if x != x else x",
    "logaddexp": "write max(a, b) + log1p(exp(-abs(a - b)))",
    "heaviside": "write where(x > 0, 1.0, where(x < 0, 0.0, y))",
    "signbit": "write copysign(1.0, x) < 0",
    "sinc": "write where(x == 0, 1.0, sin(np.pi * x) / (np.pi * x))",
    "norm": "of a row: sqrt(dot(x[i], x[i]))",
    "outer": "loop over i and j: c[i, j] = a[i] * b[j]",
    "einsum": "its loops, as in c[i, j] += a[i, k] * b[k, j]",
    "searchsorted": "the loop of a bisection: while lo < hi: mid = (lo + hi) // 2 ...",
    "bincount": "a loop: count[x[i]] += 1",
    "roll": "index x[(i - shift) % n]",
    "flip": "index x[n - 1 - i]",
    "sort": "sort outside of the kernel, or write the loops of a sort",
    "log10": "write log(x) / log(10.0)",
    "relu": "write max(x, 0)",
    "zeros": "make it in a line of its own: t = np.zeros(shape, dtype)",
    "full": "make it in a line of its own: t = np.full(shape, value, dtype)",
    "fill": "write a loop: y[i] = value",
    "copy": "make it in a line of its own: t = x.copy(), of a tensor",
    "item": "write x[i], or x[()] if x has no dimensions",
    "append": "write y[i] = ..., where y has its whole size from the start",
}
"""What to write, by the name of a function or method of Python, NumPy or PyTorch."""
FUNCTIONS |= {
    "list": "a table of numbers is [1.0, 2.0]; a tensor of its own is allocate(shape, dtype)",
    "str": "remove it: strings are not values of a kernel",
    "sorted": "sort outside of the kernel, or write the loops of a sort",
    "map": "write a loop, and the call in it",
    "type": 'compare the dtype: if x.dtype == "float32"',
    "slice": "write x[a:b]",
    "tqdm": "write its range: for i in range(n)",
    "ndindex": "write for i, j in grid(x.shape)",
    "issubdtype": 'compare the dtype: if x.dtype == "float32"',
    "breakpoint": "call .python(...) of the kernel, which runs it as Python",
}
for _name in ("tuple", "set", "dict", "frozenset"):
    FUNCTIONS[_name] = FUNCTIONS["list"]
for _name, _operator in {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/", "floor_divide": "//",
    "float_power": "**", "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=",
}.items():  # fmt: skip
    FUNCTIONS[_name] = f"write a {_operator} b"
FUNCTIONS |= {"negative": "write -x", "positive": "write x"}
for _name in ("filter", "iter", "next", "reduce"):
    FUNCTIONS[_name] = FUNCTIONS["map"]
FUNCTIONS["trange"] = FUNCTIONS["tqdm"]
for _name in ("repr", "format", "bytes"):
    FUNCTIONS[_name] = FUNCTIONS["str"]
INDICES: dict[type[ast.AST], str] = {
    ast.List: "write a loop: y[i] = x[index[i]]",
    ast.Compare: "write a loop with an if: if x[i] > 0: y[i] = ...",
}
"""What to write for an index that picks several elements."""
INPUTS = {
    "sum": "of a part along an axis write the row: sum(x[i]), sum(x[:, j])",
    "prod": "of a part along an axis write the row: prod(x[i]), prod(x[:, j])",
    "pow": "write pow(x, y) % n",
    "dot": "a third tensor is written after it",
}
"""What to write for a call with too many inputs, by the word."""
for _name in ("empty", "ones", "zeros_like", "empty_like", "ones_like", "full_like", "array"):
    FUNCTIONS[_name] = FUNCTIONS["zeros"]
METHODS = {
    "size": "write x.shape[k], or x.size for the number of elements",
    "dim": "write x.ndim",
    "numel": "write x.size",
    "view": "index the elements where they are: x[i * n + j]",
    "flatten": "write a loop for each dimension",
    "ravel": "write a loop for each dimension",
    "T": "swap the indices: x[j, i]",
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
    "mT": "swap the indices: x[j, i]",
    "flat": "write a loop for each dimension",
    "device": "remove it: a kernel runs where its tensors are",
    "kind": 'compare the dtype: if x.dtype == "float32"',
    "name": 'compare the dtype: if x.dtype == "float32"',
    "itemsize": 'compare the dtype: if x.dtype == "float32"',
    "strides": "index the elements: x[i, j] is right for all strides",
}
"""What to write, by the name of an attribute of a tensor."""
_NO_SUGGESTION = (
    "a kernel can call only the words of the language and functions made by def: write out what it computes"
)


def suggestion_for_rank(shape: ast.expr, seen: int, needed: int) -> str | None:
    """Return what to pass, where a kernel reads more dimensions of ``x.shape`` than the call's tensor has."""
    if not isinstance(shape, ast.Attribute) or shape.attr != "shape":
        return None
    name = ast.unparse(shape.value)
    passed = "is a single number" if seen == 0 else f"has only {seen}"
    way = f": pass {name}.reshape({', '.join('1' * needed)})" if seen == 0 else ""
    return f"the kernel needs {needed} dimension{'s' * (needed > 1)} of {name}, which {passed} here{way}"


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


def suggestion_for_loop(over: ast.expr) -> str:
    """Return what to write for what a for loop runs over."""
    function = over.func if isinstance(over, ast.Call) else None
    name = function.attr if isinstance(function, ast.Attribute) else ""
    if name == "ndindex":
        return FUNCTIONS[name]
    if isinstance(over, ast.Attribute) and over.attr == "shape":
        shape = ast.unparse(over)
        return f"write the sizes one by one, as {shape}[0]; for all elements: in grid({shape})"
    end = "n"
    if isinstance(over, ast.Name):
        end = f"{over.id}.shape[0]"
    elif _is_number(over):
        end = ast.unparse(over)
    elif name == "arange" and isinstance(over, ast.Call):
        end = ", ".join(map(ast.unparse, over.args))
    return f"write for i in range({end})"


def _is_number(node: ast.expr) -> bool:
    """Whether an expression is a number or a size, such as 10 or ``x.shape[0]``."""
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, str)
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute)


def suggestion_for_target(node: ast.expr) -> str | None:
    """Return what to write for the left side of an assignment that is neither a name nor an element."""
    if isinstance(node, ast.Attribute) and node.attr in ("real", "imag"):
        return _whole(ast.unparse(node.value), node.attr)
    if isinstance(node, ast.Attribute):
        return "the shape and dtype of a tensor are given once, by output_tensor(shape, dtype)"
    return "write a, b = x[0], x[1]: one name for each value" if isinstance(node, ast.Starred) else None


def suggestion_for_elements(value: ast.expr, index: Sequence[ast.expr], use: ast.expr_context) -> str | None:
    """Return what to write for elements of what a word makes of a tensor: ``z.real[i]``, ``exp(x)[i]``."""
    match value:
        case ast.Call(func=ast.Name(id=word), args=[ast.Name(id=tensor)]) if word in WORDS:
            element = f"{tensor}[{', '.join(map(ast.unparse, index))}]"
            if word not in ("real", "imag", "conj"):
                return f"write {word}({element})"
            if isinstance(use, ast.Store):
                return _whole(element, word)
            return f"write {element}.{word}{'()' * (word == 'conj')}"
    return None


def _whole(element: str, part: str) -> str:
    """Return what to write to store one part of a complex number."""
    parts = {"real": f"re, {element}.imag", "imag": f"{element}.real, im"}.get(part, "re, im")
    return f"store the whole number: {element} = complex({parts})"


def suggestion_for_attribute(node: ast.Attribute) -> str:
    """Return what to write for an attribute of an element or of ``x.dtype``."""
    return ATTRIBUTES.get(node.attr, "write the element itself: x[i]")


def suggestion_for_outside(name: str, value: object) -> str:
    """Return what to write for a value of the module or the function around that is not a number."""
    if isinstance(value, str) or value is None:
        return f"make it a parameter: {_CHOICE}"
    if isinstance(value, (dict, set)):
        return f"pass its numbers as attributes or in a tensor; {name} as a tuple of numbers could be read"
    return f"make {name} a parameter"


_CHOICE = 'mode: str = "mean", and if mode == "mean":'


def suggestion_for_constant(value: object) -> str | None:
    """Return what to write for a literal that is not a number."""
    if isinstance(value, str):
        return suggestion_for_text(value) or f"a string is compared with a parameter: {_CHOICE}"
    if value is None:
        return 'write a number, such as 0.0 or math.nan; a missing tensor is b: "Tensor | None" = None'
    return None


def suggestion_for_text(text: str) -> str | None:
    """Return what to write for a number in a string, as in ``float("-inf")``; None if it is not a number.

    >>> [suggestion_for_text(text) for text in ("-inf", "2.5", "3", "a")]
    ['write -math.inf, with import math in the file', 'write 2.5', 'write 3', None]
    """
    try:
        value = repr(int(text)) if text.isdecimal() else repr(float(text))
    except ValueError:
        return None
    if value.strip("-") in ("inf", "nan"):
        constant = value.replace("inf", "math.inf").replace("nan", "math.nan")
        return f"write {constant}, with import math in the file"
    return f"write {value}"
