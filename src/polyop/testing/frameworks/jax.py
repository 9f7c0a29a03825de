"""JAX arrays. Import this file only where JAX is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...call.bound import BoundOperator
from ...call.host import map_tensors
from ..case import Array, Case
from .base import DemoRow, quiet_fallbacks, stacked


def _call(case: Case, arguments: Any) -> list[Any]:
    """Return new outputs, then the new values of what the operator writes."""
    args, keywords = case.positional(arguments)
    result = case.bound(*args, **keywords)
    outputs = list(result) if isinstance(result, (tuple, list)) else [] if result is None else [result]
    schema = case.operator.schema
    if schema.returns_list:
        return outputs
    count = len(schema.returns)
    written: dict[int, Any] = {schema.alias_of(i): outputs[i] for i in range(count) if i not in schema.fresh}
    more = iter(outputs[count:])
    for position, argument in enumerate(schema.arguments):
        if argument.type.writes and case.arguments[position] is not None and position not in written:
            written[position] = next(more)
    made = [outputs[i] for i in schema.fresh]
    for position in sorted(written):
        value = written[position]
        made.extend(value if isinstance(value, (tuple, list)) else [value])
    return made


def _flat(case: Case) -> list[Any]:
    return [jnp.asarray(value) for _, value in case.tensors()]


def _with(case: Case, flat: Sequence[Any]) -> Any:
    left = iter(flat)
    return map_tensors(case.operator, case.arguments, lambda name, value, argument: next(left))


def _arrays(values: Sequence[Any]) -> list[Array]:
    return [np.array(value) for value in values]


def run(case: Case) -> list[Array]:
    """Call the operator at once."""
    with jax.enable_x64(True):
        return _arrays(_call(case, _with(case, _flat(case))))


def compiled(case: Case) -> list[Array]:
    """Call it inside ``jax.jit``."""
    with jax.enable_x64(True):
        return _arrays(jax.jit(lambda flat: _call(case, _with(case, flat)))(_flat(case)))


def _pull(case: Case, cotangents: Sequence[Array]) -> Any:
    names = [name for name, _ in case.tensors()]
    smooth = [i for i, (_, value) in enumerate(case.tensors()) if _is_smooth(value)]

    def pull(flat: list[Any], grads: list[Any]) -> dict[str, Any]:
        def function(*moving: Any) -> list[Any]:
            every = list(flat)
            for i, value in zip(smooth, moving, strict=True):
                every[i] = value
            return [x for x in _call(case, _with(case, every)) if _is_smooth(x)]

        _, back = jax.vjp(function, *(flat[i] for i in smooth))
        # JAX's convention for complex numbers is the conjugate of the others'
        found = back([jnp.conj(grad) for grad in grads])
        return {names[i]: jnp.conj(grad) for i, grad in zip(smooth, found, strict=True)}

    grads = [jnp.asarray(v) for v in cotangents if _is_smooth(v)]
    return pull, grads


def _is_smooth(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jnp.inexact))


def gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the gradients of ``jax.vjp``; zeros where no gradient flows."""
    with jax.enable_x64(True):
        pull, grads = _pull(case, cotangents)
        return _named(case, pull(_flat(case), grads))


def compiled_gradients(case: Case, cotangents: Sequence[Array]) -> dict[str, Array | None]:
    """Return the same from inside ``jax.jit``."""
    with jax.enable_x64(True):
        pull, grads = _pull(case, cotangents)
        return _named(case, jax.jit(pull)(_flat(case), grads))


def _named(case: Case, found: dict[str, Any]) -> dict[str, Array | None]:
    return {name: np.array(found[name]) if name in found else None for name, _ in case.tensors()}


def batched(samples: Sequence[Case]) -> list[Array]:
    """Call it under ``jax.vmap``."""
    with jax.enable_x64(True), quiet_fallbacks():
        many = stacked(samples)
        return _arrays(jax.vmap(lambda flat: _call(samples[0], _with(samples[0], flat)))(_flat(many)))


def forward(case: Case, name: str, along: Array) -> list[Array]:
    """Return the output tangents of ``jax.jvp`` for a tangent of one input."""
    with jax.enable_x64(True):
        names = [n for n, _ in case.tensors()]
        flat, at = _flat(case), names.index(name)

        def function(moving: Any) -> list[Any]:
            return _call(case, _with(case, [*flat[:at], moving, *flat[at + 1 :]]))

        outputs, found = jax.jvp(function, (flat[at],), (jnp.asarray(along, flat[at].dtype),))
        rows = zip(outputs, found, strict=True)
        return [np.array(t) if _is_smooth(o) else np.zeros(o.shape, o.dtype) for o, t in rows]


def demo(bound: BoundOperator, x: Array) -> Iterator[DemoRow]:
    """Yield the calls of an operator of one tensor, with values and gradients."""

    def loss(x: Any) -> Any:
        return bound(x).sum()

    array = jax.numpy.asarray(x)
    jitted = jax.jit(bound)
    yield "JAX", bound(array), jax.grad(loss)(array), lambda: bound(array)
    yield "jax.jit", jitted(array), jax.jit(jax.grad(loss))(array), lambda: jitted(array)
