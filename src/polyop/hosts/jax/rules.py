"""Gradients, tangents and batches of an operator on flat arrays, as JAX's transforms need them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...call import batching
from ...call.batching import BatchedCall
from ...call.operator import Operator
from ...call.rule import apply_rule, check_gradient, list_gradients, no_gradient, saving_of
from ...core.errors import GradientError
from ...core.origin import of_function
from ...core.texts import first_line
from ...rules.module.pure_operators import SavingTangent
from ...rules.module.recorded import Recorded
from . import tensors
from .linearization import Placeholder
from .site import Site, site_of
from .tensors import zeros

Call = Callable[[Site, Sequence[Any]], tuple[Any, ...]]


def saving_site(site: Site, flat: Sequence[Any]) -> Site:
    """Return the call of the saving operator if there is one, else the call itself.

    A saving operator also returns temporaries that the gradient reads; for a C++ module, what its
    Forward saves.
    """
    rule = site.operator.gradient
    if not isinstance(rule, Recorded):
        arguments = site.unflatten(flat)
        saving = saving_of(site.operator, arguments)
        if saving is None:
            return site.base
        with_temporaries = site_of(saving, arguments).in_mode(wide=site.wide)
        # JAX cannot hold a temporary of 64 bits while these are switched off: it is computed again then
        return site.base if with_temporaries.narrows(flat) else with_temporaries
    if rule.saving_part is None:  # it writes an argument, so it has none
        return site.base
    arguments = site.unflatten(flat)
    tensor_arguments = [arguments[i] for i in site.operator.schema.tensor_positions]
    each = [
        x for value in tensor_arguments for x in (value if isinstance(value, (list, tuple)) else (value,))
    ]
    needs_gradient = tuple(x is not None and tensors.is_smooth(x) for x in each)
    return site_of(rule.saving_part, (*arguments, needs_gradient))


def gradients(
    site: Site,
    flat: Sequence[Any],
    outputs: Sequence[Any],
    grads: Sequence[Any],
    active: Sequence[int] | None = None,
) -> list[Any]:
    """Return one gradient or None per flat input, checked; raises ``GradientError``.

    ``site`` comes from :func:`saving_site` and ``outputs`` are all of its outputs. ``grads`` belong
    to the first of them; the others have no gradient. ``active`` are the inputs whose gradients are
    needed; None means all.
    """
    if site.narrows(flat):
        with _as_written(site, flat, outputs) as (wide_site, wide_outputs):
            wide_grads = [cast(x, y) for x, y in zip(grads, wide_outputs, strict=False)]
            return gradients(wide_site, flat, wide_outputs, wide_grads, active)
    operator = site.operator
    if operator.schema.mutates:
        rule = "writes an argument in place, and such an operator has no gradient"
        raise GradientError(operator.name, rule, where=operator.origin, hint="return a new tensor instead")
    if operator.gradient is None:
        raise no_gradient(operator)
    output_grads = [*tensors.conjugated(_as_jax(grads)), *(None,) * (len(outputs) - len(grads))]
    indices = site.by_argument(range(len(flat)))
    needed = None
    if active is not None:
        needed = [any(i in active for i in (x if isinstance(x, tuple) else (x,))) for x in indices]
    with _explain_tracer_errors(operator):
        by_argument = apply_rule(operator, site.unflatten(flat), outputs, output_grads, needed)
    input_grads: list[Any] = [None] * len(flat)
    for argument, index, grad in zip(operator.schema.arguments, indices, by_argument, strict=True):
        if isinstance(index, tuple):
            for i, item in zip(index, list_gradients(operator, argument.name, index, grad), strict=True):
                if i is not None:
                    input_grads[i] = _gradient(operator, f"{argument.name}[{i}]", flat[i], item)
        elif index is not None:
            input_grads[index] = _gradient(operator, argument.name, flat[index], grad)
    return tensors.conjugated(input_grads)


@contextlib.contextmanager
def _as_written(site: Site, flat: Sequence[Any], outputs: Sequence[Any]) -> Iterator[tuple[Site, list[Any]]]:
    """Give a rule the outputs as the kernel wrote them, of 64 bits, where JAX has them in fewer.

    A rule may pass them, and gradients like them, to a kernel that expects the dtypes of the operator.
    """
    written = site.kernel_outputs(flat)
    with jax.enable_x64(True):
        wide = [cast(x, spec.dtype.numpy) for x, spec in zip(outputs, written, strict=True)]
        yield site.in_mode(wide=True), wide


def cast(value: Any, like: Any) -> Any:
    """Return an array in a dtype, or that of another array; of a placeholder the dtype changes."""
    to = getattr(like, "dtype", like)
    if value is None or value.dtype == to:
        return value
    if isinstance(value, Placeholder):
        return Placeholder(value.type.update(dtype=np.dtype(to)))
    return jax.lax.convert_element_type(value, to)


def _as_jax(values: Sequence[Any]) -> list[Any]:
    """Return the values as JAX's arrays: constants of a program may be NumPy's, which a rule must not see."""
    return [jnp.asarray(value) if isinstance(value, np.ndarray) else value for value in values]


def _gradient(operator: Operator, name: str, value: Any, grad: Any) -> Any:
    if grad is None or not tensors.is_smooth(value):
        return None
    check_gradient(operator, name, grad, value.shape)
    return jnp.asarray(grad).astype(value.dtype)


@contextlib.contextmanager
def _explain_tracer_errors(operator: Operator) -> Iterator[None]:
    """Turn JAX's error for a rule that reads a tracer's values into a ``GradientError`` with a hint."""
    try:
        yield
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as problem:
        rule = "the gradient rule needs the values of a JAX array that is being traced"
        hint = (
            "write it with operators, methods of the tensors or array_namespace(x): no NumPy function, no if"
        )
        where = of_function(operator.gradient or operator.jvp)
        seen = first_line(problem)
        raise GradientError(operator.name, rule, seen, where=where, hint=hint) from None


def tangents(
    site: Site, flat: Sequence[Any], outputs: Sequence[Any], input_tangents: Sequence[Any]
) -> list[Any]:
    """Return one tangent or None per output. An input that is not active has None as its tangent.

    Runs ``jvp=`` if the operator has one, else transposes the gradient rule. Raises
    ``GradientError``.
    """
    if site.narrows(flat):
        with _as_written(site, flat, outputs) as (wide_site, wide_outputs):
            pushed = tangents(wide_site, flat, wide_outputs, input_tangents)
            return [cast(x, y) for x, y in zip(pushed, outputs, strict=False)]
    operator = site.operator
    input_tangents = _as_jax(input_tangents)
    if operator.jvp is not None:
        packed = tuple(outputs) if operator.several else outputs[0]
        with _explain_tracer_errors(operator):
            pushed = operator.jvp(*site.unflatten(flat), packed, site.by_argument(input_tangents))
        own = list(pushed) if operator.several else [pushed]
        if isinstance(operator.jvp, SavingTangent) and len(own) < len(outputs):
            own += _transposed(site, flat, outputs, input_tangents)[len(own) :]
        return _checked_tangents(operator, own, outputs)
    if operator.gradient is None or operator.schema.mutates:
        raise no_gradient(operator)
    return _transposed(site, flat, outputs, input_tangents)


def _checked_tangents(operator: Operator, pushed: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """Return the results of ``jvp=`` in the dtypes of the outputs; raises ``GradientError``."""
    where = of_function(operator.jvp)
    if len(pushed) != len(outputs):
        rule = f"jvp= must return {len(outputs)} tangents, one or None per output"
        raise GradientError(operator.name, rule, f"{len(pushed)}", where=where)
    checked: list[Any] = []
    for number, (tangent, output) in enumerate(zip(pushed, outputs, strict=True)):
        if tangent is not None and tuple(jnp.shape(tangent)) != tuple(output.shape):
            subject = f"{operator.name}: tangent of output {number}"
            rule = f"must have the output's shape {tuple(output.shape)}"
            raise GradientError(subject, rule, tuple(jnp.shape(tangent)), where=where)
        checked.append(None if tangent is None else jnp.asarray(tangent).astype(output.dtype))
    return checked


def _transposed(
    site: Site, flat: Sequence[Any], outputs: Sequence[Any], input_tangents: Sequence[Any]
) -> list[Any]:
    # The rule is linear in the output gradient u. With g(u) = J^T u, the gradient of <g(u), t> with
    # respect to u is J t: forward mode from reverse mode, exactly.
    types = [getattr(output, "type", None) or jax.typeof(output) for output in outputs]
    smooth = [i for i, output in enumerate(outputs) if tensors.is_smooth(output)]
    active: list[int] = []
    rule_errors: list[GradientError] = []  # raised by the rule itself, not by its derivative

    def pull(*grads: Any) -> tuple[Any, ...]:
        output_grads = [zeros(kind) for kind in types]
        for i, grad in zip(smooth, grads, strict=True):
            output_grads[i] = grad
        try:
            wanted = [i for i, t in enumerate(input_tangents) if t is not None]
            input_grads = gradients(site, flat, outputs, output_grads, wanted)
        except GradientError as problem:
            rule_errors.append(problem)
            raise
        active[:] = [i for i, t in enumerate(input_tangents) if t is not None and input_grads[i] is not None]
        return tuple(input_grads[i] for i in active)

    try:
        _, push = jax.vjp(pull, *(zeros(types[i]) for i in smooth))
        pushed = push(tuple(input_tangents[i] for i in active))
    except GradientError as problem:
        if problem in rule_errors:
            raise
        rule = "forward mode needs jvp=, as the gradient rule is not differentiable itself"
        where = site.operator.origin
        raise GradientError(site.operator.name, rule, where=where, hint=str(problem)) from None
    by_output = dict(zip(smooth, pushed, strict=True))
    return [by_output.get(i) for i in range(len(outputs))]


def batched(call: Call, site: Site, size: int, flat: Sequence[Any], dims: Sequence[Any]) -> tuple[Any, Any]:
    """Return (outputs, their batch dimensions) of a call on batched arrays.

    ``dims`` has the batch dimension of each input, or None. Without a batch rule the samples are
    computed one by one, with a warning.
    """
    batched_call = BatchedCall(site.operator, lambda arguments: call(site, site.flatten(arguments)))
    answer = batching.answer(batched_call, site.by_argument(dims), site.unflatten(_as_jax(flat)))
    if answer is not NotImplemented:
        count = site.output_count(_samples(flat, dims))
        return batching.rule_outputs(site.operator, answer, count, size)
    batching.warn_of_loop(site.operator, "jax")
    first = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(flat, dims, strict=True)]

    def call_one(sample: Sequence[Any]) -> tuple[Any, ...]:
        batched_inputs = iter(sample)
        return call(
            site, [x if d is None else next(batched_inputs) for x, d in zip(first, dims, strict=True)]
        )

    outputs = jax.lax.map(call_one, [x for x, d in zip(first, dims, strict=True) if d is not None])
    return outputs, (0,) * len(outputs)


def _samples(flat: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    """Return the shapes and dtypes of the inputs of one sample."""
    shapes = [
        x.shape if d is None else (*x.shape[:d], *x.shape[d + 1 :]) for x, d in zip(flat, dims, strict=True)
    ]
    return [jax.ShapeDtypeStruct(s, x.dtype) for s, x in zip(shapes, flat, strict=True)]
