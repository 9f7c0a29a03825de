"""The forward-mode rule that polyop derives from a loop kernel: one call of ``<name>__tangent``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...call.uses import Uses
from ...core.errors import PolyopError
from ...core.spec_key import SpecKey
from ...kernels.loop.forms import TANGENT
from .base import LoopRule
from .parts import all_attributes, is_real, joined, spec, specs, uses_of


class TangentRule(LoopRule):
    """The ``jvp`` of an operator whose kernels are loop kernels."""

    part_kinds = (TANGENT.suffix,)
    form = TANGENT

    def reads(self, arguments: Sequence[Any], outputs: int, tangents: Sequence[Any] | None = None) -> Uses:
        """Return which arguments are read if those that are not None in ``tangents`` have tangents."""
        tensors, _ = self.schema.tensors_and_attributes(arguments)
        moved = tensors if tangents is None else self.schema.tensors_and_attributes(tangents)[0]
        present = tuple(t is not None and is_real(x) for x, t in zip(tensors, moved, strict=True))
        try:
            read = self._reads(arguments, present)
        except PolyopError:  # raised when the tangent runs
            read = (False,) * len(tensors)
        return uses_of(self.schema, (*read, *(False,) * outputs))

    def __call__(self, *arguments: Any) -> Any:
        """Return the tangent of the output, or a tuple of them; None is zero."""
        *inputs, outputs, tangents = arguments
        all_outputs = outputs if self.operator.several else (outputs,)
        tensors, attributes = self.schema.tensors_and_attributes(inputs)
        all_tangents, _ = self.schema.tensors_and_attributes(tangents)
        active = [t if is_real(x) else None for x, t in zip(tensors, all_tangents, strict=True)]
        if all(t is None for t in active):
            return (None,) * len(all_outputs) if self.operator.several else None
        read = self._reads(inputs, tuple(t is not None for t in active))
        primals = [x if flag else None for x, flag in zip(tensors, read, strict=True)]
        key = str(SpecKey.of(specs(tensors)))
        results = joined(self.main_part()(*primals, *active, key, *attributes.values()))
        real = [is_real(x) if spec(x) is not None else True for x in all_outputs]
        by_output = tuple(t if flag else None for t, flag in zip(results, real, strict=True))
        return by_output if self.operator.several else by_output[0]

    def _reads(self, arguments: Sequence[Any], present: tuple[bool, ...]) -> tuple[bool, ...]:
        """Return which tensors the part reads, if those that are ``present`` have a tangent."""
        tensors, attributes = self.schema.tensors_and_attributes(arguments)
        primals, kernel = specs(tensors), self.kernel
        tangents = [one if flag else None for one, flag in zip(primals, present, strict=True)]
        key = {kernel.key_attribute: str(SpecKey.of(primals))}
        typed = kernel.typed([*primals, *tangents], {**all_attributes(self.operator, attributes), **key})
        return kernel.tensors_read(typed)[: len(primals)]
