"""What an operator is made of, as a digest: whether another process has the same one."""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..core import registry
from ..core.operator import Operator


def digest(operator: Operator) -> str:
    """Return 16 hexadecimal digits of the schema, the fixed attributes and the kernels.

    Equal in every process of one Python version that defines the operator alike: libraries count by
    their bytes, Python functions by their code, constants, and the numbers and texts that they have as
    defaults or from the function around them (not by the variables of a module).
    """
    made = hashlib.sha256()
    fixed = (str(operator.schema), sorted(operator.attributes.items()), operator.target)
    made.update(repr(fixed).encode())
    whole = registry.known(operator.part_of) if operator.part_of else None  # the module's own library counts
    for kernel in (*operator.kernels, *(whole.operator.kernels if whole else ())):
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
    elif callable(getattr(kernel, "function", None)) and not hasattr(kernel, "label"):
        yield from _of_function(kernel.function)
    else:
        yield str(kernel).encode()


def _of_function(function: Callable[..., Any]) -> Iterator[bytes]:
    if isinstance(function, functools.partial):
        yield from _of_values((*function.args, *sorted(function.keywords.items())))
        yield from _of_function(function.func)
        return
    if not isinstance(function, (types.FunctionType, types.BuiltinFunctionType, np.ufunc, type)):
        function = getattr(function, "__func__", None) or type(function).__call__
    yield getattr(function, "__qualname__", getattr(function, "__name__", "")).encode()
    if isinstance(function, types.FunctionType):
        yield from _of_code(function.__code__)
        cells = [cell.cell_contents for cell in function.__closure__ or () if cell != _EMPTY]
        yield from _of_values((*(function.__defaults__ or ()), *cells))
        yield from _of_values(sorted((function.__kwdefaults__ or {}).items()))


_EMPTY = types.CellType()
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def _of_values(values: Any) -> Iterator[bytes]:
    """Yield the text of each plain value; of others, which may hold addresses, that of the type."""
    for value in values:
        if isinstance(value, tuple):
            yield from _of_values(value)
        elif isinstance(value, frozenset):
            yield repr(sorted(map(repr, value))).encode()  # in an order that each process has
        else:
            yield repr(value if isinstance(value, _PLAIN) else type(value).__qualname__).encode()


def _of_code(code: types.CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield repr(code.co_names).encode()
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _of_code(constant)
        else:
            yield from _of_values((constant,))
