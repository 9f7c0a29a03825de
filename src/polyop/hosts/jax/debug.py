"""Calls under JAX's debugging flags: ``jax_disable_jit``, ``jax_debug_nans``, ``jax_debug_infs``.

With one of them set JAX runs a program operation by operation. An operator has no operations
inside, so it still runs as one compiled program, and its outputs are checked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from . import tensors
from .site import Site

_FLAGS = (
    # flag,           test for the forbidden value, its name in the error
    ("jax_debug_nans", jnp.isnan, "nan"),
    ("jax_debug_infs", jnp.isinf, "inf"),
)


def run(site: Site, program: Any, flat: Sequence[Any]) -> Any:
    """Return the outputs of a call.

    Raises ``FloatingPointError``, which names the operator, for a value that the flags forbid.
    """
    enabled = [row for row in _FLAGS if getattr(jax.config, row[0])]
    with jax.disable_jit(disable=False), jax.debug_nans(False), jax.debug_infs(False):
        outputs = program(*flat)
        for number, output in enumerate(outputs):
            for _, test, word in enabled:
                if tensors.is_smooth(output) and bool(test(output).any()):
                    text = f"{site.operator.name}: output {number} has a value that is {word}"
                    raise FloatingPointError(text)
    return outputs
