"""What a framework's tracer needs of an operator's call: the module ``torch``, a function to compile, marks.

A traced look into ``sys.modules`` walks through all of it, and an import meanwhile ends the compilation. So
the module is a variable here.

PyTorch's compiler counts recompilations by code object, and gives up after eight. For an object that is no
function it would compile a wrapper of its own, whose code all objects share. So each operator has a function
with code of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

torch: Any = None
"""The module, once the PyTorch host is present, which sets it."""
marks: list[Callable[[type], None]] = []
"""What is called with each class of operators that is defined later: Paddle knows methods one by one."""

_NAMES = ("__module__", "__name__", "__qualname__", "__doc__")


def function_of(bound: Any) -> Callable[..., Any]:
    """Return a function that calls an operator; all functions of one operator have the same code.

    The code alone is kept, because the function keeps the operator alive.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return bound(*args, **kwargs)

    kept = vars(bound)
    code = kept.get("_own_code") or kept.setdefault("_own_code", call.__code__.replace(co_name=bound.name))
    call.__code__ = code
    return functools.update_wrapper(call, bound, _NAMES, ())
