"""Convert the NumPy arrays and Python numbers among the arguments of a call to JAX's arrays.

    op(x, np.ones(4), 2.0)    ->    op(x, jnp.asarray(np.ones(4)), jnp.asarray(2.0))

They are constants of the call, so ``jit`` has them in the program and no gradient is taken of them.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...call.foreign import flatten
from ...call.host import load, map_tensors, spec_of
from ...call.operator import Operator
from ...core.dtypes import dtype
from ...core.errors import ArgumentValueError
from ...core.schema import Argument
from .tensors import is_traced


def converted(operator: Operator, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with JAX's arrays as all tensors: the same tuple if they are that already.

    The dtypes are those of ``jnp.asarray``: of 32 bits while JAX has 64-bit types switched off. Raises
    ``ArgumentTypeError`` for arrays that kernels cannot read, ``ArgumentValueError`` for a number that is
    too large.
    """
    values = list(flatten(operator.schema, arguments))
    if all(isinstance(value, jax.Array) for value in values):
        return arguments
    place = _place(values)

    def convert(name: str, value: Any, argument: Argument) -> Any:
        del argument
        if isinstance(value, jax.Array):
            return value
        try:
            return jnp.asarray(_own(operator, name, value), device=place)
        except OverflowError:
            subject = f"{operator.name}: argument {name}"
            rule = "must fit into the integers that JAX has"
            hint = 'jax.config.update("jax_enable_x64", True) gives it those of 64 bits'
            raise ArgumentValueError(subject, rule, value, where=operator.origin, hint=hint) from None

    return map_tensors(operator, arguments, convert)


def _place(values: list[Any]) -> Any:
    """Return the one device on which the arrays must stay, or None: then JAX finds a place."""
    for value in values:
        if isinstance(value, jax.Array) and not is_traced(value) and value.committed:
            return value.sharding if len(value.devices()) == 1 else None
    return None


def _own(operator: Operator, name: str, value: Any) -> Any:
    """Return a number as it is, and of an array a copy in this machine's order of bytes, which JAX demands.

    JAX's array may lie over the memory of NumPy's, which can change before the call or its gradient has run.
    """
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    host = load("numpy")
    assert host is not None
    spec_of(host, operator, name, value)  # raises for a mask, and for a dtype that kernels do not know
    return np.array(value, dtype(value.dtype).numpy, order="C")
