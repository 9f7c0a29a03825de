"""What an operator is made of, as a digest: whether another process has the same one."""

from __future__ import annotations

import hashlib

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
        for part in (type(kernel).__name__.encode(), kernel.device.encode(), *kernel.content()):
            made.update(b"%d:" % len(part) + part)
    return made.hexdigest()[:16]
