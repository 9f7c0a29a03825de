"""``op.communication``: what it says of calls whose collectives are known by hand, and what always holds."""

# ruff: noqa: F821 - the words of the loop language

import pytest
from hypothesis import given
from hypothesis import strategies as st

import polyop
from measured_operators import norm
from polyop.core.errors import ArgumentTypeError, ArgumentValueError, InferError
from polyop.core.spec import Spec
from polyop.sharding.of_call import sharding_rule
from polyop.sharding.placement import REPLICATE, Partial, Shard
from polyop.sharding.plan import plan

B, I, O, N = 48, 32, 16, 4
FLOAT = 4


def matmul_gradient(x, w, out, dout):
    return dout @ w.T, x.T @ dout


def linear_kernel(x, w):
    return x @ w


linear = polyop.operator(
    "communication::linear(Tensor x, Tensor w) -> Tensor",
    linear_kernel,
    dims="b i, i o -> b o",
    parallel="b o",
    sum="i",
    gradient=matmul_gradient,
)
softmax = polyop.operator(
    "communication::softmax(Tensor x) -> Tensor",
    lambda x: x,
    dims="... n -> ... n",
    parallel="...",
    gradient=lambda x, out, dout: (out * (dout - (out * dout).sum(-1, keepdims=True)),),
)
window = polyop.operator(
    "communication::window(Tensor x, Tensor? w=None, int k=3) -> Tensor",
    lambda x, w, k: x,
    dims="n m, m -> n-k+1 m",
    halo={"n": (0, "k-1")},
)
opaque = polyop.operator("communication::opaque(Tensor x) -> Tensor", lambda x: x, infer="x")
together = polyop.operator(
    "communication::together(Tensor[] xs) -> Tensor", lambda xs: sum(xs), dims="n* -> n", parallel="n"
)


scale_ = polyop.operator(
    "communication::scale_(Tensor(a!) x, Tensor by) -> ()",
    lambda x, by: None,
    dims="m n, n -> ",
    parallel="m n",
)


@polyop.kernel
def smooth(x):
    out = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if i == 0 or i == x.shape[0] - 1:
                out[i, j] = x[i, j]
            else:
                out[i, j] = x[i - 1, j] + x[i + 1, j]
    return out


@polyop.kernel
def add(x, y):
    out = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        out[i] = x[i] + y[i]
    return out


def all_reduce(elements, devices):
    return 2 * elements * FLOAT * (devices - 1) // devices


LINEAR = [(B, I), (I, O)]
CASES = {
    # name: (operator, placements, shapes, forward, backward) on {"data": N}
    "data parallel": (
        linear,
        [("data", None), None],
        LINEAR,
        [],
        [("all-reduce", "gradient of w", all_reduce(I * O, N))],
    ),
    "column parallel": (
        linear,
        [None, (None, "data")],
        LINEAR,
        [],
        [("all-reduce", "gradient of x", all_reduce(B * I, N))],
    ),
    "row parallel": (
        linear,
        [(None, "data"), ("data", None)],
        LINEAR,
        [("all-reduce", "out", all_reduce(B * O, N))],
        [],
    ),
    "replicated": (linear, [None, None], LINEAR, [], []),
    "rows of a softmax": (softmax, [("data",)], [(B, I)], [], []),
    "a softmax along its row": (
        softmax,
        [(None, "data")],
        [(B, I)],
        [("all-to-all", "x", B * I // N * FLOAT * (N - 1) // N)],  # each device gets whole rows
        [("all-to-all", "gradient of x", B * I // N * FLOAT * (N - 1) // N)],
    ),
    "norm, derived": (
        norm,
        [("data", None), None],
        [(B, I), (I,)],
        [],
        [("all-reduce", "gradient of w", all_reduce(I, N))],
    ),
    "stencil": (smooth, [("data",)], [(B, I)], [("permute", "x", 2 * I * FLOAT)], ...),
    "columns of a stencil": (smooth, [(None, "data")], [(B, I)], [], []),
    "shared gradients": (add, [("data",), ("data",)], [(B,), (B,)], [], []),
    "a shared gradient of a split tensor": (
        add,
        [("data",), None],
        [(B,), (B,)],
        [],
        [("all-gather", "gradient of y", B // N * FLOAT * (N - 1))],
    ),
    "a window that begins at each element": (
        window,
        [("data",), None],
        [(B, I), None],
        [("permute", "x", 2 * I * FLOAT)],
        [],
    ),
    "a list": (together, [[("data",), None]], [[(B,), (B,)]], [], []),
    "nothing claimed": (
        opaque,
        [("data",)],
        [(B, I)],
        [("all-gather", "x", B * I // N * FLOAT * (N - 1))],
        [],
    ),
}


def rows(collectives):
    return [(one.kind, one.tensor, one.bytes) for one in collectives]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_collectives_of_known_calls(case):
    operator, placements, shapes, forward, backward = case
    cost = operator.communication({"data": N}, placements=placements, shapes=shapes)
    assert rows(cost.forward) == forward
    if backward is not ...:
        assert rows(cost.backward) == backward
    assert {one.axis for one in (*cost.forward, *cost.backward)} <= {"data"}
    assert cost.bytes == sum(one.bytes for one in (*cost.forward, *cost.backward))


def test_the_gradient_of_a_stencil_reads_neighbours_of_the_outputs_gradient():
    cost = smooth.communication({"data": N}, placements=[("data",)], shapes=[(B, I)])
    (one,) = cost.backward
    assert (one.kind, one.tensor) == ("permute", "gradient of out")
    assert one.bytes % (I * FLOAT) == 0
    assert one.bytes >= 2 * I * FLOAT


def test_two_axes_split_what_the_others_reduce():
    mesh = {"data": 1024, "model": 8}
    cost = linear.communication(
        mesh, placements=[("data", None), (None, "model")], shapes=[(8192, 64), (64, 80)]
    )
    assert cost.forward == ()
    assert cost.outputs[0].placements == (Shard(0), Shard(1))
    assert [(one.axis, one.kind, one.tensor, one.bytes) for one in cost.backward] == [
        ("model", "all-reduce", "gradient of x", all_reduce(8192 * 64 // 1024, 8)),
        ("data", "all-reduce", "gradient of w", all_reduce(64 * 80 // 8, 1024)),
    ]
    assert cost.memory == FLOAT * (8 * 64 + 64 * 10 + 8 * 10)


def test_a_sum_goes_to_the_layout_that_is_wanted():
    layouts = {"placements": [(None, "data"), ("data", None)], "shapes": LINEAR}
    cost = linear.communication({"data": N}, outputs=[("data", None)], **layouts)
    assert rows(cost.forward) == [("reduce-scatter", "out", B * O * FLOAT * (N - 1) // N)]
    assert rows(cost.backward) == [("all-gather", "gradient of out", B * O // N * FLOAT * (N - 1))]
    assert cost.outputs[0].placements == (Shard(0),)


def test_bytes_follow_the_dtype_and_an_attribute_reaches_the_rule():
    shapes, placements = [(B, I), None], [("data",), None]
    narrow = window.communication({"data": N}, placements=placements, shapes=shapes, dtype="float16", k=6)
    # 43 elements of the output are cut at 11, 22 and 33, and the input at 12, 24 and 36: 22:33 reads 22:38
    assert rows(narrow.forward) == [("permute", "x", (2 + 2) * I * 2)]
    mixed = linear.communication(
        {"data": N},
        placements=[("data", None), None],
        shapes=[Spec((B, I), "float64"), Spec((I, O), "float64")],
    )
    assert rows(mixed.backward) == [("all-reduce", "gradient of w", 2 * all_reduce(I * O, N))]


def test_a_tensor_that_is_written_stays_where_it_is():
    cost = scale_.communication({"data": N}, placements=[("data",), ("data",)], shapes=[(B, I), (I,)])
    assert rows(cost.forward) == [("all-gather", "by", I // N * FLOAT * (N - 1))]
    assert [(tensor.name, tensor.placements) for tensor in cost.outputs] == [("x", (Shard(0),))]


def test_integers_have_no_gradient():
    cost = linear.communication(
        {"data": N}, placements=[("data", None), None], shapes=LINEAR, dtype=["float32", "int32"]
    )
    assert rows(cost.backward) == []


def test_the_table_names_tensors_layouts_and_collectives():
    text = str(linear.communication({"data": N}, placements=[("data", None), None], shapes=LINEAR))
    lines = [line.split() for line in text.splitlines()]
    assert ["x", "float32[48,", "32]", "[data,", "-]", "1.5", "KiB"] in lines
    assert ["backward", "all-reduce", "data", "gradient", "of", "w", "3.0", "KiB"] in lines
    assert ["forward", "in", "all", "0", "B"] in lines


def test_an_input_that_the_gradient_moves_again():
    cost = norm.communication({"data": N}, placements=[(None, "data"), None], shapes=[(B, I), (I,)])
    moved = ("all-to-all", "x", B * I // N * FLOAT * (N - 1) // N)
    assert rows(cost.forward) == rows(cost.repeated) == [moved]
    whole = norm.communication({"data": N}, placements=[("data",), None], shapes=[(B, I), (I,)])
    assert whole.backward
    assert whole.repeated == ()


def test_it_says_that_there_is_no_gradient_and_that_nothing_is_claimed():
    cost = opaque.communication({"data": N}, placements=[("data",)], shapes=[(B, I)])
    assert len(cost.notes) == 2
    assert all(note in str(cost) for note in cost.notes)
    assert "nothing is claimed" in cost.notes[0]
    assert "no gradient" in cost.notes[1]


WRONG = {
    "an axis that the mesh lacks": (
        {"placements": [("rows", None), None]},
        ArgumentValueError,
        "layout of x: dimension b can be split over the mesh axes data, model, but got 'rows'",
    ),
    "an axis twice": (
        {"placements": [("data", "data"), None]},
        ArgumentValueError,
        "layout of x: the mesh axis 'data' may split one dimension, but got b and i",
    ),
    "too many entries": (
        {"placements": [("data", None, None), None]},
        ArgumentValueError,
        r"layout of x: the layout may have 2 entries, one for each dimension \(b, i\)",
    ),
    "too few layouts": (
        {"placements": [("data", None)]},
        ArgumentValueError,
        r"placements must be a tuple or list of 2, one for each tensor \(x, w\), but got 1",
    ),
    "too few shapes": ({"shapes": [(B, I)]}, ArgumentValueError, "shapes must be a tuple or list of 2"),
    "too few dtypes": ({"dtype": ["float32"]}, ArgumentValueError, "dtype must be a tuple or list of 2"),
    "a layout that is a text": (
        {"placements": ["data", None]},
        ArgumentTypeError,
        "layout of x: must have an entry for each dimension",
    ),
    "an entry that is a number": (
        {"placements": [(0, None), None]},
        ArgumentTypeError,
        "layout of x: an entry of the layout must be a mesh axis, a tuple of them, or None, but got 0",
    ),
    "placements for one axis": (
        {"placements": [[Shard(0)], None]},
        ArgumentValueError,
        r"needs 2 placements, one for each mesh axis \(data, model\), but got 1",
    ),
    "a dimension that the tensor lacks": (
        {"placements": [[Shard(2), REPLICATE], None]},
        ArgumentValueError,
        "layout of x: has 2 dimensions",
    ),
    "a partial mean": (
        {"placements": [[Partial("avg"), REPLICATE], None]},
        ArgumentTypeError,
        "Partial with one of sum, max, min",
    ),
    "a shape of text": (
        {"shapes": [("b", "i"), (I, O)]},
        ArgumentTypeError,
        "shape of x: must be a tuple of sizes",
    ),
    "sizes that do not fit": ({"shapes": [(B, I), (I + 1, O)]}, InferError, "i"),
    "an unknown attribute": ({"slope": 1.0}, ArgumentTypeError, "has no argument 'slope'"),
    "a tensor as an attribute": ({"x": (B, I)}, ArgumentTypeError, "x is a tensor"),
    "layouts of outputs": (
        {"outputs": []},
        ArgumentValueError,
        r"outputs must have 1 layouts \(out\), but got 0",
    ),
    "no mesh": ({"mesh": 4}, ArgumentTypeError, "mesh: must be sizes by name"),
    "a mesh of nothing": (
        {"mesh": {"data": 0}},
        ArgumentValueError,
        "'data' must have 1 device or more, but got 0",
    ),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_named(case):
    changed, error, words = case
    options = {"placements": [("data", None), None], "shapes": LINEAR, **changed}
    mesh = options.pop("mesh", {"data": 2, "model": 2})
    with pytest.raises(error, match=words):
        linear.communication(mesh, **options)


def layouts(rank):
    """Return layouts of a tensor on the mesh axes a and b."""
    axis = st.one_of(st.just(REPLICATE), st.integers(0, rank - 1).map(Shard))
    return st.tuples(axis, axis)


SIZES = st.integers(1, 70)


@given(layouts(2), layouts(2))
def test_each_sum_that_a_plan_leaves_is_combined(x, w):
    cost = linear.communication({"a": 2, "b": 2}, placements=[x, w], shapes=LINEAR)
    rule = sharding_rule(linear.operator, [tensor.spec for tensor in cost.inputs])
    (left,) = plan(rule, (2, 2), (x, w)).outputs
    sums = [axis for axis, placement in zip("ab", left, strict=True) if isinstance(placement, Partial)]
    assert [(one.kind, one.axis) for one in cost.forward if one.tensor == "out"] == [
        ("all-reduce", axis) for axis in sums
    ]


@pytest.mark.slow
@given(st.integers(1, 9), st.integers(1, 9), SIZES, SIZES, SIZES, layouts(2), layouts(2))
def test_bytes_of_any_layout(first, second, b, i, o, x, w):
    mesh, shapes = {"a": first, "b": second}, [(b, i), (i, o)]
    cost = linear.communication(mesh, placements=[x, w], shapes=shapes)
    assert all(one.bytes >= 0 for one in (*cost.forward, *cost.backward))
    assert all(mesh[one.axis] > 1 for one in (*cost.forward, *cost.backward))
    gathered = linear.communication(mesh, placements=[None, None], shapes=shapes)
    assert gathered.bytes == 0
    whole = FLOAT * (b * i + i * o)
    padded = first * second * (first + b) * (second + i + o)  # uneven parts are rounded up
    assert sum(one.bytes for one in cost.forward if one.kind == "all-gather") <= whole + FLOAT * padded


@pytest.mark.slow
@given(st.integers(1, 4), st.integers(1, 4), SIZES, SIZES, SIZES, layouts(2), layouts(2))
def test_bytes_are_proportional_to_the_size_of_an_element(first, second, b, i, o, x, w):
    even = (first * second) ** 2  # nothing is rounded
    shapes = [(b * even, i * even), (i * even, o * even)]
    narrow, wide = (
        linear.communication({"a": first, "b": second}, placements=[x, w], shapes=shapes, dtype=kind)
        for kind in ("float32", "float64")
    )
    assert wide.bytes == 2 * narrow.bytes
    assert wide.memory == 2 * narrow.memory


@given(st.integers(2, 64), SIZES, layouts(2))
def test_a_device_receives_no_more_than_a_gather_of_everything(count, size, placements):
    cost = softmax.communication(
        {"a": count, "b": 2}, placements=[placements], shapes=[(8 * size, 128 * size)]
    )
    everything = 2 * FLOAT * 8 * size * 128 * size * 2
    assert sum(one.bytes for one in cost.forward) <= everything


@pytest.mark.parametrize("devices", [2, 4, 8, 1024])
def test_meshes_of_frameworks(devices):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    mesh = jax.sharding.AbstractMesh((devices,), ("data",))
    spec = jax.sharding.PartitionSpec("data", None)
    own = linear.communication({"data": devices}, placements=[("data", None), None], shapes=LINEAR)
    for layout in (spec, jax.sharding.NamedSharding(mesh, spec)):
        theirs = linear.communication(mesh, placements=[layout, jax.sharding.PartitionSpec()], shapes=LINEAR)
        assert theirs == own


def test_placements_of_pytorch():
    tensor = pytest.importorskip("torch.distributed.tensor", reason="PyTorch is not installed")
    replicate = tensor.Replicate()
    placements = [[replicate, tensor.Shard(-1)], [replicate, tensor.Shard(0)]]
    mesh = {"data": 2, "model": N}
    theirs = linear.communication(mesh, placements=placements, shapes=LINEAR)
    assert theirs == linear.communication(mesh, placements=[(None, "model"), ("model", None)], shapes=LINEAR)
    partial = linear.communication(mesh, placements=[[tensor.Partial(), replicate], None], shapes=LINEAR)
    assert [one.kind for one in partial.forward] == ["reduce-scatter"]  # half of an all-reduce
