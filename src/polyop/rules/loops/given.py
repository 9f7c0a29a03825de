"""The gradient of a batch of an operator that has a gradient rule of its own: that rule for every sample."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ...call.host import array_namespace, host_of
from ...call.operator import Operator
from ...call.rule import Rule, apply_rule
from ...core.errors import FallbackWarning
from ...kernels.loop.batch import parse_axes
from .parts import is_real

Dims = Sequence[int | None]
_MAPS: dict[str, Callable[[Any, Any, Dims], Any]] = {
    "torch": lambda torch, function, dims: torch.func.vmap(function, in_dims=tuple(dims)),
    "jax": lambda jax, function, dims: jax.vmap(function, in_axes=tuple(dims)),
}
"""By framework: a function as one of all samples."""
_warned: set[str] = set()


class GivenRule(Rule):
    """The gradient rule of ``<name>__batched``, by the framework's own ``vmap`` of the rule of ``operator``.

    A tensor that all samples share gets the sum of their gradients.
    """

    def __init__(self, operator: Operator) -> None:
        """Take the operator, which has a rule."""
        self.operator = operator

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Return one gradient or None per argument of the batched operator."""
        *given, outputs, grads = arguments
        schema = self.operator.schema
        count = len(schema.tensor_positions)
        tensors, places, numbers = given[:count], parse_axes(given[count]), given[count + 1 :]
        parts = (*tensors, *outputs, *grads)
        dims = (*places, *(0 for _ in outputs), *(None if g is None else 0 for g in grads))
        moved = [
            k for k, (x, d) in enumerate(zip(parts, dims, strict=True)) if x is not None and d is not None
        ]
        known: list[int] = []

        def one(*values: Any) -> tuple[Any, ...]:
            sample = [None if d is not None else x for x, d in zip(parts, dims, strict=True)]
            for k, value in zip(moved, values, strict=True):
                sample[k] = value
            found = self._rule(sample, numbers, len(outputs))
            known[:] = [k for k, g in enumerate(found) if g is not None]
            return tuple(found[k] for k in known)

        values, axes = [parts[k] for k in moved], [dims[k] for k in moved]
        size = int(outputs[0].shape[0])
        if size == 0:
            none = (x * 0 if is_real(x) else None for x in tensors)
            return (*none, *(None,) * (len(given) - count))
        made = iter(self._mapped(one, values, axes, size))
        rows: list[Any] = [None] * len(given)
        for k in known:
            rows[k] = _placed(next(made), places[k])
        return tuple(rows)

    def _rule(self, sample: Sequence[Any], numbers: Sequence[Any], outputs: int) -> list[Any]:
        """Return the gradients of one sample's tensors."""
        schema, attributes = self.operator.schema, iter(numbers)
        count = len(sample) - 2 * outputs
        tensors = iter(sample[:count])
        inputs = [next(tensors) if a.type.is_tensor else next(attributes) for a in schema.arguments]
        found = apply_rule(self.operator, inputs, sample[count : count + outputs], sample[count + outputs :])
        return [found[i] for i in schema.tensor_positions]

    def _mapped(self, one: Any, values: Sequence[Any], axes: Sequence[Any], size: int) -> Sequence[Any]:
        host = host_of(values[0])
        name = "" if host is None else host.name
        if name == "jax":
            return self._once(name, one, axes, values)
        if name == "torch":
            try:
                return self._once(name, one, axes, values)
            except RuntimeError as problem:  # what PyTorch's vmap says of a rule that it cannot batch
                self._say_once(problem)
        samples = [one(*(_taken(x, d, k) for x, d in zip(values, axes, strict=True))) for k in range(size)]
        stack = array_namespace(*values).stack
        return [stack(list(row)) for row in zip(*samples, strict=True)]

    def _once(self, name: str, one: Any, axes: Dims, values: Sequence[Any]) -> Sequence[Any]:
        found: tuple[Any, ...] = _MAPS[name](sys.modules[name], one, axes)(*values)
        return found

    def _say_once(self, problem: RuntimeError) -> None:
        name = self.operator.name
        if name not in _warned:
            _warned.add(name)
            first = str(problem).strip().splitlines()[0]
            text = (
                f"{name}: the gradient of a batch runs its rule once per sample, as vmap of it fails: {first}"
            )
            warnings.warn(text, FallbackWarning, stacklevel=2)


def _placed(gradient: Any, dim: int | None) -> Any:
    """Return gradients of all samples as that of the tensor, which has the samples at ``dim``."""
    if dim is None:
        return gradient.sum(0)
    return gradient if dim == 0 else array_namespace(gradient).moveaxis(gradient, 0, dim)


def _taken(value: Any, dim: int, number: int) -> Any:
    return value[tuple([slice(None)] * dim + [number])]
