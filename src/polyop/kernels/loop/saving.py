"""The saving form of a loop kernel: it also returns temporaries, for the gradient to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...loops.ir.grammar import Kernel
from ..base import flatten
from .derived import DerivedKernel
from .temporaries import Names, saving_form


@dataclass(eq=False)
class SavingKernel(DerivedKernel):
    """The loop kernel ``base`` with its temporaries as further outputs; see ``loops/derive/saving.py``."""

    count: int = 0
    """How many tensors it returns. A saving kernel serves only dtypes for which this is the number."""
    omitted: Names = frozenset()
    """The temporaries that it does not return, because ``tape_bytes`` does not allow it."""
    SUFFIX: ClassVar[str] = "saving"
    WHAT: ClassVar[str] = "saving form"

    def on(self, device: str) -> SavingKernel:
        """Return the same kernel for another device."""
        return SavingKernel.of(self.base.on(device), count=self.count, omitted=self.omitted)

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
        kernel = saving_form(self.base, list(flatten(tuple(inputs))), attributes, self.omitted)
        assert kernel is not None, self.name
        return kernel
