"""Loop kernels that also return temporaries, for their gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...loops.ir.grammar import Kernel
from ..base import flatten
from .derived import DerivedKernel
from .saved import Left, saved


@dataclass(eq=False)
class SavingKernel(DerivedKernel):
    """The loop kernel ``base`` with further outputs; see ``loops/derive/saving.py``."""

    count: int = 0
    """How many tensors it returns: the kernel is for dtypes with which it is always as many."""
    left: Left = frozenset()
    """The temporaries that it does not return, as they take too much."""
    SUFFIX: ClassVar[str] = "saving"
    WHAT: ClassVar[str] = "saving form"

    def on(self, device: str) -> SavingKernel:
        """Return the same kernel for another device."""
        return SavingKernel.of(self.base.on(device), count=self.count, left=self.left)

    @property
    def results(self) -> int:
        """How many tensors it returns."""
        return self.count

    @property
    def own_results(self) -> int:
        """How many results the kernel has that saves nothing."""
        return int(self.base.results)

    def typed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel for these specs."""
        kernel = saved(self.base, list(flatten(tuple(inputs))), attributes, self.left)
        assert kernel is not None, self.name
        return kernel
