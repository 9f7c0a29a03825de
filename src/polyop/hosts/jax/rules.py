"""Gradients, tangents and batches of an operator on flat arrays, whatever carries them in JAX."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...call import batching
from ...call.operator import Operator
from ...call.rule import CUSTOM, apply_rule, check_gradient, no_gradient, saving_of
from ...core.errors import FallbackWarning, GradientError
from ...core.origin import of_function
from ...core.spec import Spec
from ...rules.module.recorded import Recorded
from . import tensors
from .site import Site, site_of
from .types import zeros

Call = Callable[[Site, Sequence[Any]], tuple[Any, ...]]


def differentiable(site: Site, flat: Sequence[Any]) -> Site:
    """Return the call of which a gradient is taken: a module's also gives what its Forward saves."""
    rule = site.operator.gradient
    if not isinstance(rule, Recorded):
        arguments = site.arguments(flat)
        saving = saving_of(site.operator, arguments)
        return site.base if saving is None else site_of(saving, arguments)
    if rule.saving_part is None:  # none: it writes an argument
        return site.base
    arguments = site.arguments(flat)
    every = [arguments[i] for i in site.operator.schema.tensor_positions]
    opened = [x for value in every for x in (value if isinstance(value, (list, tuple)) else (value,))]
    wanted = tuple(x is not None and tensors.is_smooth(x) for x in opened)
    return site_of(rule.saving_part, (*arguments, wanted))


def gradients(
    site: Site,
    flat: Sequence[Any],
    outputs: Sequence[Any],
    grads: Sequence[Any],
    moving: Sequence[int] | None = None,
) -> list[Any]:
    """Return one gradient or None per flat input, checked; raises ``GradientError``.

    ``site`` is a :func:`differentiable` one and ``outputs`` all of its outputs; ``grads`` can be fewer.
    ``moving`` are the inputs whose gradients are wanted, None for all.
    """
    operator = site.operator
    if operator.schema.mutates:
        rule = "writes an argument in place, and such an operator has no gradient"
        raise GradientError(operator.name, rule, where=operator.origin, hint="return a new tensor instead")
    if operator.gradient is None:
        raise no_gradient(operator)
    given = [*tensors.conjugated(_own(grads)), *(None,) * (len(outputs) - len(grads))]
    names = site.places(range(len(flat)))
    wanted = None if moving is None else [not isinstance(p, tuple) and p in moving for p in names]
    with _numpy_refused(operator):
        found = apply_rule(operator, site.arguments(flat), outputs, given, wanted)
    made: list[Any] = [None] * len(flat)
    for argument, place, grad in zip(operator.schema.arguments, names, found, strict=True):
        if isinstance(place, tuple):
            for number, one in zip(place, _listed(operator, argument.name, place, grad), strict=True):
                if number is not None:
                    made[number] = _gradient(operator, f"{argument.name}[{number}]", flat[number], one)
        elif place is not None:
            made[place] = _gradient(operator, argument.name, flat[place], grad)
    return tensors.conjugated(made)


def _own(values: Sequence[Any]) -> list[Any]:
    """Return arrays as JAX's: some of its constants are NumPy's, and rules are given one framework's."""
    return [jnp.asarray(value) if isinstance(value, np.ndarray) else value for value in values]


def _listed(operator: Operator, name: str, place: tuple[Any, ...], grads: Any) -> Sequence[Any]:
    if grads is None:
        return (None,) * len(place)
    if not isinstance(grads, (list, tuple)) or len(grads) != len(place):
        seen = f"{len(grads)}" if isinstance(grads, (list, tuple)) else type(grads).__name__
        rule = f"must be a list of {len(place)} gradients, one per item"
        raise GradientError(f"{operator.name}: gradient of {name}", rule, seen)
    return grads


def _gradient(operator: Operator, name: str, value: Any, grad: Any) -> Any:
    if grad is None or not tensors.is_smooth(value):
        return None
    check_gradient(operator, name, grad, value.shape)
    made = jnp.asarray(grad)
    if jnp.iscomplexobj(made) and not jnp.iscomplexobj(value):
        made = jnp.real(made)
    return made.astype(value.dtype)


@contextlib.contextmanager
def _numpy_refused(operator: Operator) -> Iterator[None]:
    """Say in words what JAX means when NumPy's functions meet a tracer."""
    try:
        yield
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as problem:
        rule = "the gradient rule needs the values of a JAX array that is being traced"
        hint = (
            "write it with operators, methods of the tensors or array_namespace(x): no NumPy function, no if"
        )
        where = of_function(operator.gradient or operator.jvp)
        seen = str(problem).strip().splitlines()[0]
        raise GradientError(operator.name, rule, seen, where=where, hint=hint) from None


def tangents(site: Site, flat: Sequence[Any], outputs: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """Return one tangent or None per output; ``given`` has None for an input that does not move.

    From ``jvp=``, or by transposing the gradient rule. Raises ``GradientError``.
    """
    operator = site.operator
    given = _own(given)
    if operator.jvp is not None:
        packed = tuple(outputs) if operator.several else outputs[0]
        with _numpy_refused(operator):
            found = operator.jvp(*site.arguments(flat), packed, site.places(given))
        return _tangents(operator, list(found) if operator.several else [found], outputs)
    if operator.gradient is None or operator.schema.mutates:
        raise no_gradient(operator)
    return _transposed(site, flat, outputs, given)


def _tangents(operator: Operator, found: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """Return what ``jvp=`` gave, checked."""
    where = of_function(operator.jvp)
    if len(found) != len(outputs):
        rule = f"jvp= must return {len(outputs)} tangents, one or None per output"
        raise GradientError(operator.name, rule, f"{len(found)}", where=where)
    made: list[Any] = []
    for number, (tangent, output) in enumerate(zip(found, outputs, strict=True)):
        if tangent is not None and tuple(jnp.shape(tangent)) != tuple(output.shape):
            subject = f"{operator.name}: tangent of output {number}"
            rule = f"must have the output's shape {tuple(output.shape)}"
            raise GradientError(subject, rule, tuple(jnp.shape(tangent)), where=where)
        made.append(None if tangent is None else jnp.asarray(tangent).astype(output.dtype))
    return made


def _transposed(site: Site, flat: Sequence[Any], outputs: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    # The rule is linear in the output gradient u. With g(u) = J^T u, the gradient of <g(u), t> with
    # respect to u is J t: forward mode from reverse mode, exactly.
    kinds = [getattr(output, "type", None) or jax.typeof(output) for output in outputs]
    smooth = [i for i, output in enumerate(outputs) if tensors.is_smooth(output)]
    moving: list[int] = []
    own: list[GradientError] = []  # of the rule itself, where nothing is wrong with its derivative

    def pull(*grads: Any) -> tuple[Any, ...]:
        every = [zeros(kind) for kind in kinds]
        for i, grad in zip(smooth, grads, strict=True):
            every[i] = grad
        try:
            found = gradients(site, flat, outputs, every)
        except GradientError as problem:
            own.append(problem)
            raise
        moving[:] = [i for i, t in enumerate(given) if t is not None and found[i] is not None]
        return tuple(found[i] for i in moving)

    try:
        _, push = jax.vjp(pull, *(zeros(kinds[i]) for i in smooth))
        pushed = push(tuple(given[i] for i in moving))
    except GradientError as problem:
        if problem in own:
            raise
        rule = "forward mode needs jvp=, as the gradient rule is not differentiable itself"
        where = site.operator.origin
        raise GradientError(site.operator.name, rule, where=where, hint=str(problem)) from None
    by_output = dict(zip(smooth, pushed, strict=True))
    return [by_output.get(i) for i in range(len(outputs))]


def batched(call: Call, site: Site, size: int, flat: Sequence[Any], dims: Sequence[Any]) -> tuple[Any, Any]:
    """Return (outputs, their batch dimensions) of a batched call: by the batch rule, or sample by sample."""
    rule = site.operator.batch
    if callable(rule):
        found = rule(site.places(dims), site.arguments(_own(flat)))
        return batching.answer(site.operator, found, len(_samples(site, flat, dims)), size)
    if rule == "elementwise":
        samples = _samples(site, flat, dims)  # first: it says which shapes of a sample do not fit
        moved = _batch_first(flat, dims, size)
        made = batching.elementwise(site.operator, call(site, moved), samples, size, moved[0].ndim - 1)
        return made, (0,) * len(made)
    _warn_once(site.operator)
    first = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(flat, dims, strict=True)]

    def one(samples: Sequence[Any]) -> tuple[Any, ...]:
        left = iter(samples)
        return call(site, [x if d is None else next(left) for x, d in zip(first, dims, strict=True)])

    outputs = jax.lax.map(one, [x for x, d in zip(first, dims, strict=True) if d is not None])
    return outputs, (0,) * len(outputs)


def _samples(site: Site, flat: Sequence[Any], dims: Sequence[Any]) -> Sequence[Spec]:
    """Return the specs of the outputs of one sample."""
    shapes = [
        x.shape if d is None else (*x.shape[:d], *x.shape[d + 1 :]) for x, d in zip(flat, dims, strict=True)
    ]
    return site.outputs([jax.ShapeDtypeStruct(s, x.dtype) for s, x in zip(shapes, flat, strict=True)])


def _batch_first(flat: Sequence[Any], dims: Sequence[Any], size: int) -> list[Any]:
    """Return the arrays with the batch first, and as many dimensions each: samples broadcast as before."""
    made = [
        jnp.broadcast_to(x, (size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
        for x, d in zip(flat, dims, strict=True)
    ]
    rank = max(x.ndim for x in made)
    return [x.reshape(size, *(1,) * (rank - x.ndim), *x.shape[1:]) for x in made]


_warned: set[str] = set()


def _warn_once(operator: Operator) -> None:
    if operator.name in _warned:
        return
    _warned.add(operator.name)
    shown = operator.name.removesuffix("__saving").removesuffix("__backward")
    text = f"{shown}: vmap runs one call per sample"
    if operator.schema.namespace != CUSTOM:  # Custom has no such parameter
        text += "; give batch= ('elementwise' or a rule) to do better"
    warnings.warn(text, FallbackWarning, stacklevel=2)
