"""What an operator is compared with: a function of a framework, or of a Python file."""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ..core.errors import ArgumentValueError
from .frameworks import NAMES, framework

MODULES = {
    "numpy": ("numpy", ""),
    "torch": ("torch.nn.functional", "torch", "torch.special", ""),
    "jax": ("jax.nn", "jax.numpy", "jax.scipy.special", "jax", ""),
}
"""Where a short name is looked for, in this order; "" is the name as it stands."""


@dataclass(frozen=True)
class Peer:
    """A function that computes what an operator computes.

    ``name``: as the user wrote it. ``takes_all``: whether it takes all arguments of the operator, not its
    tensors alone.
    """

    name: str
    framework: str
    function: Callable[..., Any]
    takes_all: bool = False


def find_peer(text: str, load: Callable[[str], ModuleType], host: str = "numpy") -> Peer:
    """Return the peer that a text names: ``torch:silu``, ``jax:jax.nn.silu``, ``numpy:exp``, ``FILE:name``.

    Literal arguments may follow, as in ``torch:softmax(dim=-1)``. ``load`` imports a file; a function of a
    file gets tensors of ``host``. Raises ``ArgumentValueError`` where there is no such function.

    >>> find_peer("numpy:sum(axis=-1)", lambda name: __import__(name)).function([[1, 2], [3, 4]])
    array([3, 7])
    """
    where, colon, rest = text.rpartition(":") if "(" not in text else _before_arguments(text)
    if not colon or not rest:
        rule = "must look like torch:silu, jax:jax.nn.silu, numpy:exp or FILE:function"
        raise ArgumentValueError("--against", rule, repr(text))
    name, positional, keywords = _arguments(rest, text)
    if where not in NAMES:
        function = getattr(load(where), name, None)
        if not callable(function):
            raise ArgumentValueError("--against", f"{where} must define the function {name}", repr(text))
        chosen = function
    else:
        framework(where)
        chosen = _find(where, name, text)
    if positional or keywords:
        chosen = functools.partial(_with_arguments, chosen, positional, keywords)
    return Peer(text, where if where in NAMES else host, chosen, takes_all=where not in NAMES)


def _before_arguments(text: str) -> tuple[str, str, str]:
    head, bracket, tail = text.partition("(")
    where, colon, name = head.rpartition(":")
    return where, colon, name + bracket + tail


def _with_arguments(function: Any, positional: list[Any], keywords: dict[str, Any], *tensors: Any) -> Any:
    return function(*tensors, *positional, **keywords)


def _arguments(text: str, whole: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Return the name and the literal arguments of ``name(1, dim=-1)``."""
    if "(" not in text:
        return text, [], {}
    try:
        call = ast.parse(text, mode="eval").body
        if isinstance(call, ast.Call):
            keywords = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords if k.arg}
            return ast.unparse(call.func), [ast.literal_eval(a) for a in call.args], keywords
    except (ValueError, SyntaxError):
        pass
    rule = "takes literal arguments in its brackets, as torch:softmax(dim=-1)"
    raise ArgumentValueError("--against", rule, repr(whole))


def _find(where: str, name: str, text: str) -> Callable[..., Any]:
    for module in MODULES[where]:
        path = f"{module}.{name}" if module else name
        found = _attribute(path)
        if callable(found):
            return found  # type: ignore[no-any-return]
    places = ", ".join(filter(None, MODULES[where]))
    raise ArgumentValueError("--against", f"must name a function of {places}, or its whole path", repr(text))


def _attribute(path: str) -> Any:
    """Return the object at a dotted path, or None."""
    parts = path.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(path.rsplit(".", len(parts) - count)[0])
        except ImportError:
            continue
        for part in parts[count:]:
            found = getattr(found, part, None)
        return found
    return None
