"""Expressions of corresponding functions: traced arguments are put in, and what they decide is decided."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from typing import Any, NamedTuple

_PURE = (
    *("all", "any", "bool", "dict", "enumerate", "float", "getattr", "int", "isinstance", "len", "list"),
    *("max", "min", "range", "reversed", "set", "slice", "sorted", "str", "sum", "tuple", "zip"),
)
BUILTINS = {name: getattr(builtins, name) for name in _PURE}
"""The functions of Python that an expression may call."""


class TensorArgument(NamedTuple):
    """What is known of a tensor when a network was traced; sizes may be symbols of PyTorch."""

    shape: tuple[Any, ...]
    dtype: str

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


class Unknown:
    """An argument that is a number of the run, such as a size that was computed. It decides nothing."""

    def __repr__(self) -> str:
        return "?"

    def _decide(self, *_: object) -> bool:
        raise TypeError("it is a number of the run")

    __eq__ = __ne__ = __bool__ = _decide
    __hash__ = None  # type: ignore[assignment]


def holds(condition: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether a condition on the arguments holds.

    >>> holds("ceil_mode and x.ndim == 4", {"ceil_mode": True, "x": TensorArgument((1, 2, 3, 3), "float32")})
    True
    """
    return bool(_value(ast.parse(condition, mode="eval").body, arguments))


def filled(expression: str, arguments: Mapping[str, Any]) -> str:
    """Return an expression with the numbers, flags and texts of a call in it; tensors stay names.

    >>> x = TensorArgument((2, 3), "float32")
    >>> filled("jnp.sum(x, axis=dim or None) if x.ndim else x", {"x": x, "dim": []})
    'jnp.sum(x, axis=None)'
    """
    tree = _Filled(arguments).visit(ast.parse(expression, mode="eval").body)
    return ast.unparse(ast.fix_missing_locations(tree))


def names(expression: str) -> set[str]:
    """Return the names that an expression reads, without those that its comprehensions bind.

    >>> sorted(names("[p * scale for p in padding]"))
    ['padding', 'scale']
    """
    return _names(ast.parse(expression, mode="eval"))


def _names(tree: ast.AST) -> set[str]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in found if isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return {node.id for node in found} - bound


def _value(tree: ast.expr, arguments: Mapping[str, Any]) -> Any:
    code = compile(ast.fix_missing_locations(ast.Expression(tree)), "<corresponding>", "eval")
    return eval(code, {"__builtins__": BUILTINS, **arguments})  # noqa: S307 - the text is of polyop's own table


def _literal(value: Any) -> ast.expr | None:
    """Return the expression of a value, or None if it is no number, text, None, or list of these."""
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):  # noqa: PLR0124 - NaN
        return ast.parse(f"float('{value}')", mode="eval").body
    if value is None or type(value) in (bool, int, float, complex, str):
        return ast.parse(repr(value), mode="eval").body
    if type(value) in (list, tuple):
        parts = [_literal(part) for part in value]
        if any(part is None for part in parts):
            return None
        kind = ast.List if isinstance(value, list) else ast.Tuple
        return kind([part for part in parts if part is not None], ast.Load())
    return None


class _Filled(ast.NodeTransformer):
    """Puts arguments in, and computes from the inside out what they decide."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = arguments
        self.values = {name for name, value in arguments.items() if _literal(value) is not None}

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.IfExp) and self._is_decided(node.test):
            return self.visit(node.body if _value(node.test, self.arguments) else node.orelse)
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            read = _names(node) - set(BUILTINS)
            if read <= self.values or (read <= set(self.arguments) and self._is_of_shapes(node)):
                literal = _literal(_value(node, self.arguments))
                if literal is not None:
                    return literal
        return self.generic_visit(node)

    def _is_decided(self, test: ast.expr) -> bool:
        if not _names(test) - set(BUILTINS) <= set(self.arguments):
            return False
        try:
            _value(test, self.arguments)
        except Exception:  # noqa: BLE001 - it needs the data of a tensor, or a number of the run
            return False
        return True

    @staticmethod
    def _is_of_shapes(node: ast.expr) -> bool:
        """Return whether it is ``x.ndim``: sizes stay, as a batch may have another."""
        return isinstance(node, ast.Attribute) and node.attr == "ndim"
