"""JAX's profiler, and a compiled program, show the name of the operator."""

import jax
import jax.numpy as jnp

import polyop


def test_the_trace_and_the_program_have_the_name_of_the_operator(tmp_path):
    op = polyop.operator("jax_profiled::twice(Tensor x) -> Tensor", lambda x: 2 * x, infer="x")
    step = jax.jit(lambda x: op(x) + 1)
    x = jnp.ones((4, 4))
    compiled = step.lower(x).compile().as_text()
    assert "/jax_profiled::twice/" in compiled
    with jax.profiler.trace(tmp_path):
        step(x).block_until_ready()
    [recorded] = tmp_path.rglob("*.xplane.pb")
    assert b"jax_profiled::twice" in recorded.read_bytes()
