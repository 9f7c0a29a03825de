"""Warn when a value that a loop kernel read from outside at its definition has changed since."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...loops.frontend.parse import Outline, changes, outside_of
from ..base import LoopKernelBase


class DefinedOnce(LoopKernelBase):
    """A kernel of a Python function, which reads numbers, arrays and helpers from outside."""

    function: Callable[..., Any]
    outline: Outline

    def watched(self) -> tuple[tuple[Any, str, Any], ...]:
        """Return where the values are found now that it was defined with."""
        return outside_of(self.function).watched()

    def warn_of_changes(self) -> None:
        """Warn of names outside that have another value than at the definition, of each once."""
        for text in changes(self.function):
            warnings.warn_explicit(text, UserWarning, self.outline.file, self.outline.line)
