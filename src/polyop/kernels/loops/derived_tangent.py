"""Forward mode of a loop kernel, as a loop kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.dtypes import dtype
from ..base import Accepts, flatten
from .derived import own_attribute, specs_of
from .ir import Kernel
from .kernel import LoopKernel


@dataclass(eq=False)
class TangentKernel(LoopKernel):
    """The tangents of the outputs of the loop kernel ``base``; see :func:`.derive.tangent.tangent`.

    Its tensors are those of ``base``, None for what it does not read, and a tangent or None for each.
    """

    base: Any = None
    _tangents: dict[Any, Kernel] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, base: LoopKernel) -> TangentKernel:
        """Return forward mode of a kernel, for the same device."""
        return cls(
            base.function, base.attributes, base.precise, base.debug, base.device, tape="none", base=base
        )

    def __post_init__(self) -> None:
        self.outline = self.base.outline
        self.accepts = Accepts(self.device, self.base.accepts.dtypes)

    def __str__(self) -> str:
        """Return ``tangent of loop kernel name``."""
        return f"tangent of {self.base}"

    def on(self, device: str) -> TangentKernel:
        """Return the same tangent for another device."""
        found = TangentKernel.of(self.base.on(device))
        found._tangents, found._typed, found._lock = self._tangents, self._typed, self._lock
        return found

    @property
    def name(self) -> str:
        """The function's name and ``__tangent``."""
        return f"{self.base.name}__tangent"

    @property
    def tensors(self) -> int:
        """How many tensors it takes."""
        return 2 * int(self.base.tensors)

    @property
    def results(self) -> int:
        """How many tensors it returns."""
        return int(self.base.results)

    @property
    def told(self) -> str:
        """The attribute that tells what the tensors of ``base`` were, as :func:`.derived.described` does."""
        return own_attribute("polyop_tensors", self.base)

    def typed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel for these specs. Raises ``GradientError`` with the line for what has none."""
        given = list(flatten(tuple(inputs)))
        present = tuple(spec is not None for spec in given[self.base.tensors :])
        return self.tangent(specs_of(attributes[self.told]), attributes, present)

    def tangent(
        self, inputs: Sequence[Any], attributes: Mapping[str, Any], present: tuple[bool, ...]
    ) -> Kernel:
        """Return the kernel for inputs of ``base``, those that are ``present`` having a tangent."""
        from .derive.tangent import tangent

        kernel = self.base.typed(inputs, attributes)
        names = [n for n in kernel.parameters if n in kernel.buffers]
        real = (dtype(kernel.buffers[n].dtype).is_floating for n in names)
        key = (id(kernel), tuple(there and of for there, of in zip(present, real, strict=True)))
        with self._lock:
            if key not in self._tangents:
                self._tangents[key] = self._typed[key] = tangent(kernel, key[1])
            return self._tangents[key]

    def reads(
        self, inputs: Sequence[Any], attributes: Mapping[str, Any], present: tuple[bool, ...]
    ) -> tuple[bool, ...]:
        """Return of which tensors of ``base`` the kernel reads an element or a size."""
        from .derive.used import is_absent

        kernel = self.tangent(inputs, attributes, present)
        names = [n for n in kernel.parameters if n in kernel.buffers]
        return tuple(not is_absent(kernel, n) for n in names[: self.base.tensors])
