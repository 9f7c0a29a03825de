"""JAX arrays and tracers to specs and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...call.operator import Operator
from ...core.dtypes import dtype
from ...core.errors import ArgumentTypeError
from ...core.spec import Spec

_DEVICES = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda"}


def spec(array: Any) -> Spec:
    """Return an array's spec. A tracer has no device, so its spec has JAX's default device.

    Raises ``ArgumentTypeError`` for dtypes that kernels do not know, such as those of random keys.
    """
    concrete = isinstance(array, jax.Array) and not is_traced(array)
    platform = next(iter(array.devices())).platform if concrete else jax.default_backend()
    return Spec(tuple(array.shape), dtype(array.dtype), _DEVICES.get(platform, platform))


def is_traced(value: Any) -> bool:
    """Whether a value is a tracer, which stands for an array of a program that is being traced."""
    return isinstance(value, jax.core.Tracer)


def is_smooth(value: Any) -> bool:
    """Whether a value has gradients: of floating or complex dtype."""
    return bool(jnp.issubdtype(value.dtype, jnp.inexact))


def is_held(spec: Spec) -> bool:
    """Whether JAX has arrays of a dtype: it has none of 64 bits while these are switched off."""
    return bool(jax.dtypes.canonicalize_dtype(spec.dtype.numpy) == spec.dtype.numpy)


def structs(operator: Operator, specs: Sequence[Spec]) -> list[Any]:
    """Return output specs as ``jax.ShapeDtypeStruct``.

    Raises ``ArgumentTypeError`` for 64-bit dtypes while JAX has them switched off: it would allocate
    half of the memory that the kernel writes.
    """
    for number, spec in enumerate(specs):
        if not is_held(spec):
            subject = f"{operator.name}: output {number}"
            rule = f"is {spec.dtype}, and JAX has 64-bit types switched off"
            hint = 'jax.config.update("jax_enable_x64", True), or give the operator a 32-bit output'
            raise ArgumentTypeError(subject, rule, where=operator.origin, hint=hint)
    return [jax.ShapeDtypeStruct(spec.shape, spec.dtype.numpy) for spec in specs]


def conjugated(values: Sequence[Any]) -> list[Any]:
    """Return the values with complex ones conjugated; None stays None.

    Gradient rules follow PyTorch's convention for complex values; JAX's gradients are the conjugates.
    """
    return [None if v is None else jnp.conj(v) if jnp.iscomplexobj(v) else v for v in values]
