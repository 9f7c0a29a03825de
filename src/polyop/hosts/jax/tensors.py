"""JAX arrays and tracers to specs and back; types of tracers (avals), with mesh axes that they vary over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import ad
from jax.sharding import NamedSharding, PartitionSpec

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


def result_type(operand: Any, shape: Sequence[Any], dtype: Any, axes: Sequence[Any] = ()) -> Any:
    """Return the type of a result of this shape that varies over the same mesh axes as an operand.

    ``axes`` has the mesh axes along which each dimension is split; without it no dimension is.
    """
    mesh = operand.sharding.mesh
    spec = PartitionSpec(*(axes or (None,) * len(shape)))
    sharding = None if mesh.empty else NamedSharding(mesh, spec)
    return operand.update(shape=tuple(shape), dtype=dtype, weak_type=False, sharding=sharding)


def varying(value: Any) -> frozenset[Any]:
    """Return the mesh axes over which a value varies; only inside ``shard_map`` there are any."""
    kind = jax.typeof(value)
    manual = getattr(kind, "manual_axis_type", None)  # JAX 0.10; ``vma`` before it
    axes: frozenset[Any] = manual.varying if manual is not None else getattr(kind, "vma", frozenset())
    return axes


def unified(values: Sequence[Any]) -> Sequence[Any]:
    """Return the values, cast so that all vary over the union of their mesh axes."""
    each = [varying(value) for value in values]
    union = frozenset().union(*each)
    if all(one == union for one in each):
        return values
    rows = zip(values, each, strict=True)
    return [x if one == union else _vary(x, tuple(union - one)) for x, one in rows]


def _vary(value: Any, axes: tuple[Any, ...]) -> Any:
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, axes, to="varying")
    return jax.lax.pvary(value, axes)  # JAX 0.7


def zeros(kind: Any) -> Any:
    """Return zeros of a type, with its sharding and varying axes."""
    return ad.instantiate_zeros(ad.Zero(kind))
