"""Calls on JAX's arrays, inside ``jax.jit``. Import this file only where JAX is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...hosts.jax.tensors import is_smooth
from ...testing.case import Array, Case, as_list


def convert(case: Case, *, gradient: bool) -> tuple[Any, ...]:
    """Return the arguments as arrays of JAX; 64-bit ones switch ``jax_enable_x64`` on for the process."""
    del gradient
    if any(value.dtype.itemsize == 8 for _, value in case.tensors()):
        jax.config.update("jax_enable_x64", True)
    return case.map(lambda _, value: jnp.asarray(value))


def timed(
    case: Case, function: Callable[..., Any], arguments: tuple[Any, ...], *, gradient: bool
) -> Callable[[], Any]:
    """Return the call of the compiled function; it waits for the result."""
    del case
    tensors = [i for i, value in enumerate(arguments) if hasattr(value, "dtype")]
    values = [arguments[i] for i in tensors]

    def plain(*given: Any) -> Any:
        whole = list(arguments)
        for i, value in zip(tensors, given, strict=True):
            whole[i] = value
        return function(*whole)

    def gradients(*given: Any) -> Any:
        smooth = [k for k, value in enumerate(given) if is_smooth(value)]

        def moving(*some: Any) -> Any:
            whole = list(given)
            for k, value in zip(smooth, some, strict=True):
                whole[k] = value
            return [out for out in as_list(plain(*whole)) if is_smooth(out)]

        outputs, pull = jax.vjp(moving, *(given[k] for k in smooth))
        return pull([jnp.ones_like(out) for out in outputs])

    compiled = jax.jit(gradients if gradient else plain)
    return lambda: jax.block_until_ready(compiled(*values))


def arrays(case: Case, result: Any) -> list[Array]:
    """Return copies of the results as arrays."""
    del case
    return [np.array(value) for value in as_list(result)]
