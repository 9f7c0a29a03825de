"""Expressions of corresponding functions: traced arguments are put in, and what they decide is decided."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from typing import Any, NamedTuple

from .corresponding_shortened import names as names_in
from .corresponding_shortened import shortened, value_of

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
    return bool(value_of(ast.parse(condition, mode="eval").body, BUILTINS, arguments))


def filled(expression: str, arguments: Mapping[str, Any]) -> str:
    """Return an expression with the numbers, flags and texts of a call in it.

    Tensors, and numbers of the run, stay names.

    >>> x = TensorArgument((2, 3), "float32")
    >>> filled("jnp.sum(x, axis=dim or None) if x.ndim else x", {"x": x, "dim": []})
    'jnp.sum(x, axis=None)'
    """
    return ast.unparse(shortened(ast.parse(expression, mode="eval").body, BUILTINS, arguments))


def names(expression: str) -> set[str]:
    """Return the names that an expression reads, without those that its comprehensions bind.

    >>> sorted(names("[p * scale for p in padding]"))
    ['padding', 'scale']
    """
    return names_in(ast.parse(expression, mode="eval"))
