"""The gradient rule that polyop derives from a loop kernel: one call of ``<name>__backward``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...call.bound import BoundOperator
from ...call.operator import Operator
from ...call.uses import Uses
from ...core.spec_key import SpecKey
from ...kernels.loop.adjoints import Adjoints
from ...kernels.loop.derived import DerivedKernel
from ...kernels.loop.forms import GRADIENT, SAVING
from ...loops.library.library import source_text
from .base import LoopRule
from .parts import Complete, specs
from .saving import Savings
from .vjp import LoopVJP

MAX_VJPS = 256
"""Gradients a rule caches, one for each set of shapes, dtypes and attributes. One more drops them all."""


class GradientRule(LoopRule):
    """The gradient rule of an operator whose kernels are loop kernels.

    ``backward`` is the operator ``<name>__backward(inputs, outputs, output gradients) -> input gradients``;
    its own gradient is derived in the same way. Nothing is derived before a gradient is needed.
    """

    calls_operators = True
    part_kinds = (GRADIENT.suffix, SAVING.suffix)
    form = GRADIENT

    def __init__(self, operator: Operator, complete: Complete) -> None:
        """Keep the operator, which has no gradient rule."""
        super().__init__(operator, complete)
        self.savings = Savings(operator, self.kernels, complete)
        self._is_tensor = [a.type.is_tensor for a in self.schema.arguments]
        self._vjps: dict[Any, LoopVJP] = {}

    @property
    def backward(self) -> BoundOperator:
        """The operator that computes the gradients."""
        return self.main_part()

    def adjoints(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Adjoints:
        """Return the kernels of the gradient for tensors or specs of the operator."""
        return Adjoints(self.kernel, specs(inputs), attributes)

    def whole_call(self, arguments: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return the tensors, as specs, and the attributes of a call of ``backward`` for all gradients."""
        inputs, attributes = self.schema.tensors_and_attributes(arguments)
        outputs = self.operator.infer(tuple(arguments))
        key = {self.kernel.key_attribute: str(SpecKey.of(inputs))}
        return (*inputs, *outputs, *outputs), {**attributes, **key}

    def part(self, suffix: str) -> BoundOperator | None:
        """Return the part ``<name>__<suffix>``, or None."""
        return self.backward if suffix == self.form.suffix else self.savings.part(suffix)

    def parts_made(self) -> list[BoundOperator]:
        """Return the parts that exist so far."""
        return [*super().parts_made(), *self.savings.parts_made()]

    def saving(self, arguments: Sequence[Any]) -> BoundOperator | None:
        """Return the operator to call instead when a gradient is needed, or None.

        It gives the outputs first, then temporaries that its own gradient reads.
        """
        return self.at(arguments).saving

    def at(self, arguments: Sequence[Any]) -> LoopVJP:
        """Return the gradient of a call with these arguments, or tensors of the same specs."""
        try:
            key = tuple(map(_cache_key, arguments, self._is_tensor))
            vjp = self._vjps.get(key)
        except (AttributeError, TypeError):  # a tensor that was not kept, or a symbolic size
            return self._vjp(arguments)
        if vjp is None:
            if len(self._vjps) >= MAX_VJPS:
                self._vjps.clear()
            vjp = self._vjps[key] = self._vjp(arguments)
        return vjp

    def _vjp(self, arguments: Sequence[Any]) -> LoopVJP:
        tensors, attributes_by_name = self.schema.tensors_and_attributes(arguments)
        return LoopVJP(self.operator, lambda: self.backward, self.savings, specs(tensors), attributes_by_name)

    def reads(self, arguments: Sequence[Any], outputs: int, tangents: Sequence[Any] | None = None) -> Uses:
        """Return which of the arguments and of the outputs are kept for the gradient."""
        del outputs, tangents
        return self.at(arguments).uses

    def without_gradient(self, arguments: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """Return the outputs without a gradient beside those of integers: none."""
        del arguments, outputs
        return []

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Return one gradient or None per argument."""
        *inputs, outputs, grads = arguments
        if not self.operator.several:
            outputs, grads = (outputs,), (grads,)
        return self.at(inputs)(inputs, outputs, grads, (True,) * len(inputs))

    def loops(self, *inputs: Any, **attributes: Any) -> str:
        """Return the derived loops, before they are scheduled, as Python text, for tensors or specs."""
        from ...loops.ir.printing import shown

        return shown(self.adjoints(inputs, attributes).within_limit().kernel)

    def kernels_made(self) -> Iterator[DerivedKernel]:
        """Yield the gradients' kernels, those that read saved temporaries first, as these run."""
        for part in self.savings.parts_made():
            rule = part.operator.gradient
            if isinstance(rule, GradientRule):
                yield from rule.kernels_made()
        yield self.kernel

    def source(self, *inputs: Any, **attributes: Any) -> str:
        """Return the gradient's C code for tensors or specs of the operator, or those of the last call."""
        kernel = self.kernel
        if not inputs:
            return next((k for k in self.kernels_made() if k.is_typed), kernel).source()
        return source_text(self.adjoints(inputs, attributes).within_limit().kernel, kernel.options)


def _cache_key(value: Any, is_tensor: bool) -> Any:
    """Return what a gradient depends on of an argument. By ``repr``, 0.0 and -0.0 differ, and 1 and True."""
    if not is_tensor:
        return repr(value)
    return None if value is None else (value.dtype, value.shape)
