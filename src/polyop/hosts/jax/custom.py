"""An operator by ``custom_vjp`` over ``custom_vmap``: every transform but forward mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from . import rules, tensors
from .partition import lower
from .site import Site

_functions: dict[Site, Any] = {}


def call(site: Site, flat: Sequence[Any]) -> tuple[Any, ...]:
    """Return the outputs of a call on flat arrays or tracers."""
    found = _functions.get(site)
    if found is None:
        if len(_functions) >= 1024:  # attributes that keep changing must not grow memory
            _functions.clear()
        found = _functions[site] = jax.jit(_made(site))
    return tuple(found(*flat))


def _made(site: Site) -> Any:
    @jax.custom_batching.custom_vmap
    def batchable(*flat: Any) -> tuple[Any, ...]:
        return lower(site, flat)

    @batchable.def_vmap
    def _(size: int, there: Any, *flat: Any) -> Any:
        dims = [0 if one else None for one in there]
        outputs, where = rules.batched(call, site, size, flat, dims)
        moved = [o if d in (0, None) else jnp.moveaxis(o, d, 0) for o, d in zip(outputs, where, strict=True)]
        return tuple(moved), tuple(d is not None for d in where)

    @jax.custom_vjp
    def function(*flat: Any) -> tuple[Any, ...]:
        return batchable(*flat)  # type: ignore[no-any-return]

    def forward(*flat: Any) -> Any:
        made = call(rules.differentiable(site, flat), flat)
        return made[: len(site.outputs(flat))], (flat, made)

    def backward(kept: Any, grads: Any) -> tuple[Any, ...]:
        flat, made = kept
        given = [g if tensors.is_smooth(o) else rules.zeros(o) for g, o in zip(grads, made, strict=False)]
        return tuple(rules.gradients(rules.differentiable(site, flat), flat, made, given))

    function.defvjp(forward, backward)
    return function
