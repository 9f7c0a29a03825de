"""Forward mode of a loop kernel, which is itself a loop kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.spec_key import SpecKey
from ...loops.ir.grammar import Kernel
from ...loops.ir.types import is_real
from ...loops.library.derivations import derivation
from ..base import flatten
from .derived import DerivedKernel, own_attribute
from .kernel import tensors_of


@dataclass(eq=False)
class TangentKernel(DerivedKernel):
    """The tangents of the outputs of the loop kernel ``base``; see :func:`.derive.tangent.tangent`.

    Its tensors are those of ``base``, then their tangents. A tensor that it does not read is None, and so is
    an absent tangent.
    """

    SUFFIX: ClassVar[str] = "tangent"
    WHAT: ClassVar[str] = "tangent"

    @property
    def tensors(self) -> int:
        """How many tensors it takes."""
        return 2 * int(self.base.tensors)

    @property
    def linear_tensors(self) -> int:
        """The tangents, which come last."""
        return int(self.base.tensors)

    @property
    def key_attribute(self) -> str:
        """The name of an attribute whose value is a ``SpecKey`` as text: the specs of ``base``'s tensors."""
        return own_attribute("polyop_tensors", self.base)

    def typed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel for these specs. Raises ``GradientError`` with the line that has no tangent."""
        arguments = list(flatten(tuple(inputs)))
        present = tuple(spec is not None for spec in arguments[self.base.tensors :])
        return self.tangent(SpecKey.parse(attributes[self.key_attribute]).specs, attributes, present)

    def tangent(
        self, inputs: Sequence[Any], attributes: Mapping[str, Any], present: tuple[bool, ...]
    ) -> Kernel:
        """Return the kernel for inputs of ``base``; ``present`` tells which of them have a tangent."""
        kernel = self.base.form(inputs, attributes)
        rows = zip(present, tensors_of(kernel), strict=True)
        active = tuple(flag and is_real(kernel, name) for flag, name in rows)
        return self.derived((id(kernel), active), lambda: derivation("tangent", kernel, active))

    def reads(
        self, inputs: Sequence[Any], attributes: Mapping[str, Any], present: tuple[bool, ...]
    ) -> tuple[bool, ...]:
        """Return for each tensor of ``base`` whether the kernel reads an element or a size of it."""
        return self.tensors_read(self.tangent(inputs, attributes, present))[: self.base.tensors]
