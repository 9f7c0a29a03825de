"""What an operator is made of, as a digest: whether another process has the same one."""

from __future__ import annotations

import hashlib
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..core.operator import Operator


def digest(operator: Operator) -> str:
    """Return 16 hexadecimal digits of the schema, the fixed attributes and the kernels.

    Equal in every process that defines the operator alike: libraries count by their bytes, loop
    kernels by their text, Python functions by their code and constants (not by the variables that
    they read).
    """
    made = hashlib.sha256()
    fixed = (str(operator.schema), sorted(operator.attributes.items()), operator.target)
    made.update(repr(fixed).encode())
    for kernel in operator.kernels:
        for part in _parts(kernel):
            made.update(part)
    return made.hexdigest()[:16]


def _parts(kernel: Any) -> Iterator[bytes]:
    yield type(kernel).__name__.encode()
    yield kernel.device.encode()
    outline = getattr(kernel, "outline", None)
    path = getattr(kernel, "path", None)
    if outline is not None:
        yield from _of_function(kernel.function)
        yield repr((kernel.attributes, kernel.precise, kernel.debug)).encode()
    elif isinstance(path, Path):
        yield kernel.name.encode()
        yield hashlib.sha256(path.read_bytes()).digest()
    elif isinstance(getattr(kernel, "function", None), types.FunctionType) and not hasattr(kernel, "label"):
        yield from _of_function(kernel.function)
    else:
        yield str(kernel).encode()


def _of_function(function: Callable[..., Any]) -> Iterator[bytes]:
    code = getattr(function, "__code__", None)
    yield getattr(function, "__qualname__", repr(type(function))).encode()
    if code is not None:
        yield from _of_code(code)


def _of_code(code: types.CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield repr(code.co_names).encode()
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _of_code(constant)
        else:
            yield repr(constant).encode()
