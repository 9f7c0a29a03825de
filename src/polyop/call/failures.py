"""The error of a kernel that failed."""

from __future__ import annotations

from typing import Any

from ..core.errors import KernelError
from ..core.origin import place
from ..kernels.base import LoopKernelBase
from .operator import Operator


def failure(
    operator: Operator, kernel: Any, code: int, text: str, *, threw: bool, label: str = ""
) -> KernelError:
    """Return the error of a kernel that returned ``code`` and set ``text``, or that threw it."""
    text = text.split("\nException raised from", maxsplit=1)[0]  # ATen appends a C++ backtrace
    if text and isinstance(kernel, LoopKernelBase):  # polyop's message, which may have a line number
        of_loops: Any = kernel
        line = text.removeprefix("line ").partition(":")[0]
        where = place(of_loops.outline.file, line) if line.isdigit() else of_loops.where
        return KernelError(operator.name, text, where=f"{where}, operator at {operator.origin}")
    rule = kernel.failure(code, text, threw)
    return KernelError(operator.name, rule, where=f"{label or kernel}, operator at {operator.origin}")
