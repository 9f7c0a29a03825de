"""The gradient of a loop operator, for calls with the same dtypes, shapes and attributes.

Deriving is expensive, so it happens once per signature. Within it, a *plan* is made for each combination of
"which output gradients are present" and "which inputs need a gradient":

    the gradient of an input is   not needed                        -> None
                                  an output's gradient, unchanged   -> shared with it, nothing runs
                                  anything else                     -> computed by <name>__backward
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ...call.bound import BoundOperator
from ...call.operator import Operator
from ...call.uses import Uses
from ...core.errors import GradientError, PolyopError, about
from ...core.locks import cached_property
from ...core.spec_key import SpecKey
from ...kernels.loop.adjoints import Adjoints
from .parts import all_attributes, joined, spec
from .saving import Savings

Flags = tuple[bool, ...]
MAX_PLANS = 64
"""Cached plans per signature: one for each set of needed gradients, and specs of output gradients."""


class GradientPlan(NamedTuple):
    """What one call for gradients does. The fields have an entry for each tensor of the operator, in order.

    ``shared_with``: the output whose gradient is this tensor's, else None. ``computed``: whether the kernel
    computes it. ``read``: which tensors, and then which outputs, the kernel reads. ``present``: which output
    gradients it is given. ``key``: the text of the :class:`SpecKey`, with the gradients that are needed.
    """

    shared_with: tuple[int | None, ...]
    computed: Flags
    read: Flags
    present: Flags
    key: str


class PartCall(NamedTuple):
    """A call of ``<name>__backward``. ``arguments`` are those of the part, empty if it computes nothing."""

    plan: GradientPlan
    part: BoundOperator
    arguments: tuple[Any, ...]


class Step(NamedTuple):
    """One call for gradients as numbers, for a host that can run it without Python; csrc/planned.cc reads it.

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
        self._plans: dict[Any, Any] = {}

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
        schema = self.schema
        try:
            read = self.adjoints.kept()
        except PolyopError:  # raised when the gradient runs
            read = (False,) * (len(self.input_specs) + len(schema.returns))
        inputs = iter(read)
        flags = tuple(next(inputs) if a.type.is_tensor else True for a in schema.arguments)
        return Uses(flags, tuple(inputs))

    def __call__(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        grads: Sequence[Any],
        needs_gradient: Sequence[bool],
    ) -> tuple[Any, ...]:
        """Return one gradient per argument; None where none is needed, or where it is zero."""
        input_grads: list[Any] = [None] * len(inputs)
        call = self.part_call(inputs, outputs, grads, needs_gradient)
        if call is None:
            return tuple(input_grads)
        if call.arguments:
            results = joined(call.part(*call.arguments))
            for at, flag, gradient in zip(self.positions, call.plan.computed, results, strict=True):
                if flag:
                    input_grads[at] = gradient
        for at, number in zip(self.positions, call.plan.shared_with, strict=True):
            if number is not None:
                input_grads[at] = grads[number]
        return tuple(input_grads)

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
        operands = self._operands(plan, inputs, outputs, grads) if True in plan.computed else ()
        return PartCall(plan, self._part(), operands)

    def step(self, grads: Sequence[Any], needs_gradient: Sequence[bool]) -> Step | None:
        """Return the call for output gradients, or None if none of them is present."""
        plan = self._cached_plan(grads, tuple(needs_gradient))
        if plan is None:
            return None
        results = [-1] * len(needs_gradient)
        for k, at in enumerate(self.positions):
            number = plan.shared_with[k]
            results[at] = -2 - number if number is not None else k if plan.computed[k] else -1
        if True not in plan.computed:
            return Step(None, (), (), tuple(results))
        flags = (*plan.read, *plan.present)
        operands = (*(None,) * len(flags), plan.key, *self.attributes.values())
        numbers = (-2 - k for k in range(len(self.attributes)))
        sources = (*(k if flag else -1 for k, flag in enumerate(flags)), -1, *numbers)
        return Step(self._part(), operands, sources, tuple(results))

    def _operands(
        self, plan: GradientPlan, inputs: Sequence[Any], outputs: Sequence[Any], grads: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Return the arguments of ``<name>__backward``."""
        tensors = [inputs[i] for i in self.positions]
        read = [x if flag else None for x, flag in zip((*tensors, *outputs), plan.read, strict=True)]
        present = [g if there else None for g, there in zip(grads, plan.present, strict=True)]
        return (*read, *present, plan.key, *(inputs[i] for i, _ in self.schema.attributes()))

    def _cached_plan(self, grads: Sequence[Any], needs_gradient: Flags) -> GradientPlan | None:
        """Return the plan, or None if no output gradient is present."""
        plan: GradientPlan | Literal[False] | None
        try:
            key = (needs_gradient, *[None if g is None else (g.shape, g.dtype) for g in grads])
            plan = self._plans.get(key, False)
        except (
            TypeError,
            AttributeError,
        ):  # symbolic sizes cannot be hashed, some gradients have no dtype: no cache
            return self._make_plan(grads, needs_gradient)
        if plan is False:
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            plan = self._plans[key] = self._make_plan(grads, needs_gradient)
        return plan

    def _spec_of_gradient(self, number: int, grad: Any) -> Any:
        try:
            return spec(grad)
        except PolyopError as problem:
            raise about(f"{self.schema.qualified_name}: gradient of output {number}", problem) from None

    def _make_plan(self, grads: Sequence[Any], needs_gradient: Flags) -> GradientPlan | None:
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
        read = adjoints.reads(present, needed) if any(computed) else ()
        kept = adjoints.kept() if read else ()
        if any(flag and not there for flag, there in zip(read, kept, strict=True)):
            rule = "its gradient reads a tensor that the forward call did not keep"
            raise GradientError(adjoints.base.name, rule, hint='compile it with tape="none"')
        return GradientPlan(shared_with, computed, read, present, str(SpecKey.of(self.input_specs, needed)))
