"""An operator as a JAX primitive, and its tangent as another; JAX's transforms follow from the two.

``operator_p`` is the call. Its derivative at given inputs is ``tangent_p``, which is linear in
the tangents: evaluated it is forward mode, transposed it is the gradient rule. So one operator
has jvp, vjp and batching together, at the speed of JAX's own primitives.

Source: "How JAX primitives work" in JAX's documentation.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ...core.lru_cache import LruCache
from ...core.tracebacks import quiet
from . import rules, tensors, uncompiled
from .emit import emit, keep_alive
from .explicit import result_axes
from .linearization import Linearization, linearize
from .partition import is_split_by_xla, lower, need_one_device, need_shardy, needs_devices
from .partly_manual import PartlyManual
from .site import Site
from .tensors import result_type, unified, zeros

operator_p = Primitive("polyop")
operator_p.multiple_results = True
tangent_p = Primitive("polyop_tangent")
tangent_p.multiple_results = True

whole_p = Primitive("polyop_whole")  # identity; checks that a call without outputs runs on one device
whole_p.multiple_results = True

_programs: LruCache[Any] = LruCache()
_first: LruCache[str] = LruCache(1024)
"""The text of the first site of each form."""
_uses: LruCache[int] = LruCache(1024)
"""How often calls at other sites ran on the data, by the text of the site."""
_RUNS_BEFORE_COMPILATION = 16
"""How many calls with the same numbers run on the data before a program that has them is compiled."""


def call(site: Site, flat: Sequence[Any]) -> tuple[Any, ...]:
    """Return the outputs of a call on flat arrays or tracers; all of JAX's transforms apply."""
    site = site.in_mode(wide=bool(jax.config.jax_enable_x64)).with_fixed_outputs(flat)
    if not any(map(tensors.is_traced, flat)) and not site.bound.runs_on_data:
        return tuple(_run(*flat, site=site))
    flat = unified(flat)
    if not site.has_outputs(flat):  # JAX would remove a primitive without outputs as dead code
        stopped = [jax.lax.stop_gradient(x) for x in flat]
        return emit(site, *whole_p.bind(*stopped, site=site))
    return tuple(operator_p.bind(*flat, site=site))


def program_of(site: Site) -> Any:
    """Return the program that eager calls at a site run, or None if there was no such call."""
    return _programs.get(site)


def _run(*flat: Any, site: Site) -> Any:
    """Run a call as a compiled program of its own, which the next call uses again.

    An operator that needs the data runs on it at once, and so does a call whose numbers keep changing.
    """
    program = _programs.get(site)
    if (site.bound.runs_on_data or (program is None and _is_passing(site))) and uncompiled.is_near(flat):
        program = functools.partial(_run_on_data, site)
    elif program is None:
        program = _programs.put(site, jax.jit(lambda *inputs: call(site, inputs)))
    config = jax.config
    if config.jax_disable_jit or config.jax_debug_nans or config.jax_debug_infs:
        return uncompiled.run_and_check(site, program, flat)
    return program(*flat)


def _is_passing(site: Site) -> bool:
    """Whether a call has other numbers than the first of its kind, and had them only a few times so far.

    A program has the numbers in it, and takes as long to compile as a thousand calls on the data.
    """
    if not site.form or not site.bound.native:
        return False
    if (_first.get(site.form) or _first.put(site.form, site.text)) == site.text:
        return False
    return _uses.put(site.text, (_uses.get(site.text) or 0) + 1) <= _RUNS_BEFORE_COMPILATION


def _run_on_data(site: Site, *flat: Any) -> list[Any]:
    return uncompiled.run_at_once(site, flat)


def _types(*flat: Any, site: Site) -> list[Any]:
    site.bound.check_traced(site.unflatten(flat))
    outputs = tensors.structs(site.outputs(flat))
    site.check(flat)
    if not flat:
        return [jax.core.ShapedArray(output.shape, output.dtype) for output in outputs]
    axes = result_axes(site, flat) or [()] * len(outputs)
    rows = zip(outputs, axes, strict=True)
    return [result_type(flat[0], output.shape, output.dtype, split) for output, split in rows]


_lower_call = mlir.lower_fun(lambda *flat, site: emit(site, *flat), multiple_results=True)
_lower_exported = mlir.lower_fun(lambda *flat, site: emit(site, *flat, exported=True), multiple_results=True)
_lower_split = mlir.lower_fun(lambda *flat, site, meshes: lower(site, flat, meshes), multiple_results=True)


def _lower(context: Any, *flat: Any, site: Site) -> Any:
    with site.mode():
        return _lowered(context, *flat, site=site)


def _lowered(context: Any, *flat: Any, site: Site) -> Any:
    keep_alive(context, site)
    if is_split_by_xla(context):
        need_shardy(context, site)
        return _lower_split(context, *flat, site=site, meshes=PartlyManual.of(context))
    exported = context.module_context.lowering_parameters.for_export
    lowering = _lower_exported if exported else _lower_call
    return lowering(context, *flat, site=site)


def _evaluate(*flat: Any, site: Site) -> Any:
    with site.mode():
        return _run(*flat, site=site)


operator_p.def_impl(_evaluate)
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
    with site.mode():
        outputs, output_dims = rules.batched(call, site.base, size, flat, dims)
    return list(outputs), list(output_dims)


batching.primitive_batchers[operator_p] = _batch


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, site: Site) -> Any:
    with site.mode():
        return _linearized(primals, tangents, site)


def _linearized(primals: Sequence[Any], tangents: Sequence[Any], site: Site) -> Any:
    saving = rules.saving_site(site, primals)
    outputs = call(saving, primals)
    count = len(outputs) if saving is site.base else len(site.outputs(primals))
    active = tuple(
        i
        for i, (x, t) in enumerate(zip(primals, tangents, strict=True))
        if not isinstance(t, ad.Zero) and tensors.is_smooth(x)
    )
    smooth = tuple(i for i in range(count) if tensors.is_smooth(outputs[i]))
    output_tangents: list[Any] = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in outputs[:count]]
    if active and smooth:
        linearization, residuals = linearize(saving, primals, outputs, count, active)
        operands = unified([*residuals, *(tangents[i] for i in active)])
        smooth_tangents = tangent_p.bind(*operands, linearization=linearization)
        for i, tangent in zip(smooth, smooth_tangents, strict=True):
            output_tangents[i] = tangent
    return list(outputs[:count]), output_tangents


ad.primitive_jvps[operator_p] = _jvp


def _push(*values: Any, linearization: Linearization) -> list[Any]:
    """Forward mode: return the tangents of the smooth outputs.

    ``values`` are the residuals, then the tangents of the active inputs.
    """
    inputs, outputs = linearization.restore(values[: linearization.residual_count])
    tangents: list[Any] = [None] * len(inputs)
    with linearization.site.mode():
        for i, tangent in zip(linearization.active, values[linearization.residual_count :], strict=True):
            tangents[i] = rules.cast(tangent, inputs[i])
        pushed = rules.tangents(linearization.site, inputs, outputs, tangents)
    return [
        zeros(linearization.outputs[i].type) if pushed[i] is None else pushed[i] for i in linearization.smooth
    ]


def _tangent_types(*values: Any, linearization: Linearization) -> list[Any]:
    types = [linearization.outputs[i].type for i in linearization.smooth]
    return [result_type(values[0], one.shape, one.dtype, tuple(one.sharding.spec)) for one in types]


tangent_p.def_impl(_push)
tangent_p.def_abstract_eval(_tangent_types)
mlir.register_lowering(tangent_p, mlir.lower_fun(_push, multiple_results=True))


@quiet
def _pull(grads: Sequence[Any], *values: Any, linearization: Linearization) -> list[Any]:
    """Transpose: return the gradients of the active inputs, and None for each residual."""
    residual_count = linearization.residual_count
    # JAX passes placeholders of its own for the tangents; only the residuals have values
    inputs, outputs = linearization.restore(values[:residual_count])
    output_grads = [zeros(output.type) for output in linearization.outputs[: linearization.count]]
    with linearization.site.mode():  # outside of it JAX may have given a gradient in 32 bits
        for i, grad in zip(linearization.smooth, grads, strict=True):
            output_grads[i] = rules.cast(ad.instantiate_zeros(grad), linearization.outputs[i])
        input_grads = rules.gradients(linearization.site, inputs, outputs, output_grads, linearization.active)
    pulled = [
        ad.Zero(tangent.aval) if input_grads[i] is None else input_grads[i]
        for i, tangent in zip(linearization.active, values[residual_count:], strict=True)
    ]
    return [*(None,) * residual_count, *pulled]


ad.primitive_transposes[tangent_p] = _pull


def _tangent_jvp(values: Sequence[Any], tangents: Sequence[Any], *, linearization: Linearization) -> Any:
    """Differentiate a tangent, for second derivatives."""
    outputs = tangent_p.bind(*values, linearization=linearization)
    residual_count = linearization.residual_count
    if all(isinstance(t, ad.Zero) for t in tangents[:residual_count]):
        # tangent_p is linear in the tangents, so it is its own derivative
        inner = [ad.instantiate_zeros(t) for t in tangents[residual_count:]]
        operands = unified([*values[:residual_count], *inner])
        return outputs, tangent_p.bind(*operands, linearization=linearization)
    every = tuple(ad.instantiate_zeros(t) for t in tangents)
    return jax.jvp(lambda *inputs: _push(*inputs, linearization=linearization), tuple(values), every)


ad.primitive_jvps[tangent_p] = _tangent_jvp


def _batch_tangent(values: Sequence[Any], dims: Sequence[Any], *, linearization: Linearization) -> Any:
    def push(*samples: Any) -> list[Any]:
        return _push(*samples, linearization=linearization)

    outputs = jax.vmap(push, in_axes=tuple(dims))(*values)
    return outputs, [0] * len(outputs)


batching.primitive_batchers[tangent_p] = _batch_tangent
needs_devices(operator_p, tangent_p, whole_p)
