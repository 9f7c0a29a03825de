"""A jaxlib with another version of XLA's FFI: every call goes through Python, with one warning."""

import pathlib

import pytest

pytest.importorskip("jax", reason="JAX is not installed")

KERNELS = pathlib.Path(__file__).parents[2] / "sources" / "kernels.c"
OTHER = {"POLYOP_XLA_FFI_VERSION": "7.0"}
PROGRAM = f"""
import warnings, jax, jax.numpy as jnp, numpy as np, polyop
jax.config.update("jax_enable_x64", True)
def kernel(name):
    return polyop.source({str(KERNELS)!r}, function=name)
cube = polyop.operator("fallback::cube(Tensor x, float a=1.0) -> Tensor", kernel("cube"), infer="x",
    gradient=lambda x, a, out, dout: (3 * a * x**2 * dout, None), batch="elementwise")
x = jnp.arange(1.0, 4.0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    np.testing.assert_array_equal(cube(x, 2.0), 2 * x**3)
    np.testing.assert_array_equal(jax.jit(cube)(x), x**3)
assert [w.category for w in caught] == [polyop.FallbackWarning], caught
message = str(caught[0].message)
assert message.startswith("polyop: this jaxlib does not take the native handler ("), message
assert message.endswith("every call goes through Python, several times slower"), message
assert "7.0" in message or "version" in message.lower(), message
f = lambda x: cube(x, 2.0).sum()
np.testing.assert_array_equal(jax.grad(f)(x), 6 * x**2)
np.testing.assert_array_equal(jax.hessian(f)(x), jnp.diag(12 * x))
np.testing.assert_array_equal(jax.jvp(cube, (x,), (x,))[1], 3 * x**3)
np.testing.assert_array_equal(jax.jit(jax.vmap(jax.grad(lambda x: cube(x))))(x), 3 * x**2)
np.testing.assert_array_equal(jax.lax.scan(lambda c, _: (cube(c, 0.5), None), x, None, length=2)[0], 0.5**4 * x**9)
np.testing.assert_array_equal(cube(jnp.zeros((0, 3))), np.zeros((0, 3)))
assert cube(jnp.float64(2.0)).shape == ()

both = polyop.operator("fallback::both(Tensor x, Tensor y) -> (Tensor, Tensor)", kernel("sum_and_difference"), infer="x")
z = x.astype("float32")
total, difference = jax.jit(both)(z, z)
np.testing.assert_array_equal(total, 2 * z)
np.testing.assert_array_equal(difference, 0 * z)
maybe = polyop.operator("fallback::maybe(Tensor x, Tensor? y=None) -> Tensor", kernel("add_optional"), infer="x")
np.testing.assert_array_equal(jax.jit(maybe)(z), z)
np.testing.assert_array_equal(jax.jit(maybe)(z, z), 2 * z)
many = polyop.operator("fallback::many(Tensor[] xs) -> Tensor", kernel("add_all"), infer=lambda xs: xs[0])
np.testing.assert_array_equal(jax.jit(lambda z: many([z] * 3))(z), 3 * z)
copy = polyop.operator("fallback::copy(Tensor x) -> Tensor", kernel("copy"), infer="x")
for dtype in ("bfloat16", "float16", "int8", "bool", "complex64", "float8_e5m2"):
    array = jnp.array([0, 1, 1], dtype)
    np.testing.assert_array_equal(np.asarray(jax.jit(copy)(array)), np.asarray(array))
scale_ = polyop.operator("fallback::scale_(Tensor(a!) x, float a) -> ()", kernel("scale_in_place"))
for mode in (lambda f: f, jax.jit):
    np.testing.assert_array_equal(mode(lambda z: scale_(z, 2.0))(z), 2 * z)
    np.testing.assert_array_equal(z, [1, 2, 3])
donated = jnp.array(z)
np.testing.assert_array_equal(jax.jit(lambda z: scale_(z, 2.0), donate_argnums=0)(donated), 2 * z)
python = polyop.operator("fallback::python(Tensor x) -> Tensor", lambda x: np.sin(x), infer="x")
np.testing.assert_array_equal(jax.jit(python)(x), np.sin(np.asarray(x)))
fails = polyop.operator("fallback::fails(Tensor x) -> Tensor", kernel("fails_with_words"), infer="x")
try:
    jax.jit(fails)(z).block_until_ready()
except Exception as problem:
    assert "fallback::fails: the kernel returned 1 (needs a square matrix)" in str(problem), problem
else:
    raise AssertionError
import polyop.call.explain
text = polyop.call.explain.explain(cube)
assert "jax" in text, text
from polyop.hosts.jax import HOST
assert "through Python" in HOST.state(cube), HOST.state(cube)
"""


@pytest.mark.slow
def test_calls_through_python_have_the_same_results(process):
    process(PROGRAM, **OTHER)


@pytest.mark.slow
def test_the_native_handler_is_taken_and_said_so(process):
    printed = process("import jax, polyop\nfrom polyop.hosts.jax import HOST\nprint(HOST.state(None))")
    assert printed == "present, with the native handler\n"
