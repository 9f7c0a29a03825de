"""What a gradient rule reads: a tensor that it does not read need not be kept for the gradient.

Of an author's function this is read from its bytecode.
"""

from __future__ import annotations

import dis
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(frozen=True)
class Uses:
    """Which inputs a rule reads, and which outputs: one flag for all of them, or one each."""

    inputs: tuple[bool, ...]
    outputs: bool | tuple[bool, ...]


@lru_cache(maxsize=4096)
def used_by_rule(rule: Callable[..., Any] | None, inputs: int) -> Uses:
    """Return what a rule of an operator with ``inputs`` inputs reads; everything, if that cannot be seen.

    >>> used_by_rule(lambda x, out, dout: (2 * x * dout,), 1)
    Uses(inputs=(True,), outputs=False)
    """
    everything = Uses((True,) * inputs, True)
    if not isinstance(rule, types.FunctionType):
        return Uses((False,) * inputs, False) if rule is None else everything
    code = rule.__code__
    names = code.co_varnames[: code.co_argcount]
    if len(names) != inputs + 2 or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return everything
    read = set(code.co_cellvars)  # an inner function may read these
    for instruction in dis.get_instructions(code):
        if "LOAD" in instruction.opname:  # STORE_FAST_LOAD_FAST and others load one of two names
            value = instruction.argval
            read.update(value if isinstance(value, tuple) else (value,))
    # these can read any variable without naming it
    if {"locals", "vars", "eval", "exec", "dir"} & set(code.co_names):
        return everything
    return Uses(tuple(name in read for name in names[:inputs]), names[inputs] in read)
