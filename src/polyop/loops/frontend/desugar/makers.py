"""Replace NumPy's functions that make arrays by declarations of tensors.

    y = np.zeros(x.shape, x.dtype)          y = output_tensor(x.shape, x.dtype)     (y is returned)
    t = np.full_like(x, 2)                  t = allocate(x.shape, x.dtype)
                                            t[:] = 2

What ``np.empty`` makes is anything at first in NumPy; here it is zeros, also in the plain Python run.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..byte_floats import as_byte_floats
from ..syntax_tree import walk
from .nodes import at, call, load


class Maker(NamedTuple):
    """A function that makes an array: its inputs, and how many of them a call must have.

    ``like``: the first input is a tensor of that shape. ``fill`` is the value of each element, 0 if the
    ``fill`` is None and there is no input of that name.
    """

    inputs: tuple[str, ...]
    least: int
    like: bool = False
    fill: int | None = None


MAKERS = {
    "zeros": Maker(("shape", "dtype"), 1),
    "empty": Maker(("shape", "dtype"), 1),
    "ones": Maker(("shape", "dtype"), 1, fill=1),
    "full": Maker(("shape", "fill_value", "dtype"), 2),
    "zeros_like": Maker(("a", "dtype"), 1, like=True),
    "empty_like": Maker(("a", "dtype"), 1, like=True),
    "ones_like": Maker(("a", "dtype"), 1, like=True, fill=1),
    "full_like": Maker(("a", "fill_value", "dtype"), 2, like=True),
    "copy": Maker(("a",), 1, like=True),
}
"""By the name in NumPy."""
OF_ZEROS = frozenset(("zeros", "zeros_like"))
"""Those whose zeros are part of the text: to read them is no mistake."""


def is_maker(value: Any) -> bool:
    """Return whether a value is one of these functions: a part of the language, not a helper.

    >>> is_maker(np.full), is_maker(np.sinc)
    (True, False)
    """
    return any(value is getattr(np, name) for name in MAKERS)


def made(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy that makes arrays, as plain Python runs it: none has random elements."""
    others: dict[Any, Callable[..., Any]] = {np.empty: np.zeros, np.empty_like: np.zeros_like}
    of_zeros = others.get(function, function)

    @functools.wraps(function)
    def make(*inputs: Any, **named: Any) -> Any:
        return as_byte_floats(of_zeros(*inputs, **named))

    return make


def declaration(name: str, node: ast.Call) -> ast.Call | None:
    """Return ``allocate(shape, dtype, fill=value)`` for a call of a maker, None if it has other inputs."""
    maker = MAKERS[name]
    given = dict(zip(maker.inputs, node.args, strict=False))
    given |= {item.arg: item.value for item in node.keywords if item.arg in maker.inputs}
    is_whole = len(given) == len(node.args) + len(node.keywords)
    if not is_whole or not set(maker.inputs[: maker.least]) <= set(given):
        return None
    shape = given.get("shape") or given["a"]
    fill = given.get("fill_value") or (ast.Constant(maker.fill) if maker.fill is not None else None)
    if maker.like and not isinstance(shape, ast.Name):
        return None
    own = ast.Attribute(shape, "dtype", ast.Load()) if maker.like else _dtype_of(given.get("fill_value"))
    dtype = given.get("dtype") or own
    if dtype is None:
        return None
    sizes = ast.Attribute(shape, "shape", ast.Load()) if maker.like else shape
    declared = at(node, call("allocate", sizes, dtype))
    fill = shape if name == "copy" else fill
    declared.keywords = [] if fill is None else [ast.keyword("fill", fill)]
    declared.made = name  # type: ignore[attr-defined]
    return declared


def _dtype_of(fill: ast.expr | None) -> ast.expr | None:
    """Return the dtype that NumPy gives an array of a number in the text; None for another value."""
    inner = fill.operand if isinstance(fill, ast.UnaryOp) else fill
    if inner is None:
        return ast.Constant("float64")
    if not isinstance(inner, ast.Constant) or not isinstance(inner.value, (bool, int, float)):
        return None
    return ast.Constant(np.asarray(inner.value).dtype.name)


def declared(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return a body in which each tensor that was made is an output if it is returned, and has its values."""
    returned = {
        n.id
        for one in body
        for r in walk(one)
        if isinstance(r, ast.Return)
        for n in walk(r)
        if isinstance(n, ast.Name)
    }
    return [new for node in body for new in _declared(node, returned)]


def _declared(node: ast.stmt, returned: set[str]) -> list[ast.stmt]:
    for field in ("body", "orelse"):
        if inner := getattr(node, field, None):
            setattr(node, field, [new for one in inner for new in _declared(one, returned)])
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not hasattr(node.value, "made"):
        return [node]
    value, name = node.value, node.targets[0] if isinstance(node, ast.Assign) else node.target
    assert isinstance(value, ast.Call)
    assert isinstance(name, ast.Name)
    if name.id in returned:
        value.func = at(node, load("output_tensor"))
    fills = [item.value for item in value.keywords]
    value.keywords = []
    sizes = value.args[0]
    is_scalar = isinstance(sizes, ast.Tuple) and not sizes.elts
    place: ast.expr = ast.Tuple([], ast.Load()) if is_scalar else ast.Slice()
    return [node, *(at(node, ast.Assign([_element(name.id, place)], fill)) for fill in fills)]


def _element(name: str, place: ast.expr) -> ast.Subscript:
    return ast.Subscript(load(name), place, ast.Store())
