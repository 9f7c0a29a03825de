"""What an operator is made of, as a digest: whether another process has the same one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..kernels import described
from . import registry
from .operator import Operator


def digest(operator: Operator) -> str:
    """Return 16 hexadecimal digits of the schema, the attributes that no call passes and the kernels.

    Equal in every process of one Python version that defines the operator alike: libraries count by
    their bytes, loop kernels by their text and the numbers that it reads, Python functions by their
    code and by what they hold (:mod:`polyop.kernels.described` says how), not by the variables of a module.
    """
    made = hashlib.sha256()
    constants = [(i.target, [(c.name, c.value) for c in i.constants]) for i in operator.information]
    fixed = (str(operator.schema), sorted(operator.attributes.items()), constants, operator.target)
    made.update(repr(fixed).encode())
    whole = registry.known(operator.part_of) if operator.part_of else None  # the module's own library counts
    for kernel in (*operator.kernels, *(whole.operator.kernels if whole else ())):
        for part in _parts(kernel):
            made.update(b"%d:" % len(part) + part)
    return made.hexdigest()[:16]


def _parts(kernel: Any) -> Iterator[bytes]:
    yield type(kernel).__name__.encode()
    yield kernel.device.encode()
    path = getattr(kernel, "path", None)
    if getattr(kernel, "outline", None) is not None:
        yield from described.loop_kernel(kernel.function)
        taped = (kernel.tape, kernel.tape_bytes)
        yield repr((kernel.attributes, kernel.precise, kernel.debug, kernel.functional, *taped)).encode()
    elif isinstance(path, Path):
        yield kernel.name.encode()
        yield hashlib.sha256(path.read_bytes()).digest()
    elif callable(getattr(kernel, "function", None)) and not hasattr(kernel, "label"):
        yield from described.value(kernel.function)
    else:
        yield str(kernel).encode()
