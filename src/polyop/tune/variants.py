"""An operator with other schedules of its loop kernel, on the same arguments."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bench.work import derived_rule
from ..call.bound import BoundOperator
from ..call.host import specs as specs_of
from ..call.prepare import prepare
from ..core.errors import UnsupportedError
from ..hosts.numpy import HOST
from ..kernels.base import LoopKernelBase, flatten
from ..kernels.loop.kernel import LoopKernel
from ..loops.ir.grammar import Kernel
from ..loops.ir.schedule import Schedule
from ..loops.library.tuned import SAME_BITS
from ..testing import samples
from ..testing.case import BrokenRuleError, Case, as_list
from ..testing.compare import near, same_bits


@dataclass(frozen=True)
class Subject:
    """An operator whose loop kernel is tuned, and the arguments that it is called with, by position.

    ``typed`` is its kernel for these arguments, ``specs`` are those of its tensors.
    """

    bound: BoundOperator
    arguments: tuple[Any, ...]
    kernel: LoopKernel
    typed: Kernel
    specs: tuple[Any, ...]
    attributes: Mapping[str, Any]
    inputs: str
    written: tuple[Any, ...]
    """The first values of the arguments that a call writes."""

    @classmethod
    def of(cls, bound: BoundOperator, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Subject:
        """Return the subject for specs or arrays; values are drawn as ``check`` draws them.

        Raises ``UnsupportedError`` for an operator without a loop kernel, and what a call raises.
        """
        arguments = samples.arguments(bound.operator, tuple(inputs), attributes, 0)
        return cls.of_arguments(bound, arguments)

    @classmethod
    def of_arguments(cls, bound: BoundOperator, arguments: tuple[Any, ...]) -> Subject:
        """Return the subject for arguments in the order of the schema."""
        prepared = prepare(bound.operator, specs_of(HOST, bound.operator, arguments), infer=True)
        kernel = prepared.kernel
        if not isinstance(kernel, LoopKernelBase):
            rule, hint = "has no schedule: only loop kernels have one", "write it with @polyop.kernel"
            raise UnsupportedError(bound.name, rule, str(kernel), where=bound.operator.origin, hint=hint)
        assert isinstance(kernel, LoopKernel)
        if kernel.schedule.is_deterministic:
            rule = 'has deterministic="batch": one schedule serves all sizes, so none is tuned for some'
            raise UnsupportedError(bound.name, rule, where=bound.operator.origin, hint="give it a schedule=")
        typed = kernel.typed(prepared.inputs, prepared.attributes)
        specs = tuple(flatten(prepared.inputs))
        text = " ".join("-" if spec is None else str(spec).replace(", ", ",") for spec in specs)
        case = Case(bound, arguments, None, ("numpy",), 0)
        written = tuple(np.array(value) for value in case.written(arguments))
        return cls(bound, arguments, kernel, typed, specs, prepared.attributes, text, written)

    def gradient(self) -> Iterator[Subject]:
        """Yield what a gradient runs, as subjects: the form that saves temporaries, if any, and backward.

        Yields nothing without a derived gradient. Raises ``GradientError`` where a line has none.
        """
        rule: Any = derived_rule(self.bound)
        if rule is None:
            return
        saving = rule.at(self.arguments).saving
        forward = saving or self.bound
        if saving is not None:
            yield Subject.of_arguments(saving, self.arguments)
            rule = derived_rule(saving)
        outputs = [np.array(out) for out in as_list(forward(*self.arguments))]
        own = len(self.bound.schema.returns)
        grads = [np.ones_like(out) if k < own else None for k, out in enumerate(outputs)]
        call = rule.at(self.arguments).part_call(
            self.arguments, outputs, grads, (True,) * len(self.arguments)
        )
        if call is not None and call.arguments:
            yield Subject.of_arguments(call.part, call.arguments)

    def with_schedule(self, schedule: Schedule) -> Callable[[], Any]:
        """Return a call of the operator with another schedule. Its first call compiles."""
        kernel = copy.copy(self.kernel)  # typed kernels are shared, libraries are not
        kernel.schedule, kernel._libraries = schedule, {}  # noqa: SLF001
        kernel.takes_tuned = False  # the default is the compiler's choice, whatever was kept before
        kernels = tuple(kernel if one is self.kernel else one for one in self.bound.operator.kernels)
        bound = BoundOperator(dataclasses.replace(self.bound.operator, kernels=kernels), register=False)
        args, keywords = self.bound.schema.split(self.arguments)
        return lambda: bound(*args, **keywords)

    def results(self, call: Callable[[], Any]) -> list[Any]:
        """Return copies of what a call returns, and of the arguments that it writes.

        These have their first values before it and after it, however often they were written meanwhile.
        """
        case = Case(self.bound, self.arguments, None, ("numpy",), 0)
        self._restore(case)
        found = [np.array(value) for value in case.results(call(), self.arguments)]
        self._restore(case)
        return found

    def _restore(self, case: Case) -> None:
        for value, first in zip(case.written(self.arguments), self.written, strict=True):
            value[...] = first


def difference(subject: Subject, results: list[Any], expected: list[Any]) -> str:
    """Return how results differ from the default's: :data:`SAME_BITS`, or in words.

    Raises ``BrokenRuleError`` where they differ by more than the order of additions can make.
    """
    if all(_equal_bytes(left, right) for left, right in zip(results, expected, strict=True)):
        return SAME_BITS
    case = Case(subject.bound, subject.arguments, None, ("numpy",), 0)
    try:
        same_bits("this schedule", results, expected, "the default")
    except BrokenRuleError:
        apart = 0.0
        for number, (left, right) in enumerate(zip(results, expected, strict=True)):
            near(
                "this schedule",
                number,
                left,
                right,
                tolerance=case.tolerance(left.dtype),
                other="the default",
            )
            if left.dtype.kind == "f" and left.size:
                scale = np.maximum(np.abs(right), np.finfo(right.dtype).tiny)
                apart = max(apart, float(np.nanmax(np.abs(left - right) / scale)))
        return f"sums in another order than the default's, a relative difference of {apart:.1g} was seen"
    return SAME_BITS


def _equal_bytes(left: Any, right: Any) -> bool:
    """Whether two arrays hold the same bytes; they are not copied."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    ours, theirs = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (left, right))
    return bool(np.array_equal(ours, theirs))
