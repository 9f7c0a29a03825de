"""Calls while JAX's debugging flags are set, under which JAX runs programs operation by operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from . import tensors
from .site import Site

_FLAGS = (
    # flag,           what it forbids, how it is called
    ("jax_debug_nans", jnp.isnan, "nan"),
    ("jax_debug_infs", jnp.isinf, "inf"),
)


def run(site: Site, program: Any, flat: Sequence[Any]) -> Any:
    """Return the outputs of a call: still one program, as there is nothing inside to look at.

    Raises ``FloatingPointError`` that names the operator for values that the flags forbid.
    """
    wanted = [row for row in _FLAGS if getattr(jax.config, row[0])]
    with jax.disable_jit(disable=False), jax.debug_nans(False), jax.debug_infs(False):
        outputs = program(*flat)
        for number, output in enumerate(outputs):
            for _, test, word in wanted:
                if tensors.is_smooth(output) and bool(test(output).any()):
                    text = f"{site.operator.name}: output {number} has a value that is {word}"
                    raise FloatingPointError(text)
    return outputs
