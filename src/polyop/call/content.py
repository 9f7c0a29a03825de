"""A digest of an operator, which tells whether another process has defined the same one."""

from __future__ import annotations

import hashlib
from typing import Any

from ..kernels import described
from . import registry
from .operator import Operator


def digest(operator: Operator) -> str:
    """Return 16 hexadecimal digits of the schema, the attributes that no call passes and the kernels.

    It is the same in every process with this version of Python that defines the same operator. A library
    counts by its bytes, a loop kernel by its text and the numbers that the text reads, a Python function
    by its code, defaults and closure (see :mod:`polyop.kernels.described`). Variables of modules that a
    function reads do not count.
    """
    return _hex(_hasher(operator))


def definition_digest(operator: Operator) -> str:
    """Return 16 hexadecimal digits of all that decides a compiled program: :func:`digest` and the rules.

    A rule counts by its code and what it reads of its own module: other functions, numbers, tuples, and
    operators with their rules.
    """
    hasher = _hasher(operator)
    for part in described.rule(described.rules_of(operator)):
        hasher.update(b"%d:" % len(part) + part)
    return _hex(hasher)


def _hex(hasher: Any) -> str:
    digits: str = hasher.hexdigest()
    return digits[:16]


def _hasher(operator: Operator) -> Any:
    hasher = hashlib.sha256()
    constants = [(i.target, [(c.name, c.value) for c in i.constants]) for i in operator.information]
    fixed = (str(operator.schema), sorted(operator.attributes.items()), constants, operator.target)
    for part in described.value(fixed):  # not repr, which rounds and shortens arrays
        hasher.update(b"%d:" % len(part) + part)
    # parts of a C++ module's operator have Python kernels: the library of the operator itself counts too
    owner = registry.known(operator.part_of) if operator.part_of else None
    for kernel in (*operator.kernels, *(owner.operator.kernels if owner else ())):
        for part in (kernel.kind.encode(), kernel.device.encode(), *kernel.content()):
            hasher.update(b"%d:" % len(part) + part)
    return hasher
