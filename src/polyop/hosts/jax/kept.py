"""What is kept of a call until its gradient is taken: the arrays that the rules read, no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from ...call.rule import own_rule
from ...call.uses import Uses, used_by_rule
from ...core.dtypes import dtype
from ...core.spec import Spec
from .site import Site


@dataclass(frozen=True)
class Unread:
    """Stands for an array that the rules do not read; ``type`` is JAX's own word for it."""

    type: Any

    @property
    def shape(self) -> tuple[Any, ...]:
        """Sizes."""
        return tuple(self.type.shape)

    @property
    def dtype(self) -> Any:
        """NumPy's dtype."""
        return self.type.dtype

    @property
    def spec(self) -> Spec:
        """The array's spec."""
        return Spec(self.shape, dtype(self.dtype))

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


@dataclass(frozen=True)
class Kept:
    """A call that can be differentiated: which arrays are at hand, which inputs move.

    ``inputs`` and ``outputs`` say what each array is like, ``read`` which of them (inputs, then
    outputs) are kept; ``count`` of the outputs are the operator's own.
    """

    site: Site
    inputs: tuple[Unread, ...]
    outputs: tuple[Unread, ...]
    read: tuple[bool, ...]
    count: int
    moving: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many arrays are kept."""
        return sum(self.read)

    @property
    def smooth(self) -> tuple[int, ...]:
        """Which of the operator's own outputs have gradients."""
        return tuple(i for i in range(self.count) if dtype(self.outputs[i].dtype).is_floating)

    def restored(self, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return (inputs, outputs), with an ``Unread`` in the place of each that was not kept."""
        left = iter(values)
        rows = zip((*self.inputs, *self.outputs), self.read, strict=True)
        every = [_array(next(left)) if read else like for like, read in rows]
        return every[: len(self.inputs)], every[len(self.inputs) :]


def _array(value: Any) -> Any:
    return value if isinstance(value, jax.Array) else jnp.asarray(value)  # constants come as JAX keeps them


def keep(
    site: Site, flat: Sequence[Any], made: Sequence[Any], count: int, moving: tuple[int, ...]
) -> tuple[Kept, list[Any]]:
    """Return what is kept, and the arrays of it."""
    inputs, outputs = _reads(site, flat, made, moving)
    read = (*inputs, *outputs)
    kept = Kept(site, _likes(flat), _likes(made), read, count, moving)
    return kept, [value for value, flag in zip((*flat, *made), read, strict=True) if flag]


def _likes(values: Sequence[Any]) -> tuple[Unread, ...]:
    return tuple(Unread(jax.typeof(value)) for value in values)


def _reads(
    site: Site, flat: Sequence[Any], made: Sequence[Any], moving: Sequence[int]
) -> tuple[list[bool], list[bool]]:
    """Return which inputs and which outputs the rules read; all of a list, where they read of it."""
    operator = site.operator
    count = len(operator.schema.arguments)
    likes, rule, tangent = site.arguments(_likes(flat)), own_rule(operator.gradient), own_rule(operator.jvp)
    moved = site.places([i if i in moving else None for i in range(len(flat))])
    by_gradient = None if rule is None else rule.reads(likes, len(made))
    by_tangent = None if tangent is None else tangent.reads(likes, len(made), moved)
    every: list[Uses] = [
        by_gradient or used_by_rule(operator.gradient, count),
        by_tangent or used_by_rule(operator.jvp, count),
    ]
    inputs, outputs = [False] * len(flat), [False] * len(made)
    for uses in every:
        for place, read in zip(site.places(range(len(flat))), uses.inputs, strict=True):
            for number in place if isinstance(place, tuple) else (place,):
                if number is not None:
                    inputs[number] |= read
        each = uses.outputs if isinstance(uses.outputs, tuple) else (uses.outputs,) * len(made)
        outputs = [a or b for a, b in zip(outputs, each, strict=True)]
    return inputs, outputs
