"""JAX calls beside jitted ``x + 1``."""

import ctypes
from typing import Any

import numpy as np
from kernels import leaky, loop_leaky, scaled, twice
from measure import Missing, Row, Timed, beside

import polyop


def rows() -> list[Row]:
    try:
        import jax
    except ImportError as problem:
        raise Missing("JAX is not installed") from problem
    x = jax.numpy.ones(4, jax.numpy.float32)
    ours = leaky()

    def call(f: Any, statement: str = "f(x)") -> Timed:
        return Timed(statement, {"f": f, "x": x})

    def loss(x: Any) -> Any:
        return ours(x).sum()

    def python(x: Any) -> Any:
        return jax.pure_callback(lambda v: np.maximum(v, 0), x, x)

    def ffi(x: Any) -> Any:
        return jax.ffi.ffi_call("bench_twice", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    def by_callback(x: Any) -> Any:
        import torch

        return jax.pure_callback(lambda v: torch.erfinv(torch.from_numpy(np.array(v))).numpy(), x, x)

    own_handler = twice()
    handler = jax.ffi.pycapsule(ctypes.c_void_p(own_handler.operator.kernels[0].address))
    jax.ffi.register_ffi_target("bench_twice", handler, platform="cpu")
    plus = call(jax.jit(lambda x: x + 1))
    own = call(jax.jit(jax.grad(lambda x: jax.numpy.where(x > 0, x, 0.01 * x).sum())))
    return [
        Row("JAX jitted call, 4 elements", "jitted x + 1", 1.3, beside(call(jax.jit(ours)), plus)),
        Row("JAX jitted gradient", "the same in jnp", None, beside(call(jax.jit(jax.grad(loss))), own)),
        Row(
            "JAX jitted XLA FFI handler",
            "jax.ffi.ffi_call",
            1.1,
            beside(call(jax.jit(own_handler)), call(jax.jit(ffi))),
        ),
        Row("JAX eager call, 4 elements", "jitted x + 1", 1.5, beside(call(ours), plus)),
        Row("JAX eager call of a loop kernel", "jitted x + 1", 1.5, beside(call(loop_leaky()), plus)),
        Row("JAX eager call, one attribute", "jitted x + 1", 1.5, beside(call(scaled(), "f(x, 0.5)"), plus)),
        Row(
            "JAX jitted call",
            "jitted pure_callback",
            None,
            beside(call(jax.jit(ours)), call(jax.jit(python))),
        ),
        Row(
            "JAX jitted polyop.aten('erfinv')",
            "pure_callback to PyTorch",
            None,
            beside(call(jax.jit(polyop.aten("erfinv"))), call(jax.jit(by_callback))),
        ),
    ]
