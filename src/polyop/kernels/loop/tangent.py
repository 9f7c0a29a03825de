"""Forward mode of a loop kernel, as a loop kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.spec_key import SpecKey
from ...loops.ir.grammar import Kernel
from ...loops.ir.types import is_real
from ..base import flatten
from .derived import DerivedKernel, own_attribute
from .kernel import tensors_of


@dataclass(eq=False)
class TangentKernel(DerivedKernel):
    """The tangents of the outputs of the loop kernel ``base``; see :func:`.derive.tangent.tangent`.

    Its tensors are those of ``base``, None for what it does not read, and a tangent or None for each.
    """

    SUFFIX: ClassVar[str] = "tangent"
    WHAT: ClassVar[str] = "tangent"

    @property
    def tensors(self) -> int:
        """How many tensors it takes."""
        return 2 * int(self.base.tensors)

    @property
    def told(self) -> str:
        """The attribute that tells what the tensors of ``base`` were: a ``SpecKey`` as text."""
        return own_attribute("polyop_tensors", self.base)

    def typed(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Kernel:
        """Return the kernel for these specs. Raises ``GradientError`` with the line for what has none."""
        given = list(flatten(tuple(inputs)))
        present = tuple(spec is not None for spec in given[self.base.tensors :])
        return self.tangent(SpecKey.parse(attributes[self.told]).specs, attributes, present)

    def tangent(
        self, inputs: Sequence[Any], attributes: Mapping[str, Any], present: tuple[bool, ...]
    ) -> Kernel:
        """Return the kernel for inputs of ``base``, those that are ``present`` having a tangent."""
        from ...loops.derive.tangent import tangent

        kernel = self.base.form(inputs, attributes)
        rows = zip(present, tensors_of(kernel), strict=True)
        moving = tuple(there and is_real(kernel, n) for there, n in rows)
        return self.derived((id(kernel), moving), lambda: tangent(kernel, moving))

    def reads(
        self, inputs: Sequence[Any], attributes: Mapping[str, Any], present: tuple[bool, ...]
    ) -> tuple[bool, ...]:
        """Return of which tensors of ``base`` the kernel reads an element or a size."""
        return self.takes(self.tangent(inputs, attributes, present))[: self.base.tensors]
