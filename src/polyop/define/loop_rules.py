"""The gradient rule that polyop derives of a loop kernel: one call of ``<name>__backward``."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from ..core.errors import PolyopError
from ..core.operator import Operator
from ..gradients.uses import Uses
from ..hosts.bound import BoundOperator
from ..kernels.loops.derived import BackwardKernel, described
from .loop_batch import BatchRule
from .loop_parts import joined, loop_kernels, make_part, specs, split
from .loop_saving import Savings
from .loop_tangent import TangentRule

Specs = tuple[Any, ...]
Flags = tuple[bool, ...]
PLANS = 256
"""Shapes of which a rule remembers what a call does."""


class Plan(NamedTuple):
    """What a gradient's call does: by tensor the output whose gradient it shares, or whether it is computed.

    ``read`` tells which tensors and outputs the kernel is given, ``told`` is its text of what all were.
    """

    same: tuple[int | None, ...]
    computed: Flags
    read: Flags
    told: str


class DerivedRule:
    """The gradient rule of an operator whose kernels are loop kernels.

    ``backward`` is the operator ``<name>__backward(inputs, outputs, output gradients) -> input gradients``;
    its own gradient is derived in the same way. Nothing is derived before a gradient is asked for.
    """

    is_derived = True

    def __init__(self, operator: Operator) -> None:
        """Take the operator, which is without a rule."""
        self.schema, self.operator = operator.schema, operator
        self.kernels = loop_kernels(operator)
        self.savings = Savings(operator, self.kernels)
        self._backward: BoundOperator | None = None
        self._lock = threading.RLock()
        self._plans = functools.lru_cache(maxsize=PLANS)(self._plan)

    @property
    def kernel(self) -> BackwardKernel:
        """The gradient's kernel for the CPU."""
        return cast("BackwardKernel", self.backward.operator.kernels[0])

    @property
    def backward(self) -> BoundOperator:
        """The operator that computes the gradients."""
        with self._lock:
            if self._backward is None:
                kernels = [BackwardKernel.of(k) for k in self.kernels]
                count = len(self.schema.returns)
                names = [f"out{k}" for k in range(count)] + [f"d_out{k}" for k in range(count)]
                tensors = len(self.schema.tensor_positions)
                told = kernels[0].told
                self._backward = make_part(self.operator, "backward", kernels, names, tensors, told)
            return self._backward

    def part(self, suffix: str) -> BoundOperator | None:
        """Return the operator that belongs to this one under the name ``<name>__<suffix>``, or None."""
        return self.backward if suffix == "backward" else self.savings.part(suffix)

    def made(self) -> list[BoundOperator]:
        """Return the operators that were made for this one so far."""
        return [*([self._backward] if self._backward is not None else []), *self.savings.made()]

    def saving(self, arguments: Sequence[Any]) -> BoundOperator | None:
        """Return the operator to call in place of this one where a gradient is wanted, or None.

        It gives the outputs first, then temporaries that its own gradient reads.
        """
        return self.savings.of(arguments)

    def reads(self, arguments: Sequence[Any], outputs: int) -> Uses:
        """Return which of the arguments and of the outputs are kept for the gradient."""
        tensors, numbers = split(self.schema, arguments)
        try:
            read = self.kernel.reads(specs(tensors), {**self.operator.attributes, **numbers})
        except PolyopError:  # said when the gradient is asked for
            read = (False,) * (len(tensors) + outputs)
        inputs = iter(read)
        flags = tuple(next(inputs) if a.type.is_tensor else True for a in self.schema.arguments)
        return Uses(flags, tuple(inputs))

    def without_gradient(self, arguments: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """Return the outputs that no gradient leads through: none, beside those of whole numbers."""
        del arguments, outputs
        return []

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Return one gradient or None per argument."""
        *given, outputs, grads = arguments
        if not self.operator.several:
            outputs, grads = (outputs,), (grads,)
        return self.pull(given, outputs, grads, (True,) * len(given))

    def pull(
        self, given: Sequence[Any], outputs: Sequence[Any], grads: Sequence[Any], wanted: Sequence[bool]
    ) -> tuple[Any, ...]:
        """Return one gradient per argument, None for those that are not wanted."""
        tensors, numbers = split(self.schema, given)
        above = tuple(specs(grads))
        present = tuple(g is not None and bool(g.dtype.is_floating) for g in above)
        if not any(present):
            return (None,) * len(given)
        asked = tuple(bool(wanted[i]) for i in self.schema.tensor_positions)
        plan = self._planned(tuple(specs(tensors)), above, numbers, present, asked)
        own = [None if k is None else grads[k] for k in plan.same]
        if any(plan.computed):
            taken = [x if flag else None for x, flag in zip((*tensors, *outputs), plan.read, strict=True)]
            handed = [g if there else None for g, there in zip(grads, present, strict=True)]
            made = joined(self.backward(*taken, *handed, plan.told, *numbers.values()))
            own = [g if flag else mine for g, flag, mine in zip(made, plan.computed, own, strict=True)]
        found = iter(own)
        return tuple(next(found) if a.type.is_tensor else None for a in self.schema.arguments)

    def _planned(
        self, seen: Specs, above: Specs, numbers: dict[str, Any], present: Flags, asked: Flags
    ) -> Plan:
        typed = tuple((name, type(value), value) for name, value in numbers.items())
        try:
            hash((seen, above, typed))
        except TypeError:  # sizes that are symbols, or a list of numbers
            return self._plan(seen, above, typed, present, asked)
        return self._plans(seen, above, typed, present, asked)

    def _plan(
        self, seen: Specs, above: Specs, numbers: tuple[Any, ...], present: Flags, asked: Flags
    ) -> Plan:
        """Return what a call with these specs does: of the tensors, and of the gradients from above."""
        kernel = self.kernel
        fixed = {**self.operator.attributes, **{name: value for name, _, value in numbers}}
        passed = kernel.passed(seen, above, fixed, present, asked)
        same = tuple(k if a else None for k, a in zip(passed, asked, strict=True))
        asked = tuple(a and k is None for k, a in zip(passed, asked, strict=True))
        computed = tuple(a and moved for a, moved in zip(asked, kernel.moves(seen, fixed), strict=True))
        read = kernel.reads(seen, fixed, present, asked) if any(computed) else ()
        return Plan(same, computed, read, described(seen, asked))

    def loops(self, *inputs: Any, **attributes: Any) -> str:
        """Return the derived loops, before they are scheduled, as Python text, for tensors or specs."""
        from ..kernels.loops.shown import shown

        kernel = self.kernel
        found = kernel.adjoint(specs(inputs), attributes, (True,) * kernel.base.results)
        return shown(found.kernel)

    def source(self, *inputs: Any, **attributes: Any) -> str:
        """Return the gradient's C for tensors or specs of the operator; without any, for those seen last."""
        from ..kernels.loops.make import sources

        kernel = self.kernel
        if not inputs:
            return kernel.source()
        found = kernel.adjoint(specs(inputs), attributes, (True,) * kernel.base.results)
        return "\n".join(sources(found.kernel, kernel.options))


def with_derived(operator: Operator) -> Operator:
    """Return an operator of loop kernels with what it lacks and can be derived.

    That is its gradient, its tangent and its batch. Of one that has a gradient given only the batch is
    derived, whose gradient is the given one of each sample: a tangent would be another function's.
    """
    loops = operator.kernels and all(hasattr(k, "outline") for k in operator.kernels)
    if not loops or operator.schema.mutates:
        return operator
    if operator.gradient is not None:
        alone = operator.batch is None and operator.jvp is None
        return dataclasses.replace(operator, batch=BatchRule(operator)) if alone else operator
    return dataclasses.replace(
        operator,
        gradient=DerivedRule(operator),
        jvp=operator.jvp or TangentRule(operator),
        batch=operator.batch or BatchRule(operator),
    )


def without_derived(operator: Operator) -> Operator:
    """Return the operator with the rules alone that were given to it."""
    rules = {name: getattr(operator, name) for name in ("gradient", "jvp", "batch")}
    gone: Any = {name: None for name, rule in rules.items() if getattr(rule, "is_derived", False)}
    return dataclasses.replace(operator, **gone)
