"""JAX arrays. Import this file only where JAX is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...call.bound import BoundOperator
from ...hosts.jax.tensors import conjugated, is_smooth
from ..case import Array, Case, as_list
from .framework import DemoRow, quiet_fallbacks, stacked


def call(case: Case, tensors: Sequence[Any]) -> list[Any]:
    """Call the operator; return the new outputs, then the new values of the arguments that it writes.

    JAX's arrays never change, so a written argument comes as an output: where the schema returns it,
    else behind the schema's outputs.
    """
    schema = case.operator.schema
    args, keywords = schema.split(case.with_tensors(tensors))
    outputs = as_list(case.bound(*args, **keywords))
    if schema.returns_list:
        return outputs
    count = len(schema.returns)
    written: dict[int, Any] = {schema.alias_of(i): outputs[i] for i in range(count) if i not in schema.fresh}
    not_returned = iter(outputs[count:])
    for position, argument in enumerate(schema.arguments):
        if argument.type.writes and case.arguments[position] is not None and position not in written:
            written[position] = next(not_returned)
    values = (as_list(written[position]) for position in sorted(written))
    return [*(outputs[i] for i in schema.fresh), *(value for listed in values for value in listed)]


def _flat(case: Case) -> list[Any]:
    return [jnp.asarray(value) for _, value in case.tensors()]


def arrays(values: Sequence[Any]) -> list[Array]:
    """Return copies of JAX's arrays."""
    return [np.array(value) for value in values]


def run(case: Case) -> list[Array]:
    """Call the operator at once."""
    with jax.enable_x64(True):
        return arrays(call(case, _flat(case)))


def compiled(case: Case) -> list[Array]:
    """Call it inside ``jax.jit``."""
    with jax.enable_x64(True):
        return arrays(jax.jit(lambda flat: call(case, flat))(_flat(case)))


def pull_of(case: Case, cotangents: Sequence[Array]) -> Any:
    """Return the function from input tensors and output gradients to input gradients, and the latter."""
    names = [name for name, _ in case.tensors()]
    smooth = [i for i, (_, value) in enumerate(case.tensors()) if is_smooth(value)]

    def pull(flat: list[Any], grads: list[Any]) -> dict[str, Any]:
        def function(*moving: Any) -> list[Any]:
            inputs = list(flat)
            for i, value in zip(smooth, moving, strict=True):
                inputs[i] = value
            return [x for x in call(case, inputs) if is_smooth(x)]

        _, pullback = jax.vjp(function, *(flat[i] for i in smooth))
        input_grads = conjugated(pullback(conjugated(grads)))
        return {names[i]: grad for i, grad in zip(smooth, input_grads, strict=True)}

    return pull, [jnp.asarray(v) for v in cotangents if is_smooth(v)]


def gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the gradients of ``jax.vjp``; zeros where no gradient flows."""
    with jax.enable_x64(True):
        pull, grads = pull_of(case, cotangents)
        return named(case, pull(_flat(case), grads))


def compiled_gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the same from inside ``jax.jit``."""
    with jax.enable_x64(True):
        pull, grads = pull_of(case, cotangents)
        return named(case, jax.jit(pull)(_flat(case), grads))


def named(case: Case, grads: dict[str, Any]) -> dict[str, Array | None]:
    """Return the gradients by the names of all tensors, None where there is none."""
    return {name: np.array(grads[name]) if name in grads else None for name, _ in case.tensors()}


def batched(samples: Sequence[Case]) -> list[Array]:
    """Call it under ``jax.vmap``."""
    with jax.enable_x64(True), quiet_fallbacks():
        return arrays(jax.vmap(lambda flat: call(samples[0], flat))(_flat(stacked(samples))))


def forward(case: Case, name: str, along: Array) -> list[Array]:
    """Return the output tangents of ``jax.jvp`` for the tangent ``along`` of the input ``name``."""
    with jax.enable_x64(True):
        names = [n for n, _ in case.tensors()]
        flat, at = _flat(case), names.index(name)

        def function(moving: Any) -> list[Any]:
            return call(case, [*flat[:at], moving, *flat[at + 1 :]])

        outputs, tangents = jax.jvp(function, (flat[at],), (jnp.asarray(along, flat[at].dtype),))
        rows = zip(outputs, tangents, strict=True)
        return [np.array(t) if is_smooth(o) else np.zeros(o.shape, o.dtype) for o, t in rows]


def demo(bound: BoundOperator, x: Array) -> Iterator[DemoRow]:
    """Yield the calls of an operator of one tensor, with values and gradients."""

    def loss(x: Any) -> Any:
        return bound(x).sum()

    array = jax.numpy.asarray(x)
    jitted = jax.jit(bound)
    yield "JAX", bound(array), jax.grad(loss)(array), lambda: bound(array)
    yield "jax.jit", jitted(array), jax.jit(jax.grad(loss))(array), lambda: jitted(array)
