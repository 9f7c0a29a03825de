"""An operator as a JAX primitive, and its tangent as another: all of JAX's transforms follow.

``operator_p`` is the call. Its derivative at given inputs is ``tangent_p``, which is linear in
the tangents: evaluated it is forward mode, transposed it is the gradient rule. So one operator
has jvp, vjp and batching together, at the speed of JAX's own primitives.

Source: "How JAX primitives work" in JAX's documentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from . import debug, rules, tensors
from .emit import emit, keep_alive
from .kept import Kept, keep
from .partition import lower, need_one_device, needs_devices, result_axes
from .recent import Recent
from .site import Site
from .types import result_type, unified, zeros

operator_p = Primitive("polyop")
operator_p.multiple_results = True
tangent_p = Primitive("polyop_tangent")
tangent_p.multiple_results = True

whole_p = Primitive("polyop_whole")  # the operands of a call without outputs, on one device
whole_p.multiple_results = True

_programs: Recent[Any] = Recent()


def call(site: Site, flat: Sequence[Any]) -> tuple[Any, ...]:
    """Return the outputs of a call on flat arrays or tracers, with all of JAX's transforms."""
    site = site.settled(flat)
    if not any(map(tensors.is_traced, flat)):
        return tuple(_run(*flat, site=site))
    flat = unified(flat)
    if not site.outputs(flat):  # a primitive without outputs would be left out of the program
        stopped = [jax.lax.stop_gradient(x) for x in flat]
        return emit(site, *whole_p.bind(*stopped, site=site))
    return tuple(operator_p.bind(*flat, site=site))


def _run(*flat: Any, site: Site) -> Any:
    """Run at once: a program of one call, kept for the next."""
    found = _programs.get(site)
    if found is None:
        found = _programs.put(site, jax.jit(lambda *given: call(site, given)))
    config = jax.config
    if config.jax_disable_jit or config.jax_debug_nans or config.jax_debug_infs:
        return debug.run(site, found, flat)
    return found(*flat)


def _types(*flat: Any, site: Site) -> list[Any]:
    made = tensors.structs(site.operator, site.outputs(flat))
    site.check(flat)
    axes = result_axes(site, flat)
    return [result_type(flat[0], one.shape, one.dtype, axes) for one in made]


_inside = mlir.lower_fun(lambda *flat, site: lower(site, flat), multiple_results=True)


def _lower(context: Any, *flat: Any, site: Site) -> Any:
    keep_alive(context, site)
    return _inside(context, *flat, site=site)


operator_p.def_impl(_run)
operator_p.def_abstract_eval(_types)
mlir.register_lowering(operator_p, _lower)


def _lower_whole(context: Any, *values: Any, site: Site) -> Sequence[Any]:
    keep_alive(context, site)
    need_one_device(context, site)
    return values


whole_p.def_impl(lambda *flat, site: list(flat))
whole_p.def_abstract_eval(lambda *flat, site: list(flat))
mlir.register_lowering(whole_p, _lower_whole)
batching.primitive_batchers[whole_p] = lambda flat, dims, site: (list(flat), list(dims))


def _batch(flat: Sequence[Any], dims: Sequence[Any], *, site: Site) -> Any:
    size = next((x.shape[d] for x, d in zip(flat, dims, strict=True) if d is not None), 0)
    outputs, where = rules.batched(call, site.base, size, flat, dims)
    return list(outputs), list(where)


batching.primitive_batchers[operator_p] = _batch


def _jvp(primals: Sequence[Any], given: Sequence[Any], *, site: Site) -> Any:
    count = len(site.outputs(primals))
    saving = rules.differentiable(site, primals)
    made = call(saving, primals)
    moving = tuple(
        i
        for i, (x, t) in enumerate(zip(primals, given, strict=True))
        if not isinstance(t, ad.Zero) and tensors.is_smooth(x)
    )
    smooth = tuple(i for i in range(count) if tensors.is_smooth(made[i]))
    pushed: list[Any] = [ad.Zero(jax.typeof(output).to_tangent_aval()) for output in made[:count]]
    if moving and smooth:
        kept, values = keep(saving, primals, made, count, moving)
        found = tangent_p.bind(*unified([*values, *(given[i] for i in moving)]), kept=kept)
        for i, tangent in zip(smooth, found, strict=True):
            pushed[i] = tangent
    return list(made[:count]), pushed


ad.primitive_jvps[operator_p] = _jvp


def _push(*values: Any, kept: Kept) -> list[Any]:
    """Return the tangents of the smooth outputs: forward mode."""
    flat, made = kept.restored(values)
    given: list[Any] = [None] * len(flat)
    for i, tangent in zip(kept.moving, values[kept.size :], strict=True):
        given[i] = tangent
    found = rules.tangents(kept.site, flat, made, given)
    return [zeros(kept.outputs[i].type) if found[i] is None else found[i] for i in kept.smooth]


def _tangent_types(*values: Any, kept: Kept) -> list[Any]:
    rows = [kept.outputs[i].type for i in kept.smooth]
    return [result_type(values[0], row.shape, row.dtype, tuple(row.sharding.spec)) for row in rows]


tangent_p.def_impl(_push)
tangent_p.def_abstract_eval(_tangent_types)
mlir.register_lowering(tangent_p, mlir.lower_fun(_push, multiple_results=True))


def _pull(grads: Sequence[Any], *values: Any, kept: Kept) -> list[Any]:
    """Return the gradients of the tangents, by the gradient rule; nothing for what is kept."""
    flat, made = kept.restored(values)
    every = [zeros(output.type) for output in kept.outputs[: kept.count]]
    for i, grad in zip(kept.smooth, grads, strict=True):
        every[i] = ad.instantiate_zeros(grad)
    found = rules.gradients(kept.site, flat, made, every, kept.moving)
    pulled = [
        ad.Zero(value.aval) if found[i] is None else found[i]
        for i, value in zip(kept.moving, values[kept.size :], strict=True)
    ]
    return [*(None,) * kept.size, *pulled]


ad.primitive_transposes[tangent_p] = _pull


def _second(values: Sequence[Any], given: Sequence[Any], *, kept: Kept) -> Any:
    """Return the derivative of a tangent; it is linear in the tangents themselves."""
    made = tangent_p.bind(*values, kept=kept)
    if all(isinstance(t, ad.Zero) for t in given[: kept.size]):
        moved = [ad.instantiate_zeros(t) for t in given[kept.size :]]
        return made, tangent_p.bind(*unified([*values[: kept.size], *moved]), kept=kept)
    full = tuple(ad.instantiate_zeros(t) for t in given)
    return jax.jvp(lambda *all_values: _push(*all_values, kept=kept), tuple(values), full)


ad.primitive_jvps[tangent_p] = _second


def _batch_tangent(values: Sequence[Any], dims: Sequence[Any], *, kept: Kept) -> Any:
    outputs = jax.vmap(lambda *given: _push(*given, kept=kept), in_axes=tuple(dims))(*values)
    return outputs, [0] * len(outputs)


batching.primitive_batchers[tangent_p] = _batch_tangent
needs_devices(operator_p, tangent_p, whole_p)
