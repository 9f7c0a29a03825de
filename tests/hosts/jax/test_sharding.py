"""Sharded arrays on four devices: one call per shard, or an error; never a silent gather."""

import pathlib
import re

import pytest

pytest.importorskip("jax", reason="JAX is not installed")

KERNELS = pathlib.Path(__file__).parents[2] / "sources" / "kernels.c"
FOUR = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
DEFINE = f"""
import jax, jax.numpy as jnp, numpy as np, polyop
from jax.sharding import NamedSharding, PartitionSpec as P, AxisType
jax.config.update("jax_enable_x64", True)
assert jax.device_count() == 4
cube = polyop.operator(
    "sharded::cube(Tensor x, float a=1.0) -> Tensor", polyop.source({str(KERNELS)!r}, function="cube"), infer="x",
    gradient=lambda x, a, out, dout: (3 * a * x**2 * dout, None), batch="elementwise")
shapes_of_calls = []
def look(x, y):
    shapes_of_calls.append((x.shape, y.shape))
    return x * y, x + y
both = polyop.operator(
    "sharded::both(Tensor x, Tensor y) -> (Tensor, Tensor)", look, batch="elementwise",
    infer=lambda x, y: (polyop.Spec(np.broadcast_shapes(x.shape, y.shape), x.dtype),) * 2)
scale_ = polyop.operator(
    "sharded::scale_(Tensor(a!) x, float a) -> ()", polyop.source({str(KERNELS)!r}, function="scale_in_place"),
    batch="elementwise")
rows = polyop.operator("sharded::rows(Tensor x) -> Tensor", lambda x: x - x.sum(0), infer="x",
    gradient=lambda x, out, dout: (dout - dout.sum(0),))
mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
x = np.arange(32.0).reshape(4, 8)
def put(value, *spec):
    return jax.device_put(value, NamedSharding(mesh, P(*spec)))
def check(f, expected, *inputs, spec=None, gathers=False):
    compiled = jax.jit(f).lower(*inputs).compile()
    text = compiled.as_text()
    assert gathers is None or gathers == ("all-gather" in text or "all-reduce" in text), text
    result = jax.block_until_ready(compiled(*inputs))  # on every device
    jax.tree.map(np.testing.assert_allclose, result, expected)
    if spec is not None:
        first = jax.tree.leaves(result)[0]
        assert first.sharding.is_equivalent_to(NamedSharding(mesh, P(*spec)), first.ndim), first.sharding
"""


@pytest.mark.slow
def test_an_elementwise_operator_runs_once_per_shard(process):
    process(DEFINE + """
for spec in [("a",), ("a", "b"), (None, "b"), (("a", "b"),), (None, ("a", "b")), ()]:
    sharded = put(x, *spec)
    check(cube, x**3, sharded, spec=spec)
    check(lambda x: cube(x, 2.0) + x, 2 * x**3 + x, sharded, spec=spec)
    check(jax.grad(lambda x: cube(x).sum()), 3 * x**2, sharded, spec=spec)
    check(lambda x: jax.jvp(cube, (x,), (x,))[1], 3 * x**3, sharded, spec=spec)
    result = cube(sharded)  # without jit, too
    assert result.sharding.is_equivalent_to(sharded.sharding, 2)
    np.testing.assert_array_equal(result, x**3)
    np.testing.assert_array_equal(jax.vmap(cube)(sharded), x**3)
""", **FOUR)  # fmt: skip


@pytest.mark.slow
def test_broadcast_operands(process):
    process(DEFINE + """
import itertools
y = np.arange(8.0)
cases = [(x, ("a", "b"), y, ("b",)), (x, ("a", "b"), y[None], (None, "b")), (x, ("a",), x[:, :1], ("a",)),
         (x, ("a",), x[:, :1], ()), (x, (), np.float64(3), ()), (x, ("a", "b"), np.float64(3), ()), (y, ("b",), x, ("a", "b"))]
for left, left_spec, right, right_spec in cases:
    shapes_of_calls.clear()
    operands = put(left, *left_spec), put(right, *right_spec)
    check(both, (left * right, left + right), *operands)
    shapes = {tuple(np.broadcast_shapes(*pair)) for pair in shapes_of_calls}
    spec = left_spec if np.ndim(left) == 2 else right_spec
    assert shapes == {(4 // (2 if "a" in spec else 1), 8 // (2 if "b" in spec else 1))}, (shapes_of_calls, left_spec, right_spec)
check(lambda x: both(x, np.float64(3) * jnp.ones(()))[0], 3 * x, put(x, "a"), spec=("a",))
""", **FOUR)  # fmt: skip


@pytest.mark.slow
def test_in_place(process):
    process(DEFINE + """
z = np.arange(32, dtype=np.float32).reshape(4, 8)
sharded = put(z, "a", "b")
check(lambda x: scale_(x, 2.0), 2 * z, sharded, spec=("a", "b"))
np.testing.assert_array_equal(sharded, z)
""", **FOUR)  # fmt: skip


WORDS = (
    r"HostError: sharded::rows: argument x is sharded along dimension 0, and nothing says how the operator is "
    r"split there, but got P(?:artitionSpec)?\('a',.*\n\s+defined at .*program.py:\d+\n\s+call it inside jax.shard_map"
)


@pytest.mark.slow
@pytest.mark.parametrize("call", [
    "jax.jit(rows)(put(x, 'a'))", "rows(put(x, 'a'))", "jax.jit(lambda x: rows(x + 1) * 2)(put(x, 'a', 'b'))",
    "jax.grad(lambda x: rows(x).sum())(put(x, 'a'))",
], ids=["jit", "eager", "inside", "grad"])  # fmt: skip
def test_any_other_operator_refuses_shards(process, call):
    printed = process(DEFINE + f"jax.block_until_ready({call})", fails=True, **FOUR)
    assert re.search(WORDS, printed), printed


@pytest.mark.slow
def test_any_other_operator_on_whole_arrays(process):
    process(DEFINE + """
check(rows, x - x.sum(0), put(x))
check(rows, x - x.sum(0), jax.device_put(x, jax.devices()[2]))
np.testing.assert_array_equal(rows(jnp.asarray(x)), x - x.sum(0))
np.testing.assert_array_equal(rows(put(x)), x - x.sum(0))
whole = lambda x: rows(jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P())))
check(whole, x - x.sum(0), put(x, "a"), gathers=True)
def loop(x):
    return jax.lax.scan(lambda c, _: (rows(cube(c, 0.5)), None), x, None, length=2)[0]
expected = x
for _ in range(2):
    expected = 0.5 * expected**3
    expected = expected - expected.sum(0)
np.testing.assert_allclose(jax.jit(loop)(put(x)), expected)
""", **FOUR)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("check_vma", [True, False])
def test_every_operator_inside_shard_map(process, check_vma):
    process(DEFINE + f"""
def local(f, *specs, out=P("a")):
    return jax.shard_map(f, mesh=mesh, in_specs=specs, out_specs=out, check_vma={check_vma})
parts = np.concatenate([x[:2] - x[:2].sum(0), x[2:] - x[2:].sum(0)])
check(local(rows, P("a")), parts, put(x, "a"))
check(local(cube, P("a")), x**3, put(x, "a"), spec=("a",))
check(local(lambda x, y: both(x, y), P("a"), P(), out=(P("a"), P("a"))), (x * x[:1], x + x[:1]), put(x, "a"), put(x[:1]))
# over the axis that no spec names, JAX itself sums the gradients of a shard_map without check_vma
check(jax.grad(lambda x: local(cube, P("a"))(x).sum()), 3 * x**2, put(x, "a"), gathers={not check_vma})
check(lambda x: jax.jvp(local(rows, P("a")), (x,), (x,))[1], parts, put(x, "a"))
check(local(lambda x: jax.vmap(cube)(x), P("a", "b"), out=P("a", "b")), x**3, put(x, "a", "b"))
# only one axis of the mesh is manual: the rest is split by XLA
some = jax.shard_map(cube, mesh=mesh, in_specs=P("a"), out_specs=P("a"), axis_names={{"a"}}, check_vma={check_vma})
check(some, x**3, put(x, "a", "b"), spec=("a", "b"))
""", **FOUR)  # fmt: skip


@pytest.mark.slow
def test_meshes_with_explicit_axes(process):
    process(DEFINE + """
explicit = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)
with jax.set_mesh(explicit):
    sharded = jax.device_put(x, NamedSharding(explicit, P("a", "b")))
    for f, expected in [(cube, x**3), (lambda x: cube(x) * x, x**4), (jax.grad(lambda x: cube(x).sum()), 3 * x**2),
                        (lambda x: both(x, jnp.arange(8.0))[0], x * np.arange(8.0))]:
        result = jax.jit(f)(sharded)
        np.testing.assert_allclose(result, expected)
        assert jax.typeof(result).sharding.spec == P("a", "b"), jax.typeof(result)
    assert jax.typeof(cube(sharded)).sharding.spec == P("a", "b")
    whole = jax.device_put(x, NamedSharding(explicit, P()))
    np.testing.assert_allclose(jax.jit(rows)(whole), x - x.sum(0))
    np.testing.assert_allclose(jax.jit(lambda x: rows(jax.reshard(x, P())))(sharded), x - x.sum(0))
    try:
        jax.jit(rows)(sharded)
    except polyop.PolyopError as problem:
        assert "sharded::rows: argument x is sharded along dimension 0, and nothing says how" in str(problem), problem
    else:
        raise AssertionError
""", **FOUR)  # fmt: skip


@pytest.mark.slow
def test_an_operator_without_outputs(process):
    printed = process(DEFINE + """
import threading
calls, lock = [], threading.Lock()
def note(x):
    with lock:
        calls.append(x.shape)
op = polyop.operator("sharded::note(Tensor x) -> ()", note, infer=lambda x: ())
def run(x):
    op(x)
    return x
jax.jit(jax.shard_map(run, mesh=mesh, in_specs=P("a", "b"), out_specs=P("a", "b")))(put(x, "a")).block_until_ready()
jax.effects_barrier()
assert calls == [(2, 4)] * 4, calls
jax.jit(run)(jax.device_put(x, jax.devices()[1])).block_until_ready()
assert calls[4:] == [(4, 8)], calls
for call in (jax.jit(run), op):
    try:
        call(put(x, "a"))
    except polyop.PolyopError as problem:
        print(problem)
""", **FOUR)  # fmt: skip
    assert printed.count("sharded::note: has no outputs, and the program runs on several devices\n") == 2, (
        printed
    )
    assert "call it inside jax.shard_map, over all axes of the mesh" in printed


@pytest.mark.slow
def test_pmap_runs_once_per_device(process):
    process(DEFINE + """
np.testing.assert_array_equal(jax.pmap(cube)(x), x**3)
np.testing.assert_array_equal(jax.pmap(jax.grad(lambda x: cube(x).sum()))(x), 3 * x**2)
np.testing.assert_array_equal(jax.pmap(rows)(x), x - x.sum(1, keepdims=True))
""", **FOUR)  # fmt: skip


DIMS = """
calls = []
def matmul(x, w):
    calls.append((x.shape, w.shape))
    return x @ w
linear = polyop.operator("sharded::linear(Tensor x, Tensor w) -> Tensor", matmul,
                         dims="b i, i o -> b o", parallel="b o", sum="i")
def per_row(x, weights):
    calls.append(x.shape)
    return np.cumsum(x, -1) * sum(weights), x.sum(-1)
scan = polyop.operator("sharded::scan(Tensor x, Tensor[] weights) -> (Tensor, Tensor)", per_row,
                       dims="... n, n* -> ... n, ...", parallel="...")
def compiled(f, *inputs):
    program = jax.jit(f).lower(*inputs).compile()
    return jax.block_until_ready(program(*inputs)), program.as_text().count("all-gather(")
"""


def test_parallel_dimensions_of_dims_are_split(process):
    process(DEFINE + DIMS + """
w = np.arange(32.0).reshape(8, 4)
cases = [  # how x and w are split, how the output is, what one call gets, the number of gathers
    (("a",), (), ("a",), ((2, 8), (8, 4)), 0),
    ((), (None, "b"), (None, "b"), ((4, 8), (8, 2)), 0),
    (("a",), (None, "b"), ("a", "b"), ((2, 8), (8, 2)), 0),
    ((("a", "b"),), (), (("a", "b"),), ((1, 8), (8, 4)), 0),
    (("a", "b"), (), ("a",), ((2, 8), (8, 4)), 1),
]
for x_spec, w_spec, spec, shapes, gathers in cases:
    calls.clear()
    y, seen = compiled(linear, put(x, *x_spec), put(w, *w_spec))
    np.testing.assert_allclose(y, x @ w)
    assert seen == gathers, (x_spec, w_spec, seen)
    assert set(calls) == {shapes}, (x_spec, w_spec, calls)
    assert y.sharding.is_equivalent_to(NamedSharding(mesh, P(*spec)), 2), (spec, y.sharding)
calls.clear()
one = np.arange(8.0)
(y, total), gathers = compiled(lambda x, w: scan(x, [w, w]), put(x, "a"), put(one))
np.testing.assert_allclose(y, np.cumsum(x, -1) * 2 * one)
np.testing.assert_allclose(total, x.sum(-1))
assert gathers == 0 and set(calls) == {(2, 8)}, calls
""", **FOUR)  # fmt: skip


def test_parallel_dimensions_on_meshes_with_explicit_axes(process):
    process(DEFINE + DIMS + """
w = np.arange(32.0).reshape(8, 4)
explicit = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)
with jax.set_mesh(explicit):
    split = lambda value, *spec: jax.device_put(value, NamedSharding(explicit, P(*spec)))
    y = jax.jit(linear)(split(x, "a"), split(w, None, "b"))
    assert jax.typeof(y).sharding.spec == P("a", "b"), jax.typeof(y)
    np.testing.assert_allclose(y, x @ w)
    for x_spec, w_spec, spec in [((None, "a"), (), P(None, None)), (("b", "a"), ("a",), P("b", None)),
                                 (("b", ("a",)), ("a",), P("b", None))]:
        y = jax.jit(linear)(split(x, *x_spec), split(w, *w_spec))  # slices of i are added
        assert jax.typeof(y).sharding.spec == spec, jax.typeof(y)
        np.testing.assert_allclose(y, x @ w)
    one = np.arange(8.0)
    refused = [
        (lambda: scan(split(x, None, "a"), [split(one)]), "argument x is sharded along dimension 1, and nothing"),
        (lambda: scan(split(x), [split(one), split(one, "a")]), "argument weights[1] is sharded along dimension 0"),
        (lambda: linear(split(x, "a"), split(w, None, "a")), "dimensions b and o are split along one axis, but got a and a"),
        (lambda: linear(split(x, None, "b"), split(w, "a")),
         "argument x and argument w are split along different axes in dimension i, but got b and a"),
    ]
    for call, words in refused:
        try:
            call()
        except polyop.PolyopError as problem:
            assert words in str(problem), problem
        else:
            raise AssertionError(words)
""", **FOUR)  # fmt: skip
