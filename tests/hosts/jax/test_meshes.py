"""Calls split over eight devices: values, what is moved, and what each device runs."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("jax", reason="JAX is not installed")

HERE = pathlib.Path(__file__).parent
SUPPORT = HERE.parents[1] / "support"
TABLE = HERE / "mesh_table.py"
NAMES = ["norm", "matmul", "softmax", "column_sums", "cumulative_sum", "embedding", "scatter_add", "stencil",
         "window", "scan", "scores", "scale"]  # fmt: skip
EIGHT = {
    "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    "PYTHONPATH": os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]),
}
DEFINE = """
import itertools
import jax, jax.numpy as jnp, numpy as np, polyop
from jax.sharding import NamedSharding, PartitionSpec as P, AxisType
from hlo_collectives import bytes_by_kind
mesh = jax.make_mesh((2, 4), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
def put(value, *spec):
    return jax.device_put(value, NamedSharding(mesh, P(*spec)))
def draw(*shape):
    return np.random.default_rng(len(shape)).uniform(0.5, 1.5, shape).astype(np.float32)
calls = []
def run(f, *inputs, expected, out=None):
    calls.clear()
    compiled = jax.jit(f, out_shardings=None if out is None else NamedSharding(mesh, P(*out))).lower(*inputs).compile()
    result = jax.block_until_ready(compiled(*inputs))
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-5)
    return bytes_by_kind(compiled.as_text()), result.sharding.spec
def matmul(x, w):
    calls.append((x.shape, w.shape))
    return x @ w
linear = polyop.operator("meshes::linear(Tensor x, Tensor w) -> Tensor", matmul, dims="b i, i o -> b o",
                         parallel="b o", sum="i", gradient=lambda x, w, out, dout: (dout @ w.T, x.T @ dout))
def neighbours(x):
    calls.append(x.shape)
    y = np.full_like(x, 7)  # what the border gets
    y[1:-1] = x[:-2] - 2 * x[1:-1] + x[2:]
    return y
stencil = polyop.operator("meshes::stencil(Tensor x) -> Tensor", neighbours, dims="n -> n", halo={"n": (1, 1)})
def windows(x, w):
    calls.append(x.shape)
    (h, v), (a, b) = x.shape, w.shape
    return sum(w[i, j] * x[i:h - a + 1 + i, j:v - b + 1 + j] for i in range(a) for j in range(b))
window = polyop.operator("meshes::window(Tensor x, Tensor w) -> Tensor", windows, dims="h w, a b -> h-a+1 w-b+1",
                         halo={"h": (0, "a-1"), "w": (0, "b-1")})
"""


@pytest.mark.slow(1)
@pytest.mark.parametrize("name", NAMES)
def test_every_pair_of_placements_of_inputs(name):
    """`make sweep` tries all combinations."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(TABLE), name],
        capture_output=True, text=True, check=False, timeout=900, env={**os.environ, "JAX_PLATFORMS": "cpu", **EIGHT},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(int(count) > 1 for count in done.stdout.split())


def test_what_a_matrix_product_moves(process):
    process(DEFINE + """
x, w = draw(8, 16), draw(16, 8)  # 512 bytes each; their product has 256
cases = [  # how x and w are split, and the result; what a device receives; what a call gets
    (("a",), (), ("a",), {}, ((4, 16), (16, 8))),
    (("a",), (None, "b"), ("a", "b"), {}, ((4, 16), (16, 2))),
    ((("a", "b"),), (), (("a", "b"),), {}, ((1, 16), (16, 8))),
    ((("b", "a"),), (), (("b", "a"),), {}, ((1, 16), (16, 8))),
    (("a", "b"), ("b",), ("a",), {"all-reduce": 2 * 128 * 3 // 4}, ((4, 4), (4, 8))),
    (("a", "b"), ("b",), ("a", "b"), {"reduce-scatter": 128 * 3 // 4}, ((4, 4), (4, 8))),
    (("a", "b"), ("b",), (("a", "b"),), {"reduce-scatter": 128 * 3 // 4}, ((4, 4), (4, 8))),
    ((None, "b"), ("b", "a"), (None, "a"), {"all-reduce": 2 * 128 * 3 // 4}, ((8, 4), (4, 4))),
]
for x_spec, w_spec, spec, moved, shapes in cases:
    seen, out = run(linear, put(x, *x_spec), put(w, *w_spec), expected=x @ w, out=spec)
    assert seen == moved, (x_spec, w_spec, seen)
    assert set(calls) == {shapes}, (x_spec, w_spec, calls)
# where two mesh axes change, XLA would gather the whole of w (512 * 7 / 8 bytes) and cut it
seen, _ = run(linear, put(x), put(w, ("a", "b")), expected=x @ w, out=(None, "b"))
assert sum(seen.values()) <= 64 * 3 // 4 + 64, seen  # an all-to-all of a slice along b, then an all-gather along a
# the gradient of a weight is a sum over the rows, of which each device has some
gradient = lambda x, w: jax.grad(lambda w: linear(x, w).sum())(w)
seen, _ = run(gradient, put(x, "a"), put(w), expected=x.T @ np.ones((8, 8)))
assert seen == {"all-reduce": 2 * 512 // 2}, seen
""", **EIGHT)  # fmt: skip


def test_only_edges_are_exchanged(process):
    process(DEFINE + """
x = draw(16)
for axes, shapes in [("a", {(9,)}), ("b", {(5,), (6,)}), (("a", "b"), {(3,), (4,)}), (("b", "a"), {(3,), (4,)})]:
    moved, spec = run(stencil, put(x, axes), expected=neighbours(x))
    assert moved == {"collective-permute": 4 if axes == "a" else 2 * 4}, (axes, moved)  # one of two has one neighbour
    assert set(calls) == shapes and spec == P(axes), (axes, calls, spec)
image, w = draw(16, 16), draw(3, 2)
around = np.pad(image, ((0, 2), (0, 1)))  # an output of the size of the input, whose devices have equal chunks
def same_size(x, w):
    x = np.pad(x, ((0, 2), (0, 1)))
    return windows(x, w)
forward = polyop.operator("meshes::same(Tensor x, Tensor w) -> Tensor", same_size, dims="h w, a b -> h w",
                          halo={"h": (0, "a-1"), "w": (0, "b-1")})
for spec, moved in [(("a",), 2 * 16 * 4), ((None, "b"), 16 * 4), (("a", "b"), 2 * 4 * 4 + 10 * 4), (("b", "a"), 2 * 8 * 4 + 6 * 4)]:
    seen, out = run(forward, put(image, *spec), put(w), expected=same_size(image, w), out=spec)
    assert seen == {"collective-permute": moved}, (spec, seen)
""", **EIGHT)  # fmt: skip


@pytest.mark.slow
def test_windows_of_every_size(process):
    process(DEFINE + """
for (h, v), sizes in itertools.product([(16, 16), (8, 24)], [(3, 2), (2, 6), (1, 1), (8, 5), (5, 8)]):
    image, w = draw(h, v), draw(*sizes)
    for spec in [("a",), ("b",), ("a", "b"), ("b", "a"), (None, "b"), (("a", "b"),), (None, ("b", "a"))]:
        if any(size % {"a": 2, "b": 4}.get(axes, 8) for size, axes in zip((h, v), spec) if axes):
            continue
        run(window, put(image, *spec), put(w), expected=windows(image, w))
# halos wider than a shard come from several devices; one as wide as the dimension too
x = draw(16)
for before, after in [(3, 0), (0, 3), (5, 2), (15, 15), (16, 0)]:
    def near(x, before=before, after=after):
        around = np.pad(x, (before, after))
        return np.stack([around[i:i + before + after + 1].sum() for i in range(len(x))])
    op = polyop.operator(f"meshes::near_{before}_{after}(Tensor x) -> Tensor", near, dims="n -> n", halo={"n": (before, after)})
    for axes in ["a", "b", ("a", "b")]:
        moved, _ = run(op, put(x, axes), expected=near(x))
        if (before, after) == (5, 2) and axes == "b":
            assert moved == {"collective-permute": 7 * 4}, moved
# differences that are added: slices with their halo
def total(x):
    return np.abs(np.diff(x)).sum(keepdims=True)
steps = polyop.operator("meshes::steps(Tensor x) -> Tensor", total, dims="n -> 1", sum="n", halo={"n": (0, 1)})
for axes in ["a", "b", ("b", "a")]:
    moved, _ = run(steps, put(x, axes), expected=total(x))
    assert set(moved) == {"collective-permute", "all-reduce"}, moved
""", **EIGHT)  # fmt: skip


@pytest.mark.slow
def test_reductions(process):
    process(DEFINE + """
both = polyop.operator("meshes::both(Tensor x) -> (Tensor, Tensor)", lambda x: (x.sum(0, dtype=x.dtype), 2 * x),
                       dims="m n -> n, m n", parallel="n", sum="m")
largest = polyop.operator("meshes::largest(Tensor x) -> Tensor", lambda x: x.max(0), dims="m n -> n", parallel="n", max="m")
smallest = polyop.operator("meshes::smallest(Tensor x) -> Tensor", lambda x: x.min(0), dims="m n -> n", parallel="n", min="m")
for dtype in (np.float32, np.float16, np.int32, np.uint8, bool):
    x = (draw(8, 4) * 100).astype(dtype) if dtype is not bool else draw(8, 4) > 1
    for spec in [("a",), ("b",), (("a", "b"),), ("a", "b"), ("b", "a")]:
        run(largest, put(x, *spec), expected=x.max(0))
        run(smallest, put(x, *spec), expected=x.min(0))
        if dtype is not bool and dtype is not np.uint8:
            run(lambda x: both(x)[0], put(x, *spec), expected=x.sum(0, dtype=dtype))
            run(lambda x: both(x)[1], put(x, *spec), expected=2 * x)
""", **EIGHT)  # fmt: skip


@pytest.mark.slow
def test_slices_that_know_their_place(process):
    process(DEFINE + """
from loop_samples import sliced
x = draw(16)
for function in (sliced.mean, sliced.positions, sliced.neighbours_summed, sliced.every_second):
    op = polyop.operator(f"meshes::{function.__name__}(Tensor x) -> Tensor", polyop.kernel(function))
    for axes in ["a", "b"]:
        moved, _ = run(op, put(x, axes), expected=op(x))
        assert "all-gather" not in moved, (function.__name__, moved)
        grown = jax.jit(jax.grad(lambda x: (op(x) ** 2).sum()))(put(x, axes))
        np.testing.assert_allclose(grown, jax.grad(lambda x: (op(x) ** 2).sum())(jnp.asarray(x)), rtol=2e-5)
""", warnings="ignore", **EIGHT)  # fmt: skip


PARTLY_MANUAL = (
    DEFINE
    + """
def local(f, manual, *specs, out):
    return jax.shard_map(f, mesh=mesh, in_specs=specs, out_specs=out, axis_names={*manual})
"""
)


@pytest.mark.slow
def test_one_axis_that_a_shard_map_leaves_to_xla(process):
    """Sums, halos and slices that know their place, along it; the gradients too."""
    process(PARTLY_MANUAL + """
from loop_samples import sliced
positions = polyop.operator("meshes::positions(Tensor x) -> Tensor", polyop.kernel(sliced.positions))
x, w = draw(8, 16), draw(16, 8)
for shape, names in [((2, 4), ("a", "b")), ((4, 2), ("b", "a")), ((2, 2, 2), ("c", "b", "a"))]:
    mesh = jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(shape))
    manual = {*names} - {"b"}
    product = local(linear, manual, P("a"), P(), out=P("a"))
    pulled = jax.grad(lambda x, w: (product(x, w) ** 2).sum(), (0, 1))
    grads = jax.grad(lambda x, w: ((x @ w) ** 2).sum(), (0, 1))(x, w)
    for left, right in itertools.product([("a",), ("a", "b"), (("a", "b"),), (("b", "a"),)], [(), ("b",), (None, "b")]):
        moved, _ = run(product, put(x, *left), put(w, *right), expected=x @ w)
        if left == ("a", "b"):
            assert ("all-gather" in moved) == (right == (None, "b")), moved
        for one, other in zip(jax.jit(pulled)(put(x, *left), put(w, *right)), grads):
            np.testing.assert_allclose(one, other, rtol=2e-5)
    y = draw(32)
    for f in (stencil, positions):
        in_two = jnp.concatenate([f(half) for half in jnp.split(jnp.asarray(y), mesh.shape["a"])])
        for spec in ["a", ("a", "b"), "b"]:
            moved, _ = run(local(f, manual, P("a"), out=P("a")), put(y, spec), expected=in_two)
            assert spec == "b" or "all-gather" not in moved, (spec, moved)
""", **EIGHT)  # fmt: skip


def test_several_axes_that_a_shard_map_leaves_to_xla(process):
    """An error, where the tensors are not split alike."""
    process(PARTLY_MANUAL + """
mesh = jax.make_mesh((2, 2, 2), ("b", "a", "c"), axis_types=(AxisType.Auto,) * 3)
x, w = draw(8, 16), draw(16, 8)
product = local(linear, "a", P("a"), P(), out=P("a"))
run(product, put(x, "a"), put(w), expected=x @ w)
try:
    jax.jit(product)(put(x, "a", "b"), put(w, "b"))
except jax.errors.JaxRuntimeError as problem:
    assert "meshes::linear: argument x is sharded" in str(problem), problem
else:
    raise AssertionError
""", **EIGHT)  # fmt: skip


@pytest.mark.slow
def test_a_gather_for_lack_of_a_way_to_split_is_warned_of_once(process):
    assert process("""
import warnings
import jax, numpy as np, polyop
from jax.sharding import NamedSharding, PartitionSpec as P, AxisType
from loop_samples import sliced
assert jax.device_count() == 32
mesh = jax.make_mesh((32,), ("a",), axis_types=(AxisType.Auto,))
op = polyop.operator("meshes::positions(Tensor x) -> Tensor", polyop.kernel(sliced.positions))
x = np.ones(64, np.float32)
for _ in range(2):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        y = jax.jit(lambda x: op(x) + 0)(jax.device_put(x, NamedSharding(mesh, P("a"))))
        np.testing.assert_array_equal(y, np.arange(64))
    print(*(str(one.message) for one in seen if issubclass(one.category, polyop.FallbackWarning)), sep="\\n")
print("end")
""", **EIGHT | {"XLA_FLAGS": "--xla_force_host_platform_device_count=32"}) == (
        "meshes::positions: each device gathers the whole of sharded operands: it cannot be split on this mesh; "
        "polyop explain says why\n\nend\n"
    )  # fmt: skip


@pytest.mark.slow
def test_transforms_of_split_calls(process):
    process(DEFINE + """
x, w = draw(4, 8, 16), jnp.asarray(draw(16, 8))
for spec in [("a",), ("a", "b"), (None, None, "b"), ("b", None, "a")]:
    moved, _ = run(jax.vmap(linear, (0, None)), put(x, *spec), put(w), expected=x @ w)
    assert "all-gather" not in moved or "b" in spec, (spec, moved)
    value, tangent = jax.jit(lambda x: jax.jvp(lambda x: jax.vmap(linear, (0, None))(x, w), (x,), (x,)))(put(x, *spec))
    np.testing.assert_allclose(tangent, x @ w, rtol=2e-5)
local = jax.shard_map(linear, mesh=mesh, in_specs=(P("a"), P()), out_specs=P("a"))
assert run(local, put(x[0], "a"), put(w), expected=x[0] @ w)[0] == {}
# in a loop, and behind values that only the compiler sees: six rows over four devices are not equal chunks
run(lambda x: linear(jnp.concatenate([x, x])[:6], w), put(x[0], "b"), expected=x[0][:6] @ w)
run(lambda x: stencil(jnp.concatenate([x, x])[:14]), put(draw(8), "b"), expected=neighbours(np.concatenate([draw(8)] * 2)[:14]))
looped = jax.jit(lambda x: jax.lax.scan(lambda c, _: (stencil(c), None), x, None, length=2)[0])
np.testing.assert_allclose(looped(put(draw(16), "b")), neighbours(neighbours(draw(16))), rtol=2e-5)
""", **EIGHT)  # fmt: skip


@pytest.mark.slow
def test_loops_and_their_gradients_on_an_explicit_mesh(process):
    process(DEFINE + """
from twelve_operators import twelve_operators
samples = {sample.name: sample for sample in twelve_operators()}
cases = [  # operator, how its inputs are split, the types of its gradients, what a device receives
    ("matmul", [("a",), (None, "b")], [P("a", None), P(None, "b")], {"all-reduce": 2 * 256 * 3 // 4 + 2 * 128 // 2}),
    ("norm", [("a",), ()], [P("a", None), P(None)], {"all-reduce": 2 * 64 // 2}),
    ("stencil", [("b",)], [P("b")], {"collective-permute": 2 * 4 + 4 * 4}),  # the gradient's halo has two on each side
    ("stencil", [(("a", "b"),)], [P(("a", "b"))], {"collective-permute": 2 * 4 + 4 * 4}),
    ("column_sums", [("a", "b")], [P("a", "b")], {"all-reduce": 2 * 16 // 2}),
    ("scale", [("a", "b")], [P("a", "b")], {}),
    ("scan", [(None, "b"), ("b",), ("b",)], [P(None, "b"), P("b"), P("b")], {}),
]
explicit = jax.make_mesh((2, 4), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)
for name, specs, types, moved in cases:
    sample = samples[name]
    gradient = jax.grad(lambda *inputs: sum((o * o).sum() for o in jax.tree.leaves(sample.operator(*inputs))), sample.differentiable)
    expected = gradient(*map(jnp.asarray, sample.inputs))
    with jax.set_mesh(explicit):
        arrays = [jax.device_put(x, NamedSharding(explicit, P(*spec))) for x, spec in zip(sample.inputs, specs)]
        compiled = jax.jit(gradient).lower(*arrays).compile()
        result = compiled(*arrays)
        assert bytes_by_kind(compiled.as_text()) == moved, (name, bytes_by_kind(compiled.as_text()))
        assert [jax.typeof(one).sharding.spec for one in result] == types, (name, result)
    for one, other in zip(result, expected):
        np.testing.assert_allclose(one, other, rtol=3e-5)
""", warnings="ignore", **EIGHT)  # fmt: skip


@pytest.mark.slow
def test_the_partitioner_before_shardy(process):
    process("import jax\njax.config.update('jax_use_shardy_partitioner', False)" + DEFINE + """
x, w, row = draw(8, 16), draw(16, 8), draw(16)
for x_spec, w_spec in itertools.product([("a",), (None, "b"), ("a", "b"), ()], [("b",), (None, "b"), ()]):
    run(linear, put(x, *x_spec), put(w, *w_spec), expected=x @ w)
seen, spec = run(linear, put(x, "a", "b"), put(w, "b"), expected=x @ w)
assert seen == {"all-reduce": 192} and spec == P("a"), (seen, spec)
for axes in ["a", "b", ("b", "a")]:
    moved, spec = run(stencil, put(row, axes), expected=neighbours(row))
    assert moved == {"collective-permute": 4 if axes == "a" else 8}, (axes, moved, spec)
some = jax.shard_map(linear, mesh=mesh, in_specs=(P("a"), P()), out_specs=P("a"), axis_names={"a"})
try:
    jax.jit(some)(put(x, "a"), put(w))
except polyop.PolyopError as problem:
    assert "meshes::linear: is in a jax.shard_map over a part of the mesh's axes" in str(problem), problem
else:
    raise AssertionError
""", warnings="ignore", **EIGHT)  # fmt: skip


@pytest.mark.slow
def test_refused_shards(process):
    printed = process(DEFINE + """
try:
    put(draw(6, 4), "b")
except ValueError as problem:
    print("JAX:", problem)
plain = polyop.operator("meshes::plain(Tensor x, Tensor[] ys) -> Tensor", lambda x, ys: x, infer="x")
jax.jit(plain)(put(draw(8, 4)), [put(draw(8, 4)), put(draw(8, 4), None, "a")])
""", fails=True, **EIGHT)  # fmt: skip
    assert "JAX: Sharding NamedSharding" in printed
    assert "partitioned 4 times, but the dimension size is 6" in printed, printed
    assert (
        "meshes::plain: argument ys[1] is sharded along dimension 1, and nothing says how the operator is split"
    ) in printed
