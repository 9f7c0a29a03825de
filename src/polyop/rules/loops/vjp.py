"""The gradient of a loop operator, for calls with the same dtypes, shapes and attributes.

Deriving is expensive, so it happens once per signature. Within it, a *plan* is made for each combination of
"which output gradients are present" and "which inputs need a gradient":

    the gradient of an input is   not needed                        -> None
                                  an output's gradient, unchanged   -> shared with it, nothing runs
                                  anything else                     -> computed by <name>__backward
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...call.bound import BoundOperator
from ...call.operator import Operator
from ...call.uses import Uses
from ...core.errors import GradientError, PolyopError, about
from ...core.locks import cached_property
from ...core.spec_key import SpecKey
from ...kernels.loop.adjoints import Adjoints, Flags
from .parts import all_attributes, joined, spec, uses_of
from .saving import Savings

MAX_PLANS = 64
"""Plans that are cached per signature, one for each set of needed gradients and specs of output gradients.

One more drops them all: each is made again when it is needed.
"""


class Step(NamedTuple):
    """One call for gradients as numbers: a host can run it without Python, csrc/planned.cc reads it.

    ``part`` is called with ``operands``, in which ``sources`` says what takes a place: the tensor with this
    number among the inputs, outputs and output gradients of the call; ``-2 - k`` for attribute k of the call,
    whose value may have been another one when the step was made; or -1. ``results`` has for each argument of
    the call the number of the part's result; -1 for no gradient; ``-2 - k`` for output gradient
    k, unchanged. ``part`` is None if nothing is computed.
    """

    part: BoundOperator | None
    operands: tuple[Any, ...]
    sources: tuple[int, ...]
    results: tuple[int, ...]

    def arguments(self, tensors: Sequence[Any], attributes: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments of ``part`` for the tensors and the attributes of a call."""
        return tuple(
            tensors[source] if source >= 0 else operand if source == -1 else attributes[-2 - source]
            for operand, source in zip(self.operands, self.sources, strict=True)
        )


class GradientPlan(NamedTuple):
    """What one call for gradients does: the step, and for each tensor of the operator where its gradient is.

    ``shared_with``: the output whose gradient is this tensor's, else None. ``computed``: whether the part
    computes it.
    """

    step: Step
    shared_with: tuple[int | None, ...]
    computed: Flags


class PartCall(NamedTuple):
    """A call of ``<name>__backward``. ``arguments`` are those of the part, empty if it computes nothing."""

    plan: GradientPlan
    part: BoundOperator
    arguments: tuple[Any, ...]


class LoopVJP:
    """The gradient of calls with tensors of these specs, and with these attributes."""

    def __init__(
        self,
        operator: Operator,
        part: Callable[[], BoundOperator],
        savings: Savings,
        input_specs: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> None:
        """Derive nothing yet; ``part`` returns the operator that computes the gradients."""
        self.schema, self._part, self._savings = operator.schema, part, savings
        self.input_specs, self.attributes = tuple(input_specs), dict(attributes)
        self.kernel_attributes = all_attributes(operator, attributes)
        self.positions = operator.schema.tensor_positions
        self._plans: dict[Any, tuple[GradientPlan | None]] = {}

    @cached_property
    def adjoints(self) -> Adjoints:
        """The kernels that compute the gradients."""
        kernel: Any = self._part().operator.kernels[0]
        return Adjoints(kernel, self.input_specs, self.kernel_attributes)

    @cached_property
    def saving(self) -> BoundOperator | None:
        """The operator to call in place of this one where a gradient is requested, or None."""
        return self._savings.of(self.input_specs, self.attributes)

    @cached_property
    def uses(self) -> Uses:
        """The arguments and outputs that must be kept for the gradient."""
        try:
            read = self.adjoints.kept()
        except PolyopError:  # raised when the gradient runs
            read = (False,) * (len(self.input_specs) + len(self.schema.returns))
        return uses_of(self.schema, read)

    def __call__(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        grads: Sequence[Any],
        needs_gradient: Sequence[bool],
    ) -> tuple[Any, ...]:
        """Return one gradient per argument; None where none is needed, or where it is zero."""
        step = self.step(grads, needs_gradient)
        if step is None:
            return (None,) * len(inputs)
        arguments = self._arguments(step, inputs, outputs, grads)
        results = joined(step.part(*arguments)) if step.part is not None else ()
        return tuple(None if k == -1 else results[k] if k >= 0 else grads[-2 - k] for k in step.results)

    def part_call(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        grads: Sequence[Any],
        needs_gradient: Sequence[bool],
    ) -> PartCall | None:
        """Return the call of ``<name>__backward`` without running it; all tensors may be specs.

        None if no output gradient is present.
        """
        plan = self._cached_plan(grads, tuple(needs_gradient))
        if plan is None:
            return None
        return PartCall(plan, self._part(), self._arguments(plan.step, inputs, outputs, grads))

    def step(self, grads: Sequence[Any], needs_gradient: Sequence[bool]) -> Step | None:
        """Return the call for output gradients, or None if none of them is present."""
        plan = self._cached_plan(grads, tuple(needs_gradient))
        return None if plan is None else plan.step

    def _arguments(
        self, step: Step, inputs: Sequence[Any], outputs: Sequence[Any], grads: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Return the arguments of ``<name>__backward``."""
        tensors = (*(inputs[i] for i in self.positions), *outputs, *grads)
        return step.arguments(tensors, [inputs[i] for i, _ in self.schema.attributes()])

    def _cached_plan(self, grads: Sequence[Any], needs_gradient: Flags) -> GradientPlan | None:
        """Return the plan, or None if no output gradient is present."""
        try:
            key = (needs_gradient, *[None if g is None else (g.shape, g.dtype) for g in grads])
            cached = self._plans.get(key)
        except (
            TypeError,
            AttributeError,
        ):  # a size is a symbol, without a hash, or a gradient has no dtype
            return self._make_plan(grads, needs_gradient)
        if cached is None:
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            cached = self._plans[key] = (self._make_plan(grads, needs_gradient),)
        return cached[0]

    def _spec_of_gradient(self, number: int, grad: Any) -> Any:
        """Return the spec of an output's gradient; an error names the output."""
        try:
            return spec(grad)
        except PolyopError as problem:
            raise about(f"{self.schema.qualified_name}: gradient of output {number}", problem) from None

    def _make_plan(self, grads: Sequence[Any], needs_gradient: Flags) -> GradientPlan | None:
        """Return the plan for these output gradients, or None if none of them is present."""
        grad_specs = [self._spec_of_gradient(number, grad) for number, grad in enumerate(grads)]
        adjoints = self.adjoints
        rows = zip(grad_specs, adjoints.differentiable_outputs(), strict=True)
        present = tuple(there and g is not None and bool(g.dtype.is_floating) for g, there in rows)
        if not any(present):
            return None
        needed = tuple(bool(needs_gradient[i]) for i in self.positions)
        shared = adjoints.shared_gradients(grad_specs, present, needed)
        shared_with = tuple(k if a else None for k, a in zip(shared, needed, strict=True))
        needed = tuple(a and k is None for k, a in zip(shared, needed, strict=True))
        computed = tuple(a and b for a, b in zip(needed, adjoints.differentiable_inputs(), strict=True))
        results = [-1] * len(needs_gradient)
        for k, at in enumerate(self.positions):
            number = shared_with[k]
            results[at] = -2 - number if number is not None else k if computed[k] else -1
        step = Step(None, (), (), tuple(results))
        if any(computed):
            step = self._with_call(step, present, needed)
        return GradientPlan(step, shared_with, computed)

    def _with_call(self, step: Step, present: Flags, needed: Flags) -> Step:
        """Return the step with its call of ``<name>__backward``, for the gradients that are needed."""
        read, kept = self.adjoints.reads(present, needed), self.adjoints.kept()
        if any(flag and not there for flag, there in zip(read, kept, strict=True)):
            rule = "its gradient reads a tensor that the forward call did not keep"
            raise GradientError(self.adjoints.base.name, rule, hint='compile it with tape="none"')
        flags, key = (*read, *present), str(SpecKey.of(self.input_specs, needed))
        numbers = (-2 - k for k in range(len(self.attributes)))
        return step._replace(
            part=self._part(),
            operands=(*(None,) * len(flags), key, *self.attributes.values()),
            sources=(*(k if flag else -1 for k, flag in enumerate(flags)), -1, *numbers),
        )
