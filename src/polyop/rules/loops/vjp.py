"""What a derived gradient does, settled once for the specs and attributes of a call of its operator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from ...call.bound import BoundOperator
from ...call.operator import Operator
from ...call.uses import Uses
from ...core.errors import GradientError, PolyopError
from ...core.spec_key import SpecKey
from ...kernels.loop.derived import BackwardKernel
from .parts import all_attributes, joined, specs
from .saving import Savings

Flags = tuple[bool, ...]
MAX_PLANS = 64
"""Plans that are kept: by which gradients are wanted, and by shapes and dtypes of those that come in."""


class BackwardPlan(NamedTuple):
    """What one backward call does. The fields have an entry for each tensor of the operator, in order.

    ``shared_with``: the output whose gradient is this tensor's, else None. ``computed``: whether the kernel
    computes it. ``read``: which tensors, and then which outputs, the kernel reads. ``present``: which output
    gradients it is given. ``key``: the text of the :class:`SpecKey`, with the gradients that are asked for.
    """

    shared_with: tuple[int | None, ...]
    computed: Flags
    read: Flags
    present: Flags
    key: str


class LoopVJP:
    """The gradient of the calls that had tensors of the specs ``seen``, and the attributes ``numbers``."""

    def __init__(
        self,
        operator: Operator,
        backward: Callable[[], BoundOperator],
        savings: Savings,
        seen: Sequence[Any],
        numbers: Mapping[str, Any],
    ) -> None:
        """Derive nothing yet; ``backward`` returns the operator that computes the gradients."""
        self.schema, self._backward, self._savings = operator.schema, backward, savings
        self.seen, self.numbers = tuple(seen), dict(numbers)
        self.fixed = all_attributes(operator, numbers)
        self.positions = operator.schema.tensor_positions
        self._plans: dict[Any, Any] = {}

    @property
    def kernel(self) -> BackwardKernel:
        """The gradient's kernel for the CPU."""
        return cast("BackwardKernel", self._backward().operator.kernels[0])

    @functools.cached_property
    def saving(self) -> BoundOperator | None:
        """The operator to call in place of this one where a gradient is requested, or None."""
        return self._savings.of(self.seen, self.numbers)

    @functools.cached_property
    def uses(self) -> Uses:
        """What of the arguments and of the outputs is kept for the gradient."""
        schema = self.schema
        try:
            read = self.kernel.saved_for_backward(self.seen, self.fixed)
        except PolyopError:  # said when the gradient is asked for
            read = (False,) * (len(self.seen) + len(schema.returns))
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
        found: list[Any] = [None] * len(inputs)
        plan = self._cached_plan(grads, tuple(needs_gradient))
        if plan is None:
            return tuple(found)
        if True in plan.computed:
            tensors = [inputs[i] for i in self.positions]
            taken = [x if flag else None for x, flag in zip((*tensors, *outputs), plan.read, strict=True)]
            handed = [g if there else None for g, there in zip(grads, plan.present, strict=True)]
            made = joined(self._backward()(*taken, *handed, plan.key, *self.numbers.values()))
            for at, flag, gradient in zip(self.positions, plan.computed, made, strict=True):
                if flag:
                    found[at] = gradient
        for at, number in zip(self.positions, plan.shared_with, strict=True):
            if number is not None:
                found[at] = grads[number]
        return tuple(found)

    def _cached_plan(self, grads: Sequence[Any], wanted: Flags) -> BackwardPlan | None:
        """Return the plan, or None where no output gradient comes in."""
        found: BackwardPlan | Literal[False] | None
        try:
            key = (wanted, *[None if g is None else (g.shape, g.dtype) for g in grads])
            found = self._plans.get(key, False)
        except (
            TypeError,
            AttributeError,
        ):  # symbolic sizes cannot be hashed, some gradients have no dtype: no cache
            return self._make_plan(grads, wanted)
        if found is False:
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            found = self._plans[key] = self._make_plan(grads, wanted)
        return found

    def _make_plan(self, grads: Sequence[Any], wanted: Flags) -> BackwardPlan | None:
        above = specs(grads)
        kernel = self.kernel
        rows = zip(above, kernel.differentiable_outputs(self.seen, self.fixed), strict=True)
        present = tuple(there and g is not None and bool(g.dtype.is_floating) for g, there in rows)
        if not any(present):
            return None
        asked = tuple(bool(wanted[i]) for i in self.positions)
        shared = kernel.shared_gradients(self.seen, above, self.fixed, present, asked)
        same = tuple(k if a else None for k, a in zip(shared, asked, strict=True))
        asked = tuple(a and k is None for k, a in zip(shared, asked, strict=True))
        differentiable = kernel.differentiable_inputs(self.seen, self.fixed)
        computed = tuple(a and flag for a, flag in zip(asked, differentiable, strict=True))
        read = kernel.reads(self.seen, self.fixed, present, asked) if any(computed) else ()
        kept = kernel.saved_for_backward(self.seen, self.fixed) if read else ()
        if any(flag and not there for flag, there in zip(read, kept, strict=True)):
            rule = "its gradient reads a tensor that the forward call did not keep"
            raise GradientError(kernel.base.name, rule, hint='compile it with tape="none"')
        return BackwardPlan(same, computed, read, present, str(SpecKey.of(self.seen, asked)))
