"""Results of 64 bits while JAX has none: those of 32 bits that JAX's own functions give, and never a wrong value."""

import pathlib

import numpy as np
import pytest

import polyop
from polyop import Custom, Spec
from polyop.define.module.builder import CustomOpBuilder

jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402
from jax import export  # noqa: E402

SOURCES = pathlib.Path(__file__).parents[2] / "sources"
X = np.array([3, -1, 5, 2], np.float32)
BIG = np.array([3, 2e10, 5, -2e10], np.float32)
modes = pytest.mark.parametrize("mode", [lambda f: f, jax.jit], ids=["eager", "jit"])
C = """
#include <stdint.h>
int halves(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra) {
  int64_t count = 1;
  for (int i = 0; i < ndims[0]; ++i) count *= shapes[0][i];
  for (int64_t i = 0; i < count; ++i) {
    const double x = ((float *)params[0])[i];
    ((int64_t *)params[1])[i] = (int64_t)x;
    ((double *)params[2])[i] = x / 2;
  }
  return 0;
}
int pulled(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream, void *extra) {
  int64_t count = 1;
  for (int i = 0; i < ndims[0]; ++i) count *= shapes[0][i];
  for (int64_t i = 0; i < count; ++i)
    ((float *)params[3])[i] = (float)(((int64_t *)params[0])[i] + ((double *)params[1])[i] + ((double *)params[2])[i]);
  return 0;
}
"""


@pytest.fixture(autouse=True)
def _default_mode(_x64):
    jax.config.update("jax_enable_x64", False)


@polyop.kernel
def squares(x):
    out = output_tensor(x.shape, float64)  # noqa: F821
    for i in range(x.shape[0]):
        out[i] = x[i] * x[i]
    return out


@polyop.kernel
def whole(x):
    out = output_tensor(x.shape, int64)  # noqa: F821
    for i in range(x.shape[0]):
        out[i] = int64(x[i])  # noqa: F821
    return out


@pytest.fixture(scope="module")
def in_c(tmp_path_factory):
    """An operator of C with an int64 and a float64 output; its gradient, in C too, reads both and a gradient."""
    source = tmp_path_factory.mktemp("narrow") / "narrow.c"
    source.write_text(C)
    pulled = polyop.operator(
        "jax_narrow::pulled(Tensor whole, Tensor half, Tensor grad) -> Tensor",
        f"{source}:pulled",
        infer=lambda whole, half, grad: Spec(half.shape, "float32"),
        batch="elementwise",
    )
    return polyop.operator(
        "jax_narrow::halves(Tensor x) -> (Tensor, Tensor)",
        f"{source}:halves",
        infer=lambda x: (Spec(x.shape, "int64"), Spec(x.shape, "float64")),
        gradient=lambda x, outputs, grads: (pulled(*outputs, grads[1]),),
        batch="elementwise",
    )


def python(name, dtype):
    return polyop.operator(
        f"jax_narrow::{name}(Tensor x) -> Tensor",
        lambda x: x.astype(dtype),
        infer=lambda x: Spec(x.shape, dtype),
        batch="elementwise",
    )


@pytest.fixture(scope="module")
def casts(in_c):
    """By kind: an operator with an int64 result, or a function of one."""
    return {
        "C": lambda x: in_c(x)[0],
        "loop": whole,
        "Python": python("to_int64", "int64"),
        "Custom": Custom(lambda x: x.astype("int64"), lambda x: x, lambda x: "int64", "pyfunc"),
    }


@modes
@pytest.mark.parametrize("kind", ["C", "loop", "Python", "Custom"])
def test_integers(casts, mode, kind):
    found = mode(casts[kind])(jnp.asarray(X))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, X.astype(int))
    for x, value in ((BIG, "20000000000"), (-BIG, "-20000000000"), (-BIG[1:2], "-20000000000")):
        message = (
            r"(?s)KernelError|output 0: is int64, given as int32 because JAX has 64-bit types "
            rf"switched off; a value does not fit, but got -?{value.strip('-')}.*jax_enable_x64"
        )
        with pytest.raises(Exception, match=message):
            mode(casts[kind])(jnp.asarray(x)).block_until_ready()
    with jax.enable_x64(True):  # the same function again, and back
        np.testing.assert_array_equal(mode(casts[kind])(jnp.asarray(BIG)), BIG.astype(int))
    assert mode(casts[kind])(jnp.asarray(X)).dtype == np.int32


@modes
@pytest.mark.parametrize("name", ["int", "uint"])
def test_limits(mode, name):
    values = np.array([np.iinfo(f"{name}32").min, np.iinfo(f"{name}32").max], f"{name}32")
    op = python(f"limits_{name}_{mode.__name__.strip('<>')}", f"{name}64")
    found = mode(op)(jnp.asarray(values))
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)
    assert mode(op)(jnp.zeros((0, 2))).shape == (0, 2)


@modes
def test_floats_are_rounded(mode):
    for wide, narrow in (("float64", "float32"), ("complex128", "complex64")):
        op = python(f"to_{wide}_{id(mode)}", wide)
        scaled = polyop.operator(
            f"jax_narrow::scaled_{wide}_{id(mode)}(Tensor x) -> Tensor",
            lambda x, wide=wide: x.astype(wide) * 1e200 / 3,
            infer=lambda x, wide=wide: Spec(x.shape, wide),
        )
        found = mode(op)(jnp.asarray(X))
        assert found.dtype == narrow
        np.testing.assert_array_equal(found, X)
        assert np.isinf(mode(scaled)(jnp.asarray(X)).real).all()


TRANSFORMS = [
    ("grad", lambda f, x: jax.grad(lambda x: f(x).sum())(x)),
    ("grad of vmap", lambda f, x: jax.grad(lambda x: jax.vmap(f)(x).sum())(jnp.stack([x, 2 * x]))),
    ("vmap of grad", lambda f, x: jax.vmap(jax.grad(lambda x: f(x).sum()))(jnp.stack([x, 2 * x]))),
    ("hessian", lambda f, x: jax.hessian(lambda x: f(x).sum())(x)),
    ("jvp", lambda f, x: jax.jvp(f, (x,), (x,))),
    ("jacfwd", lambda f, x: jax.jacfwd(f)(x)),
    ("jacrev", lambda f, x: jax.jacrev(f)(x)),
    ("linearize", lambda f, x: jax.linearize(f, x)[1](x)),
    ("third", lambda f, x: jax.grad(lambda x: jax.grad(lambda x: (jax.jvp(f, (x,), (x,))[1] * x).sum())(x).sum())(x)),
    ("checkpoint", lambda f, x: jax.grad(jax.checkpoint(lambda x: f(f(x)).sum()))(x)),
    ("scan", lambda f, x: jax.grad(lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0].sum())(x)),
    ("cond", lambda f, x: jax.grad(lambda x: jax.lax.cond(x[0] > 0, f, lambda x: x, x).sum())(x)),
]  # fmt: skip


@modes
@pytest.mark.slow(8)
@pytest.mark.parametrize(("name", "transform"), TRANSFORMS, ids=[name for name, _ in TRANSFORMS])
def test_derivatives(mode, name, transform):
    """A derived kernel has the gradient of a float64: it must not read that of a float32."""
    del name
    x = jnp.asarray(X / 4)
    found, expected = (mode(lambda x, f=f: transform(f, x))(x) for f in (squares, lambda x: x * x))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=1e-6)


@modes
def test_a_rule_gets_what_the_kernel_wrote(in_c, mode):
    found = mode(jax.grad(lambda x: in_c(x)[1].sum()))(jnp.asarray(X))
    np.testing.assert_array_equal(found, X + X / 2 + 1)
    batch = jnp.stack([X, 2 * X])
    found = mode(jax.vmap(jax.grad(lambda x: in_c(x)[1].sum())))(batch)
    np.testing.assert_array_equal(found, batch + batch / 2 + 1)
    seen = []
    op = polyop.operator(
        f"jax_narrow::with_jvp_{id(mode)}(Tensor x) -> Tensor",
        lambda x: np.sin(x, dtype="float64"),
        infer=lambda x: Spec(x.shape, "float64"),
        jvp=lambda x, out, tangents: seen.append(out.dtype) or jnp.cos(x) * tangents[0],
    )
    out, tangent = mode(lambda x: jax.jvp(op, (x,), (x,)))(jnp.asarray(X))
    assert (out.dtype, tangent.dtype, seen) == (np.float32, np.float32, [np.float64])
    np.testing.assert_allclose(tangent, np.cos(X) * X, rtol=1e-6)


@pytest.mark.slow(1)
@modes
def test_a_module_saves_and_returns_int64(mode):
    ops = CustomOpBuilder("jax_narrow", [str(SOURCES / "module_gradients.cpp")], backend="CPU").load()
    double, index = mode(lambda x: tuple(ops.with_index(x)))(jnp.asarray(X))
    assert index.dtype == np.int32
    np.testing.assert_array_equal(index, 10 * X)
    np.testing.assert_array_equal(double, 2 * X)
    np.testing.assert_array_equal(
        mode(jax.grad(lambda x: ops.with_index(x)[0].sum()))(jnp.asarray(X)), 2 + 0 * X
    )
    with pytest.raises(Exception, match="output 1: is int64.* but got 2000000"):
        jax.block_until_ready(mode(lambda x: tuple(ops.with_index(x)))(jnp.asarray(BIG / 10)))


@modes
def test_aten(mode):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    aten, x = polyop.aten, jnp.asarray(X)
    values, places = mode(lambda x: aten("topk")(x, 2))(x)
    own = jax.lax.top_k(x, 2)
    assert places.dtype == own[1].dtype
    np.testing.assert_array_equal(values, own[0])
    np.testing.assert_array_equal(places, own[1])
    assert mode(aten("argmax"))(x).dtype == mode(jnp.argmax)(x).dtype
    both = mode(jax.vmap(lambda x: aten("sort")(x)[1]))(jnp.stack([x, -x]))
    np.testing.assert_array_equal(both, np.argsort(np.stack([X, -X]), 1))
    with pytest.raises(Exception, match="aten::sum: output 0: is int64.* but got 4294967294"):
        mode(aten("sum"))(jnp.full(2, 2**31 - 1)).block_until_ready()
    grads = mode(jax.grad(lambda x: (aten("topk")(x, 2)[0] * jnp.array([1.0, 2.0])).sum()))(x)
    np.testing.assert_array_equal(grads, [2, 0, 1, 0])
    index = jnp.array([0, 1, 1, 3])  # int32
    np.testing.assert_array_equal(mode(lambda i: aten("one_hot")(i, 4))(index), jax.nn.one_hot(index, 4))
    logits, target = np.eye(4, dtype=np.float32) * X, torch.tensor(np.asarray(index).astype(int))
    loss = lambda rows: aten("cross_entropy_loss")(rows, index)  # noqa: E731
    leaf = torch.tensor(logits, requires_grad=True)
    expected = torch.nn.functional.cross_entropy(leaf, target)
    expected.backward()
    np.testing.assert_allclose(mode(loss)(jnp.asarray(logits)), expected.detach(), rtol=1e-6)
    np.testing.assert_allclose(mode(jax.grad(loss))(jnp.asarray(logits)), leaf.grad, rtol=1e-5, atol=1e-7)
    rows = mode(lambda a, i: aten("max_unpool2d")(a, i, [2, 2]))(
        jnp.full((1, 1, 1, 1), 7.0), jnp.full((1, 1, 1, 1), 3)
    )
    np.testing.assert_array_equal(rows.ravel(), [0, 0, 0, 7])
    with pytest.raises(Exception, match="one_hot: PyTorch raised RuntimeError: .*smaller than num_classes"):
        mode(lambda i: aten("one_hot")(i, 2))(index).block_until_ready()


def test_exported_programs(in_c):
    checks = polyop.jax_export_checks()
    made = export.export(jax.jit(in_c), disabled_checks=checks)(jax.ShapeDtypeStruct((4,), "float32"))
    again = export.deserialize(bytearray(made.serialize()))
    for wide in (False, True):  # the program stays what it is
        with jax.enable_x64(wide):
            integers, halves = again.call(jnp.asarray(X))
            assert (integers.dtype, halves.dtype) == (np.int32, np.float32)
            np.testing.assert_array_equal(integers, X)
    with pytest.raises(Exception, match="halves: output 0: is int64.* but got 2000"):
        jax.block_until_ready(again.call(jnp.asarray(BIG)))
    grad = jax.jit(jax.grad(lambda x: squares(x).sum()))
    made = export.export(grad, disabled_checks=checks)(jax.ShapeDtypeStruct((4,), "float32"))
    np.testing.assert_array_equal(export.deserialize(bytearray(made.serialize())).call(jnp.asarray(X)), 2 * X)


def test_traced_in_one_mode_and_lowered_in_the_other():
    kind = jax.ShapeDtypeStruct((4,), "float32")
    for wide in (False, True):
        with jax.enable_x64(wide):
            traced = jax.jit(squares).trace(kind)
        with jax.enable_x64(not wide):
            found = traced.lower().compile()(jnp.asarray(X))
        assert found.dtype == ("float64" if wide else "float32")
        np.testing.assert_array_equal(found, X * X)


FALLBACK = """
import jax, jax.numpy as jnp, numpy as np, polyop, pytest

@polyop.kernel
def whole(x):
    out = output_tensor(x.shape, int64)
    for i in range(x.shape[0]):
        out[i] = int64(x[i])
    return out

x = jnp.arange(3.0)
for mode in (lambda f: f, jax.jit):
    found = mode(whole)(x)
    assert found.dtype == np.int32 and found.tolist() == [0, 1, 2]
    with pytest.raises(Exception, match="whole: output 0: is int64.* but got 20000000000"):
        mode(whole)(1e10 * x).block_until_ready()
"""


@pytest.mark.slow
def test_calls_through_python(process):
    process(FALLBACK, POLYOP_XLA_FFI_VERSION="7.0", warnings="default")


MESH = """
import jax, jax.numpy as jnp, numpy as np, polyop, pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

@polyop.kernel
def squares(x):
    out = output_tensor(x.shape, float64)
    for i in range(x.shape[0]):
        out[i] = x[i] * x[i]
    return out

@polyop.kernel
def total(x):
    out = output_tensor((1,), int64)
    out[0] = 0
    for i in range(x.shape[0]):
        out[0] += int64(x[i])
    return out

x = np.arange(8, dtype=np.float32)
for kind in (AxisType.Auto, AxisType.Explicit):
    mesh = jax.make_mesh((4,), ("d",), axis_types=(kind,))
    rows = jax.device_put(x, NamedSharding(mesh, P("d")))
    for f in (squares, jax.jit(squares), jax.shard_map(squares, mesh=mesh, in_specs=P("d"), out_specs=P("d"))):
        found = f(rows)
        assert found.dtype == np.float32 and found.sharding.spec == P("d")
        np.testing.assert_array_equal(found, x * x)
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: squares(x).sum()))(rows), 2 * x)
    assert total(x).tolist() == [28]
    with pytest.raises(Exception, match="a sum of 64-bit integers is split only with jax_enable_x64"):
        total(rows)
    with jax.enable_x64(True):
        assert total(rows).tolist() == [28]
"""


@pytest.mark.slow
def test_on_a_mesh(process):
    process(MESH, XLA_FLAGS="--xla_force_host_platform_device_count=4")
