"""Kernels that are Python functions over the caller's own tensors, of whatever framework."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.spec import Spec
from .base import KernelBase


@dataclass(eq=False)
class TensorKernel(KernelBase):
    """A function of the bound arguments that returns the new outputs.

    Hosts call it with gradients switched off: the operator's gradient rule is recorded instead.
    """

    function: Callable[..., tuple[Any, ...]]
    label: str
    device: str = "any"
    native: bool = False

    def __str__(self) -> str:
        """Return the label."""
        return self.label

    def refuse(self, inputs: tuple[Any, ...], outputs: tuple[Spec, ...]) -> str | None:
        """Return None: the function itself raises for specs that it cannot take."""
        del inputs, outputs
        return None
