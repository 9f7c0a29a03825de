"""What a gradient rule reads: a tensor that it does not read need not be kept until backward."""

from __future__ import annotations

import dis
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(frozen=True)
class Uses:
    """Whether the rule reads the outputs (all, or one by one), and which of the inputs."""

    inputs: tuple[bool, ...]
    outputs: bool | tuple[bool, ...]


@lru_cache(maxsize=4096)
def used_by_rule(rule: Callable[..., Any] | None, inputs: int) -> Uses:
    """Return what a rule of ``inputs`` inputs reads; everything, where that is not plain to see.

    >>> used_by_rule(lambda x, out, dout: (2 * x * dout,), 1)
    Uses(inputs=(True,), outputs=False)
    """
    everything = Uses((True,) * inputs, True)
    if not isinstance(rule, types.FunctionType):
        return Uses((False,) * inputs, False) if rule is None else everything
    code = rule.__code__
    names = code.co_varnames[: code.co_argcount]
    if len(names) != inputs + 2 or code.co_flags & 0x0C:  # *args or **kwargs
        return everything
    read = set(code.co_cellvars)
    for instruction in dis.get_instructions(code):
        if "LOAD" in instruction.opname:  # also STORE_FAST_LOAD_FAST, of two names
            value = instruction.argval
            read.update(value if isinstance(value, tuple) else (value,))
    if {"locals", "vars", "eval", "exec", "dir"} & set(code.co_names):
        return everything
    return Uses(tuple(name in read for name in names[:inputs]), names[inputs] in read)
