"""The batch rule that polyop derives from a loop kernel: one call of ``<name>__batched``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...call.batching import BatchedCall
from ...call.rule import Rule
from ...kernels.loop.forms import BATCHED, axes_text
from .base import LoopRule
from .parts import joined
from .vmapped import VmappedGradient


class BatchRule(LoopRule):
    """The ``batch`` of an operator whose kernels are loop kernels: samples along any axis of any tensor."""

    part_kinds = (BATCHED.suffix,)
    form = BATCHED

    def given_gradient(self) -> Rule | None:
        """Return the operator's own gradient rule, for each sample; None if it has none."""
        return None if self.operator.gradient is None else VmappedGradient(self.operator)

    def __call__(self, dims: Sequence[Any], inputs: Sequence[Any], call: BatchedCall) -> tuple[Any, Any]:
        """Return (outputs, the batch axis of each). It calls the part in place of the operator."""
        del call
        tensors, attributes = self.schema.tensors_and_attributes(inputs)
        axes, _ = self.schema.tensors_and_attributes(dims)
        outputs = joined(self.main_part()(*tensors, axes_text(axes), *attributes.values()))
        return outputs, (0,) * len(outputs)
