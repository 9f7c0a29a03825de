"""Run a call outside of compiled programs at once, for operators whose shapes may depend on data.

The shapes of the outputs are those that the kernel gives, so they may depend on data. An error is raised
in the call, as the kernel raised it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ...call import foreign
from ...call.host import load
from ...call.narrow import NARROW, cast
from ...call.operator import Operator
from ...core.errors import UnsupportedError
from .site import Site


def is_near(flat: Sequence[Any]) -> bool:
    """Whether all arrays are on one CPU device, where a kernel can read them."""
    devices = {device for x in flat if isinstance(x, jax.Array) for device in x.devices()}
    if not devices:
        return bool(jax.default_backend() == "cpu")
    return len(devices) == 1 and str(next(iter(devices)).platform) == "cpu"


def run(site: Site, flat: Sequence[Any]) -> list[Any]:
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
