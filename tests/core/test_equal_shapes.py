"""Elementwise operators require tensors of one shape, in every host; others would be read out of bounds."""

import json
import pathlib
import re

import numpy as np
import pytest

import polyop
from polyop.call import foreign
from polyop.core.errors import InferError
from polyop.core.spec import Spec

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
SOURCES = pathlib.Path(__file__).parents[1] / "sources"
KERNELS = SOURCES / "kernels.c"
HINT = 'batch="elementwise": all tensors must have one shape'


def differ(left, right, name="b", first="a"):
    """Return a pattern of the names and shapes of two tensors that do not fit, and of the rule."""
    text = f"dimensions ... are {right} in argument {name} and {left} in argument {first}"
    return re.compile(f"{re.escape(text)}(?s:.*){re.escape(HINT)}")


@pytest.fixture(scope="session")
def add():
    return polyop.operator(
        "equal_shapes::add(Tensor a, Tensor b) -> Tensor",
        f"{SOURCES / 'add.cc'}:CustomAdd",
        infer="a",
        gradient=lambda a, b, out, dout: (dout, dout),
        batch="elementwise",
    )


@pytest.fixture(scope="session")
def broadcasting():
    return polyop.operator(
        "equal_shapes::broadcasting(Tensor a, Tensor b) -> Tensor",
        lambda a, b: a + b,
        infer=lambda a, b: polyop.Spec(np.broadcast_shapes(a.shape, b.shape), a.dtype),
        batch="elementwise",
    )


def jax_of():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    return jax, jax.numpy


def in_numpy(op, a, b):
    return op(a, b)


def in_torch(op, a, b):
    return op(torch.tensor(a), torch.tensor(b))


def in_torch_with_gradient(op, a, b):
    return op(torch.tensor(a, requires_grad=True), torch.tensor(b))


def in_torch_ops(op, a, b):
    return getattr(torch.ops.equal_shapes, op.schema.name)(torch.tensor(a), torch.tensor(b))


def in_torch_strided(op, a, b):
    return op(torch.stack([torch.tensor(a)] * 2, -1)[..., 0], torch.tensor(b))


def in_torch_fake(op, a, b):
    with torch._subclasses.FakeTensorMode():
        return op(torch.empty(a.shape), torch.empty(b.shape))


def in_torch_meta(op, a, b):
    return op(torch.empty(a.shape, device="meta"), torch.empty(b.shape, device="meta"))


def compiled(op, a, b, **options):
    torch._dynamo.reset()
    return torch.compile(op, fullgraph=True, backend="aot_eager", **options)(torch.tensor(a), torch.tensor(b))


def in_torch_compile(op, a, b):
    return compiled(op, a, b)


def in_torch_compile_dynamic(op, a, b):
    return compiled(op, a, b, dynamic=True)


def in_torch_vmap(op, a, b):
    return torch.vmap(op, in_dims=(0, None))(torch.tensor(a)[None], torch.tensor(b))


def in_jax(op, a, b):
    return op(*map(jax_of()[1].asarray, (a, b)))


def in_jax_jit(op, a, b):
    jax, jnp = jax_of()
    return jax.jit(op)(jnp.asarray(a), jnp.asarray(b))


def in_jax_vmap(op, a, b):
    jax, jnp = jax_of()
    return jax.vmap(op, (0, None))(jnp.asarray(a)[None], jnp.asarray(b))


CALLS = [value for name, value in sorted(globals().items()) if name.startswith("in_")]
MISFITS = [((2, 3), (1, 3)), ((4, 3), (3,)), ((1, 3), (3,)), ((3,), ()), ((), (1,)), ((2, 3), (3, 2))]


@pytest.mark.slow(5)
@pytest.mark.parametrize(("left", "right"), MISFITS, ids=str)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_other_shapes_are_refused(add, call, left, right):
    a, b = np.ones(left, np.float32), np.ones(right, np.float32)
    with pytest.raises(Exception, match=differ(left, right)) as excinfo:
        call(add, a, b)
    if call in (in_numpy, in_torch, in_torch_ops, in_jax, in_jax_jit, in_torch_vmap, in_jax_vmap):
        assert isinstance(excinfo.value, InferError)
        assert "equal_shapes::add: " in str(excinfo.value)
        assert "give infer= a function of the specs" in str(excinfo.value)


@pytest.mark.slow(5)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3)], ids=str)
def test_equal_shapes_are_accepted(add, call, shape):
    a = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    out = call(add, a, a + 1)
    assert tuple(out.shape) in (shape, (1, *shape))
    if call not in (in_torch_fake, in_torch_meta):
        np.testing.assert_array_equal(
            np.asarray(out.detach() if hasattr(out, "detach") else out).reshape(shape), 2 * a + 1
        )


def test_an_infer_function_decides_which_shapes_fit(broadcasting):
    for call in (in_numpy, in_torch, in_torch_compile, in_jax, in_jax_jit):
        out = call(broadcasting, np.ones((2, 3), np.float32), np.ones((3,), np.float32))
        np.testing.assert_array_equal(np.asarray(out), np.full((2, 3), 2))


def test_a_batch_of_one_input_alone_is_expanded(add):
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)
    np.testing.assert_array_equal(torch.vmap(add, in_dims=(0, None))(torch.tensor(a), torch.tensor(b)), a + b)
    np.testing.assert_array_equal(
        torch.vmap(add, in_dims=(None, 1), out_dims=1)(torch.tensor(b), torch.tensor(a.T)), a.T + b[:, None]
    )
    jax, jnp = jax_of()
    np.testing.assert_array_equal(jax.vmap(add, (0, None))(jnp.asarray(a), jnp.asarray(b)), a + b)
    np.testing.assert_array_equal(jax.vmap(add)(jnp.asarray(a), jnp.asarray(a)), a + a)


@pytest.mark.slow
def test_dynamic_shapes_stay_dynamic(add):
    torch._dynamo.reset()
    program = torch.compile(lambda a, b: add(a, b) * 2, fullgraph=True, backend="aot_eager", dynamic=True)
    counts = pytest.importorskip("torch._dynamo.testing").CompileCounter()
    counted = torch.compile(lambda a, b: add(a, b) * 2, fullgraph=True, backend=counts, dynamic=True)
    for rows in (2, 5, 7):
        a = torch.arange(rows * 3.0).reshape(rows, 3)
        torch.testing.assert_close(program(a, a), a * 4)
        counted(a, a + 1)
    assert counts.frame_count == 1
    with pytest.raises(Exception, match=r"dimensions \.\.\. are \(.*\) in argument b and \(.*\)"):
        program(torch.ones(4, 3), torch.ones(2, 3))


def test_a_program_exported_with_a_dynamic_size(add):
    class Model(torch.nn.Module):
        def forward(self, a, b):
            return add(a, b)

    rows = torch.export.Dim("rows")
    program = torch.export.export(
        Model(), (torch.ones(4, 3), torch.ones(4, 3)), dynamic_shapes=({0: rows}, {0: rows})
    )
    assert program.module()(torch.ones(6, 3), torch.ones(6, 3)).shape == (6, 3)


@pytest.mark.slow
def test_sizes_that_depend_on_data(add):
    """The comparison becomes an assertion of the program, and does not stop the tracer."""
    torch._dynamo.reset()

    def f(x, y):
        return add(x[x > 0], y[y > 0])

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        program = torch.compile(f, fullgraph=True, backend="aot_eager")
        x = torch.tensor([1.0, -1, 2])
        torch.testing.assert_close(program(x, x.flip(0)), torch.tensor([3.0, 3]))
        with pytest.raises(Exception, match=r"dimensions|Runtime assertion failed"):
            program(x, torch.ones(3))


@pytest.mark.parametrize(("left", "right"), MISFITS[:2], ids=str)
def test_calls_without_python_are_refused(add, left, right):
    """XLA, ONNX Runtime and MindSpore's graphs resolve a call here for each new set of sizes."""
    text = foreign.call_text(add, (0, 0))
    row = json.loads(text)
    assert row[0] == "equal_shapes::add"
    number = next(i for i, kind in enumerate(foreign.DTYPES) if kind.name == "float32")
    with pytest.raises(InferError, match=differ(left, right)):
        foreign.resolve(text, [(left, number, 1), (right, number, 1), (left, number, 1)], 2)


KINDS = [  # schema, infer, the shapes of the arguments, the tensors in the error (None: the shapes fit)
    ("(Tensor a, Tensor? b, Tensor c) -> Tensor", "a", [(2,), None, (2,)], None),
    ("(Tensor a, Tensor? b, Tensor c) -> Tensor", "a", [(2,), None, (1,)], ((2,), (1,), "c")),
    ("(Tensor a, Tensor[] xs) -> Tensor", "a", [(2,), [(2,), (2,)]], None),
    ("(Tensor a, Tensor[] xs) -> Tensor", "a", [(2,), [(2,), (3,)]], ((2,), (3,), "xs[1]")),
    ("(Tensor a, Tensor?[] xs) -> Tensor", "a", [(2,), [None, (3,)]], ((2,), (3,), "xs[1]")),
    ("(Tensor(a!) a, Tensor b) -> ()", None, [(4,), (3,)], ((4,), (3,))),
    ("(Tensor(a!) a, Tensor b) -> Tensor(a!)", None, [(4,), (4,)], None),
    ("(Tensor(a!) a, Tensor b) -> ()", lambda a, b: (), [(4,), (3,)], None),
    ("(Tensor? a, Tensor? b) -> ()", None, [None, None], None),
    ("(Tensor a, Tensor b, int n) -> Tensor", "b", [(4,), (3,), 2], ((4,), (3,))),
]


@pytest.mark.parametrize(("schema", "infer", "shapes", "named"), KINDS)
def test_lists_absent_and_written_tensors(schema, infer, shapes, named):
    number = KINDS.index((schema, infer, shapes, named))
    op = polyop.operator(
        f"equal_shapes::kind{number}{schema}", lambda *args: None, infer=infer, batch="elementwise"
    )

    def spec(shape):
        if isinstance(shape, list):
            return tuple(map(spec, shape))
        return Spec(shape, "float32") if isinstance(shape, tuple) else shape

    arguments = [spec(shape) for shape in shapes]
    if named is None:
        op.operator.infer(arguments)
        return
    with pytest.raises(InferError, match=differ(*named)):
        op.operator.infer(arguments)


def test_operators_of_a_library_by_name():
    lib = polyop.Library("equal_shapes_library")
    lib.define("add(Tensor a, Tensor b) -> Tensor")
    lib.impl("add", f"{SOURCES / 'add.cc'}:CustomAdd", device="cpu")
    lib.fake("add", "a")
    op = lib["add"]
    assert op.operator.dims is None  # nothing is promised yet
    lib.batch("add", "elementwise")
    with pytest.raises(InferError, match=differ((2, 3), (1, 3))):
        op(np.ones((2, 3), np.float32), np.ones((1, 3), np.float32))
