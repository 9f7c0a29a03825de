"""Find the function inside its decorators; a decorator that does work is refused.

Only the function inside is compiled, so what such a decorator does would be lost without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.errors import UnsupportedError
from ...core.origin import of_function

TRANSPARENT = ("polyop", "mindspore")
"""Packages whose decorators only describe a function, and call it unchanged."""


def unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside decorators of polyop and MindSpore.

    Raises ``UnsupportedError`` for any other decorator.
    """
    while hasattr(function, "__wrapped__"):
        inner = function.__wrapped__
        # of a function made by a decorator, or of an object such as that of @polyop.kernel
        names: dict[str, Any] = getattr(function, "__globals__", {"__name__": type(function).__module__})
        if str(names.get("__name__", "")).split(".")[0] not in TRANSPARENT:
            raise _refusal(function, inner)
        function = inner
    return function


def _refusal(wrapper: Callable[..., Any], inner: Callable[..., Any]) -> UnsupportedError:
    name = getattr(inner, "__name__", str(inner))
    code = getattr(wrapper, "__code__", None)
    kind = type(wrapper)
    seen = f"{kind.__module__}.{kind.__qualname__}"
    if code is not None:
        qualified = getattr(code, "co_qualname", code.co_name)  # new in Python 3.11
        seen = f"{qualified} ({code.co_filename}:{code.co_firstlineno})"
    return UnsupportedError(
        f"the loop kernel {name}",
        "must not be wrapped: only the function inside is compiled, and what the wrapper does would be lost",
        seen,
        where=of_function(inner),
        hint=f"decorate the operator instead, or pass the function inside: {name}.__wrapped__",
    )
