"""Expressions of corresponding functions: traced arguments are put in, and what they decide is decided."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from typing import Any, NamedTuple

from .corresponding_shortened import literal, shortened
from .corresponding_shortened import names as names_in

_PURE = (
    *("all", "any", "bool", "dict", "enumerate", "float", "getattr", "int", "len", "list"),
    *("max", "min", "range", "reversed", "set", "slice", "sorted", "str", "sum", "tuple", "zip"),
)


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


def _isinstance(value: Any, kind: Any) -> bool:
    """Return what ``isinstance`` does; raise ``TypeError`` for a number whose type only the run tells."""
    if isinstance(value, Unknown):
        raise TypeError("it is a number of the run")
    return isinstance(value, kind)


BUILTINS = {name: getattr(builtins, name) for name in _PURE} | {"isinstance": _isinstance}
"""The functions of Python that an expression may call."""


def holds(condition: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether a condition on the arguments holds.

    >>> holds("ceil_mode and x.ndim == 4", {"ceil_mode": True, "x": TensorArgument((1, 2, 3, 3), "float32")})
    True
    """
    return bool(_value(ast.parse(condition, mode="eval").body, arguments))


def filled(expression: str, arguments: Mapping[str, Any]) -> str:
    """Return an expression with the numbers, flags and texts of a call in it.

    Tensors, and numbers of the run, stay names.

    >>> x = TensorArgument((2, 3), "float32")
    >>> filled("jnp.sum(x, axis=dim or None) if x.ndim else x", {"x": x, "dim": []})
    'jnp.sum(x, axis=None)'
    """
    tree = _Filled(arguments).visit(ast.parse(expression, mode="eval").body)
    return ast.unparse(shortened(tree, BUILTINS))


def names(expression: str) -> set[str]:
    """Return the names that an expression reads, without those that its comprehensions bind.

    >>> sorted(names("[p * scale for p in padding]"))
    ['padding', 'scale']
    """
    return names_in(ast.parse(expression, mode="eval"))


def _value(tree: ast.expr, arguments: Mapping[str, Any]) -> Any:
    code = compile(ast.fix_missing_locations(ast.Expression(tree)), "<corresponding>", "eval")
    return eval(code, {"__builtins__": BUILTINS, **arguments})  # noqa: S307 - the text is of polyop's own table


class _Filled(ast.NodeTransformer):
    """Puts arguments in. The largest part that they decide is computed at once, as ``dim and dim[0]``."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = arguments
        self.values = {name for name, value in arguments.items() if literal(value) is not None}

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.IfExp) and self._is_decided(node.test):
            return self.visit(node.body if _value(node.test, self.arguments) else node.orelse)
        if isinstance(node, ast.Starred):
            return self.generic_visit(node)
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            read = names_in(node) - set(BUILTINS)
            if read <= self.values or (read <= set(self.arguments) and self._is_rank(node)):
                text = literal(_value(node, self.arguments))
                if text is not None:
                    return text
        return self.generic_visit(node)

    def _is_decided(self, test: ast.expr) -> bool:
        if not names_in(test) - set(BUILTINS) <= set(self.arguments):
            return False
        try:
            _value(test, self.arguments)
        except Exception:  # noqa: BLE001 - it needs the data of a tensor, or a number of the run
            return False
        return True

    @staticmethod
    def _is_rank(node: ast.expr) -> bool:
        """Whether a part is ``x.ndim``, which is put in. Sizes are not: the next batch may have another."""
        return isinstance(node, ast.Attribute) and node.attr == "ndim"
