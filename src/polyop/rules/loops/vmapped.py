"""The gradient of a batch by the author's gradient rule, which is mapped over the samples."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ...call.host import array_namespace, host_of
from ...call.operator import Operator
from ...call.rule import Rule, apply_rule
from ...core.errors import FallbackWarning
from ...core.texts import first_line
from ...kernels.loop.forms import parse_axes
from .parts import is_real

Dims = Sequence[int | None]
_MAPS: dict[str, Callable[[Any, Any, Dims], Any]] = {
    "torch": lambda torch, function, dims: torch.func.vmap(function, in_dims=tuple(dims)),
    "jax": lambda jax, function, dims: jax.vmap(function, in_axes=tuple(dims)),
}
"""By framework: maps a function of one sample over all samples."""
_warned: set[str] = set()


class VmappedGradient(Rule):
    """The gradient rule of ``<name>__batched``, by the framework's own ``vmap`` of the rule of ``operator``.

    A tensor that all samples share gets the sum of their gradients.
    """

    def __init__(self, operator: Operator) -> None:
        """Keep the operator, which has a gradient rule."""
        self.operator = operator

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Return one gradient or None per argument of the batched operator."""
        *inputs, outputs, grads = arguments
        schema = self.operator.schema
        count = len(schema.tensor_positions)
        tensors, axes, attributes = inputs[:count], parse_axes(inputs[count]), inputs[count + 1 :]
        operands = (*tensors, *outputs, *grads)
        dims = (*axes, *(0 for _ in outputs), *(None if g is None else 0 for g in grads))
        mapped = [
            k for k, (x, d) in enumerate(zip(operands, dims, strict=True)) if x is not None and d is not None
        ]
        with_gradient: list[int] = []

        def one_sample(*values: Any) -> tuple[Any, ...]:
            sample = [None if d is not None else x for x, d in zip(operands, dims, strict=True)]
            for k, value in zip(mapped, values, strict=True):
                sample[k] = value
            sample_grads = self._rule(sample, attributes, len(outputs))
            with_gradient[:] = [k for k, g in enumerate(sample_grads) if g is not None]
            return tuple(sample_grads[k] for k in with_gradient)

        values, mapped_dims = [operands[k] for k in mapped], [dims[k] for k in mapped]
        size = int(outputs[0].shape[0])
        if size == 0:
            empty = (x * 0 if is_real(x) else None for x in tensors)
            return (*empty, *(None,) * (len(inputs) - count))
        batched_grads = self._mapped(one_sample, values, mapped_dims, size)
        input_grads: list[Any] = [None] * len(inputs)
        for k, gradient in zip(with_gradient, batched_grads, strict=True):
            input_grads[k] = _at_axis(gradient, axes[k])
        return tuple(input_grads)

    def _rule(self, sample: Sequence[Any], attribute_values: Sequence[Any], outputs: int) -> list[Any]:
        """Return the gradients of one sample's tensors."""
        schema, attributes = self.operator.schema, iter(attribute_values)
        count = len(sample) - 2 * outputs
        tensors = iter(sample[:count])
        inputs = [next(tensors) if a.type.is_tensor else next(attributes) for a in schema.arguments]
        grads = apply_rule(self.operator, inputs, sample[count : count + outputs], sample[count + outputs :])
        return [grads[i] for i in schema.tensor_positions]

    def _mapped(self, function: Any, values: Sequence[Any], dims: Sequence[Any], size: int) -> Sequence[Any]:
        """Return the results of ``function`` for all samples, stacked along a new first axis."""
        host = host_of(values[0])
        name = "" if host is None else host.name
        if name == "jax":
            return _vmapped(name, function, dims, values)
        if name == "torch":
            try:
                return _vmapped(name, function, dims, values)
            except RuntimeError as problem:  # PyTorch's vmap cannot batch the rule
                self._warn_once(problem)
        samples = [
            function(*(_sample(x, d, k) for x, d in zip(values, dims, strict=True))) for k in range(size)
        ]
        stack = array_namespace(*values).stack
        return [stack(list(row)) for row in zip(*samples, strict=True)]

    def _warn_once(self, problem: RuntimeError) -> None:
        """Warn, once for each operator, that its rule runs sample by sample."""
        name = self.operator.name
        if name not in _warned:
            _warned.add(name)
            first = first_line(problem)
            text = (
                f"{name}: the gradient of a batch runs its rule once per sample, as vmap of it fails: {first}"
            )
            warnings.warn(text, FallbackWarning, stacklevel=2)


def _vmapped(name: str, function: Any, dims: Dims, values: Sequence[Any]) -> Sequence[Any]:
    """Return the results of ``function`` for all samples, by the ``vmap`` of the framework ``name``."""
    results: tuple[Any, ...] = _MAPS[name](sys.modules[name], function, dims)(*values)
    return results


def _at_axis(gradient: Any, dim: int | None) -> Any:
    """Return the gradients of all samples as the gradient of a tensor whose samples are along ``dim``.

    If ``dim`` is None, all samples share the tensor, and its gradient is the sum of theirs.
    """
    if dim is None:
        return gradient.sum(0)
    return gradient if dim == 0 else array_namespace(gradient).moveaxis(gradient, 0, dim)


def _sample(value: Any, dim: int, number: int) -> Any:
    """Return one sample of a tensor."""
    return value[tuple([slice(None)] * dim + [number])]
