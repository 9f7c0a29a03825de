"""Loop kernels that also return temporaries, for their gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base import Accepts, flatten
from .ir import Kernel
from .kernel import LoopKernel


@dataclass(eq=False)
class SavingKernel(LoopKernel):
    """The loop kernel ``base`` with further outputs; see ``kernels/loops/derive/saving.py``."""

    base: Any = None
    results: int = 0
    tensors: int = 0

    @classmethod
    def of(cls, base: Any, results: int) -> SavingKernel:
        """Return the kernel that returns so many tensors."""
        return cls(
            base.function,
            base.attributes,
            base.precise,
            base.debug,
            base.device,
            tape="none",
            base=base,
            results=results,
            tensors=base.tensors,
        )

    def __post_init__(self) -> None:
        self.outline = self.base.outline
        self.accepts = Accepts(self.device, self.base.accepts.dtypes)

    def __str__(self) -> str:
        """Return ``loop kernel name, saving``."""
        return f"{self.base}, saving"

    def on(self, device: str) -> SavingKernel:
        """Return the same for another device."""
        return SavingKernel.of(self.base.on(device), self.results)

    @property
    def name(self) -> str:
        """The function's name and ``__saving``."""
        return f"{self.base.name}__saving"

    def typed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel for these specs."""
        kernel = saved(self.base, list(flatten(tuple(inputs))), attributes)
        assert kernel is not None, self.name
        return kernel


def saved(base: LoopKernel, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel | None:
    """Return the kernel of ``base`` that also returns temporaries for specs, or None where there are none."""
    from .derive.saving import saving

    if base.tape == "none":
        return None
    kernel = base.typed(inputs, attributes)
    found: Kernel | None = base.once(("saving", id(kernel)), lambda: saving(kernel, base.tape))
    return found
