"""What is kept of a call until its derivative is evaluated.

The residuals are the inputs and outputs that the operator's rules read. For every other input and
output a ``Placeholder`` keeps shape and dtype, so that its memory can be freed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from ...call.rule import Rule
from ...call.uses import Uses, used_by_rule
from ...core.dtypes import dtype
from ...core.spec import Spec
from .site import Site


@dataclass(frozen=True)
class Placeholder:
    """An array that the rules do not read, without its data; ``type`` is its abstract value in JAX."""

    type: Any

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes."""
        return tuple(self.type.shape)

    @property
    def dtype(self) -> Any:
        """The dtype, as NumPy has it."""
        return self.type.dtype

    @property
    def spec(self) -> Spec:
        """The array's spec."""
        return Spec(self.shape, dtype(self.dtype))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


@dataclass(frozen=True)
class Linearization:
    """The derivative of a call at its inputs, without the residuals themselves."""

    site: Site
    inputs: tuple[Placeholder, ...]
    outputs: tuple[Placeholder, ...]
    is_residual: tuple[bool, ...]  # of the inputs, then of the outputs
    count: int  # the first outputs, which are the operator's own; a saving operator has more
    active: tuple[int, ...]  # the inputs that have a tangent

    @property
    def residual_count(self) -> int:
        """The number of residuals."""
        return sum(self.is_residual)

    @property
    def smooth(self) -> tuple[int, ...]:
        """The operator's own outputs that have gradients, by index."""
        return tuple(i for i in range(self.count) if dtype(self.outputs[i].dtype).is_floating)

    def restore(self, residuals: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return (inputs, outputs), with a ``Placeholder`` for each that is not a residual."""
        remaining = iter(residuals)
        rows = zip((*self.inputs, *self.outputs), self.is_residual, strict=True)
        values = [_array(next(remaining)) if read else placeholder for placeholder, read in rows]
        return values[: len(self.inputs)], values[len(self.inputs) :]


def _array(value: Any) -> Any:
    return value if isinstance(value, jax.Array) else jnp.asarray(value)  # a constant may be NumPy's


def linearize(
    site: Site, inputs: Sequence[Any], outputs: Sequence[Any], count: int, active: tuple[int, ...]
) -> tuple[Linearization, list[Any]]:
    """Return the linearization of a call, and its residuals.

    ``count`` of the outputs are the operator's own; ``active`` are the inputs that have a tangent.
    """
    inputs_read, outputs_read = _reads(site, inputs, outputs, active)
    is_residual = (*inputs_read, *outputs_read)
    linearization = Linearization(
        site, _placeholders(inputs), _placeholders(outputs), is_residual, count, active
    )
    rows = zip((*inputs, *outputs), is_residual, strict=True)
    return linearization, [value for value, read in rows if read]


def _placeholders(values: Sequence[Any]) -> tuple[Placeholder, ...]:
    return tuple(Placeholder(jax.typeof(value)) for value in values)


def _reads(
    site: Site, flat: Sequence[Any], outputs: Sequence[Any], active: Sequence[int]
) -> tuple[list[bool], list[bool]]:
    """Return which inputs and which outputs the rules read; a list counts as read as a whole."""
    operator = site.operator
    argument_count = len(operator.schema.arguments)
    arguments = site.unflatten(_placeholders(flat))
    rules = (operator.gradient, operator.jvp)
    gradient, jvp = (rule if isinstance(rule, Rule) else None for rule in rules)
    active_arguments = site.by_argument([i if i in active else None for i in range(len(flat))])
    by_gradient = None if gradient is None else gradient.reads(arguments, len(outputs))
    by_jvp = None if jvp is None else jvp.reads(arguments, len(outputs), active_arguments)
    both: list[Uses] = [
        by_gradient or used_by_rule(operator.gradient, argument_count),
        by_jvp or used_by_rule(operator.jvp, argument_count),
    ]
    inputs_read, outputs_read = [False] * len(flat), [False] * len(outputs)
    for uses in both:
        for indices, read in zip(site.by_argument(range(len(flat))), uses.inputs, strict=True):
            for index in indices if isinstance(indices, tuple) else (indices,):
                if index is not None:
                    inputs_read[index] |= read
        flags = uses.outputs if isinstance(uses.outputs, tuple) else (uses.outputs,) * len(outputs)
        outputs_read = [a or b for a, b in zip(outputs_read, flags, strict=True)]
    return inputs_read, outputs_read
