"""XLA FFI handlers in JAX: each is the plain custom call, with jit, transforms, attributes and export."""

import itertools
import pathlib

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import polyop

FOLDER = pathlib.Path(__file__).parents[2] / "support" / "xla_handlers"
TYPES = {  # of the attributes of handlers in handlers.cc
    "RmsNorm": {"eps": "float32"},
    "Attributes": {"i32": "int32", "u8": "uint8", "f32": "float32", "floats": "float32"},
}
X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)
NUMBERS = itertools.count()


def define(name, schema="(Tensor x) -> Tensor", infer="x", **options):
    headers = [jax.ffi.include_dir()]
    built = polyop.source(FOLDER / "handlers.cc", function=name, include_paths=headers, flags=["-O0"])
    kernel = polyop.xla_ffi(built, types=TYPES.get(name))
    return polyop.operator(f"jax_xla_ffi::f{next(NUMBERS)}{schema}", kernel, infer=infer, **options)


@pytest.fixture
def norm():
    schema = "(Tensor x, float eps=1e-6) -> Tensor"
    return define("RmsNorm", schema, None, dims="... n -> ... n", parallel="...")


def rms(x, eps):
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + eps)


def test_it_is_the_custom_call_of_the_handler(norm):
    text = jax.jit(lambda x: norm(x, 0.5)).lower(X).as_text()
    assert f'custom_call @"{norm.name} ' in text
    assert "eps = 5.000000e-01 : f32" in text
    assert "polyop_call" not in text
    assert "callback" not in text
    np.testing.assert_allclose(norm(jnp.asarray(X), 0.5), rms(X, 0.5), rtol=1e-6)


def test_transforms(norm):
    x = jnp.asarray(X)
    np.testing.assert_allclose(jax.vmap(lambda row: norm(row, 0.5))(x), rms(X, 0.5), rtol=1e-6)
    _, rows = jax.lax.scan(lambda carry, row: (carry, norm(row, 0.5)), 0, x)
    np.testing.assert_allclose(rows, rms(X, 0.5), rtol=1e-6)
    twice = define("Doubled", gradient=lambda x, out, dout: (twice(dout),))
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: twice(x).sum()))(x), np.full_like(X, 2))


def test_attributes_and_several_results():
    arguments = (
        "int i64, int i32, int u8, float f32, float f64, bool flag, str text, int[] ints, float[] floats"
    )
    values = (-(2**40), -7, 200, 1.5, 0.1, True, "seven..", [5, 6], [0.25, 2])
    schema = f"(Tensor x, {arguments}) -> Tensor"
    show = define("Attributes", schema, lambda *_: polyop.Spec((11,), "float64"))
    given = jax.jit(lambda x: show(x, *values))(X)
    np.testing.assert_array_equal(given, [*values[:5], 1, 7, 5, 6, 0.25, 2])
    with jax.enable_x64(False):  # XLA would give the handler half of the memory, so polyop calls it
        narrow = jax.jit(lambda x: show(x, *values))(X)
    assert narrow.dtype == np.float32
    np.testing.assert_array_equal(narrow, np.asarray(given, np.float32))

    def infer(x):
        return polyop.Spec(x.shape[:-1], "float32"), polyop.Spec(x.shape[:-1], "int32")

    value, place = jax.jit(define("Largest", "(Tensor x) -> (Tensor, Tensor)", infer))(X)
    np.testing.assert_array_equal(value, X.max(-1))
    np.testing.assert_array_equal(place, X.argmax(-1))


def test_each_device_gets_the_attributes_of_its_own_kernel():
    built = polyop.source(FOLDER / "handlers.cc", function="RmsNorm", include_paths=[jax.ffi.include_dir()])
    kernels = [
        polyop.xla_ffi(built, device=device, types={"eps": kind})
        for device, kind in {"cpu": "float32", "cuda": "float64"}.items()
    ]
    norm = polyop.operator(
        f"jax_xla_ffi::f{next(NUMBERS)}(Tensor x, float eps=1e-6) -> Tensor", kernels, infer="x"
    )
    call = jax.jit(lambda x: norm(x, 0.5))
    np.testing.assert_allclose(call(jnp.asarray(X)), rms(X, 0.5), rtol=1e-6)
    lowered = call.trace(X).lower(lowering_platforms=("cuda",)).as_text()
    assert "eps = 5.000000e-01 : f64" in lowered
    assert "eps = 5.000000e-01 : f32" not in lowered


def test_an_absent_tensor_is_left_out():
    total = define("Sum", "(Tensor[] xs, Tensor? y=None) -> Tensor", lambda xs, y: xs[0])
    np.testing.assert_array_equal(jax.jit(lambda x: total([x, x]))(X), 2 * X)
    np.testing.assert_array_equal(jax.jit(lambda x: total([x], x))(X), 2 * X)


def test_the_error_of_a_handler():
    with pytest.raises(Exception, match="x must be square, it has 2 rows"):
        jax.block_until_ready(jax.jit(define("Square"))(X))


def test_jax_serves_what_only_its_runtime_has():
    jax.block_until_ready(
        jax.jit(define("WantsRun"))(X)
    )  # other hosts refuse it: tests/kernels/test_xla_ffi.py


def test_kernels_of_two_dtypes_are_two_targets():
    lapack = pytest.importorskip("jaxlib.cpu._lapack", reason="jaxlib has no LAPACK handlers")
    lapack.initialize()
    handlers = lapack.registrations()
    potrf = polyop.operator(
        "jax_xla_ffi::potrf(Tensor x) -> (Tensor, Tensor)",
        [
            polyop.xla_ffi(handlers[f"lapack_{letter}potrf_ffi"], dtypes=[dtype])
            for letter, dtype in (("s", "float32"), ("d", "float64"))
        ],
        infer=lambda x: (x, polyop.Spec(x.shape[:-2], "int32")),
        attributes={"uplo": np.uint8(ord("U"))},
    )
    for dtype, digits in ((np.float32, 1e-4), (np.float64, 1e-12)):
        x = (np.eye(3) * 4 + 1).astype(dtype)
        factor, info = jax.jit(potrf)(x)
        assert factor.dtype == dtype
        np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(x), rtol=digits)
        assert info == 0


def test_an_exported_program_names_the_operator_with_its_digest(norm):
    exported = jax.export.export(jax.jit(norm), disabled_checks=polyop.jax_export_checks())(
        jax.ShapeDtypeStruct(X.shape, X.dtype)
    )
    assert "polyop_call" in exported.mlir_module()
    again = jax.export.deserialize(exported.serialize())
    np.testing.assert_allclose(again.call(X), rms(X, 1e-6), rtol=1e-6)
