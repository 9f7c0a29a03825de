"""JAX arrays and tracers to specs and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...core.dtypes import DType, dtype
from ...core.errors import NoDtypeError
from ...core.spec import Spec

_DEVICES = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda"}


def spec(array: Any) -> Spec:
    """Return an array's spec. A tracer has no device, so its spec has JAX's default device.

    Raises ``ArgumentTypeError`` for dtypes that kernels do not know, such as those of random keys, or that
    XLA packs.
    """
    concrete = isinstance(array, jax.Array) and not is_traced(array)
    platform = next(iter(array.devices())).platform if concrete else jax.default_backend()
    return Spec(
        tuple(array.shape), _given_by_xla(dtype(array.dtype), "dtype"), _DEVICES.get(platform, platform)
    )


def _given_by_xla(row: DType, subject: str) -> DType:
    """Return the row; raise ``NoDtypeError`` if XLA has other memory for the dtype, or has none."""
    if row.xla < 0:
        rule = "must be one whose elements XLA leaves in bytes of their own"
        hint = (
            "convert it: x.astype(jnp.float8_e4m3fn) has the same numbers" if "float4" in row.name else None
        )
        raise NoDtypeError(subject, rule, row.name, hint=hint)
    return row


def is_traced(value: Any) -> bool:
    """Whether a value is a tracer, which stands for an array of a program that is being traced."""
    return isinstance(value, jax.core.Tracer)


def is_smooth(value: Any) -> bool:
    """Whether a value has gradients: of floating or complex dtype."""
    return bool(jnp.issubdtype(value.dtype, jnp.inexact))


def structs(specs: Sequence[Spec]) -> list[Any]:
    """Return output specs as ``jax.ShapeDtypeStruct``; raises ``ArgumentTypeError``."""
    return [
        jax.ShapeDtypeStruct(spec.shape, _given_by_xla(spec.dtype, "the dtype of an output").numpy)
        for spec in specs
    ]


def conjugated(values: Sequence[Any]) -> list[Any]:
    """Return the values with complex ones conjugated; None stays None.

    Gradient rules follow PyTorch's convention for complex values; JAX's gradients are the conjugates.
    """
    return [None if v is None else jnp.conj(v) if jnp.iscomplexobj(v) else v for v in values]
