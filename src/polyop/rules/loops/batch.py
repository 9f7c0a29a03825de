"""The batch rule that polyop derives from a loop kernel: one call of ``<name>__batched``."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ...call.bound import BoundOperator
from ...call.operator import Operator
from ...call.rule import Rule
from ...kernels.loop.batch import BatchedKernel, axes_text
from .given import GivenRule
from .parts import Complete, joined, loop_kernels, make_part, split


class BatchRule(Rule):
    """The ``batch`` of an operator whose kernels are loop kernels.

    ``batched`` is the operator ``<name>__batched``, which takes what the operator takes with the samples
    along any axis of any tensor, and returns outputs with the samples first. Its own
    rules are derived like the operator's; an author's gradient rule serves both.
    """

    is_derived = True
    part_kinds = ("batched",)

    def __init__(self, operator: Operator, complete: Complete) -> None:
        """Keep the operator, which has no batch rule. If it has a gradient rule, that is an author's."""
        self.schema, self.operator, self._complete = operator.schema, operator, complete
        self._batched: BoundOperator | None = None
        self._lock = threading.RLock()

    @property
    def batched(self) -> BoundOperator:
        """The operator that computes all samples."""
        with self._lock:
            if self._batched is None:
                kernels = [BatchedKernel.of(k) for k in loop_kernels(self.operator)]
                attribute, returns = kernels[0].axes_attribute, len(self.schema.returns)
                author_rule = None if self.operator.gradient is None else GivenRule(self.operator)
                self._batched = make_part(
                    self.operator, "batched", kernels, (), returns, attribute, self._complete, author_rule
                )
            return self._batched

    def parts_made(self) -> list[BoundOperator]:
        """Return the parts that exist so far."""
        return [] if self._batched is None else [self._batched]

    def part(self, suffix: str) -> BoundOperator | None:
        """Return the part ``<name>__<suffix>``, or None."""
        return self.batched if suffix == "batched" else None

    def __call__(self, dims: Sequence[Any], inputs: Sequence[Any]) -> tuple[Any, Any]:
        """Return (outputs, the batch axis of each)."""
        tensors, attributes = split(self.schema, inputs)
        axes, _ = split(self.schema, dims)
        outputs = joined(self.batched(*tensors, axes_text(axes), *attributes.values()))
        return outputs, (0,) * len(outputs)
