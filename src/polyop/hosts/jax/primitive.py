"""An operator as a JAX primitive that carries all its rules: jvp, vjp and batching together.

Source: hijax's ``VJPHiPrimitive`` (JAX's FFI tutorial), there since JAX 0.10.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.experimental import hijax

from . import rules, tensors
from .partition import lower
from .site import Site


class OperatorCall(hijax.VJPHiPrimitive):  # type: ignore[misc]  # JAX has no types here
    """One call of an operator on arrays of given types."""

    site: Site

    def __init__(self, site: Site, flat: Sequence[Any]) -> None:
        """Infer the outputs; raises what the infer rule does."""
        self.in_avals = tuple(jax.typeof(value) for value in flat)
        self.out_aval = _types(site, flat, self.in_avals)
        self.params = {"site": site}
        super().__init__()

    def expand(self, *flat: Any) -> tuple[Any, ...]:
        """Return the outputs in terms of XLA's operations."""
        return lower(self.site, flat)

    def vjp_fwd(self, moving: Any, *flat: Any) -> Any:
        """Return the outputs and what the gradient needs."""
        del moving
        made = call(rules.differentiable(self.site, flat), flat)
        return made[: len(self.out_aval)], (flat, made)

    def vjp_bwd(self, kept: Any, grads: Any, /, *sums: Any) -> None:
        """Add the gradients to those of the inputs; outputs that nobody read have none."""
        flat, made = kept
        if all(isinstance(grad, hijax.Zero) for grad in grads):
            return
        given = [_filled(grad, output) for grad, output in zip(grads, made, strict=False)]
        found = rules.gradients(rules.differentiable(self.site, flat), flat, made, given)
        for total, grad, value in zip(sums, found, flat, strict=True):
            if grad is not None and tensors.is_smooth(value) and hasattr(total, "accum"):
                total.accum(grad)

    def jvp(self, primals: Any, given: Any) -> Any:
        """Return the outputs and their tangents."""
        site = rules.differentiable(self.site, primals)
        made = call(site, primals)
        moving = [
            None if isinstance(t, hijax.Zero) or not tensors.is_smooth(x) else t
            for x, t in zip(primals, given, strict=True)
        ]
        count = len(self.out_aval)
        found = rules.tangents(site, primals, made, moving)[:count]
        pairs = zip(found, self.out_aval, strict=True)
        return made[:count], tuple(hijax.Zero(a.to_tangent_aval()) if t is None else t for t, a in pairs)

    def batch(self, axis: Any, flat: Any, dims: Any) -> Any:
        """Return the outputs of all samples and where their batch dimension is."""
        return rules.batched(call, self.site, axis.size, flat, dims)


def _filled(grad: Any, output: Any) -> Any:
    """Return a gradient as an array of the output's dtype."""
    absent = isinstance(grad, hijax.Zero) or grad.dtype == jax.dtypes.float0
    return rules.zeros(output) if absent else grad


def _types(site: Site, flat: Sequence[Any], given: Sequence[Any]) -> tuple[Any, ...]:
    made = [hijax.ShapedArray(s.shape, s.dtype) for s in tensors.structs(site.operator, site.outputs(flat))]
    varying = frozenset().union(*(getattr(aval, "vma", ()) for aval in given))
    return tuple(aval.update(vma=varying) if varying else aval for aval in made)


def call(site: Site, flat: Sequence[Any]) -> tuple[Any, ...]:
    """Return the outputs of a call on flat arrays or tracers, with all of JAX's transforms."""
    if any(map(tensors.is_traced, flat)):
        return tuple(OperatorCall(site, flat)(*flat))
    return tuple(_jitted(site)(*flat))


_programs: dict[Site, Any] = {}


def _jitted(site: Site) -> Any:
    found = _programs.get(site)
    if found is None:
        if len(_programs) >= 1024:  # attributes that keep changing must not grow memory
            _programs.clear()
        found = _programs[site] = jax.jit(lambda *flat: OperatorCall(site, flat)(*flat))
    return found
