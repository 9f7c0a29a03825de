"""Calls outside of compiled programs: of operators that need the data, and under JAX's debugging flags.

An operator that needs the data runs at once. The shapes of the outputs are those that the kernel gives, so
they may depend on data. An error is raised in the call, as the kernel raised it.

With ``jax_disable_jit``, ``jax_debug_nans`` or ``jax_debug_infs`` JAX runs a program operation by operation.
An operator has no operations inside, so it still runs as one compiled program, and its outputs are checked
here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...call import foreign
from ...call.host import load
from ...call.narrow import NARROW, cast
from ...call.operator import Operator
from ...core.errors import UnsupportedError
from . import tensors
from .site import Site


def is_near(flat: Sequence[Any]) -> bool:
    """Whether all arrays are on one CPU device, where a kernel can read them."""
    devices = {device for x in flat if isinstance(x, jax.Array) for device in x.devices()}
    if not devices:
        return bool(jax.default_backend() == "cpu")
    return len(devices) == 1 and str(next(iter(devices)).platform) == "cpu"


def run_at_once(site: Site, flat: Sequence[Any]) -> list[Any]:
    """Return the outputs of a call: the new ones, then the new values of arguments that it writes.

    Raises what the kernel raises, and ``UnsupportedError`` for a result that it leaves undefined.
    """
    operator = site.operator
    schema = operator.schema
    written = set(foreign.written_tensors(schema, site.by_argument(range(len(flat)))))
    arrays = [np.array(x) if i in written else np.asarray(x) for i, x in enumerate(flat)]
    host = load("numpy")
    assert host is not None
    outputs = host.call(site.bound, site.unflatten(arrays))
    fresh = outputs if schema.returns_list else [outputs[i] for i in schema.fresh]
    if any(output is None for output in fresh):
        rule = "leaves one of its results undefined, which JAX has no array for"
        raise UnsupportedError(operator.name, rule, where=operator.origin)
    if not (site.wide and jax.config.jax_enable_x64):
        fresh = [_narrowed(operator, number, value) for number, value in enumerate(fresh)]
    results = [*fresh, *(arrays[i] for i in sorted(written))]
    placed = next((x.sharding for x in flat if isinstance(x, jax.Array) and x.committed), None)
    return [jax.device_put(x, placed) for x in results]


def _narrowed(operator: Operator, number: int, value: Any) -> Any:
    """Return an output as JAX has it without 64-bit types."""
    narrow = NARROW.get(value.dtype.name)
    return value if narrow is None else cast(operator, number, value, narrow)


_FLAGS = (
    # flag,           test for the forbidden value, its name in the error
    ("jax_debug_nans", jnp.isnan, "nan"),
    ("jax_debug_infs", jnp.isinf, "inf"),
)


def run_and_check(site: Site, program: Any, flat: Sequence[Any]) -> Any:
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
