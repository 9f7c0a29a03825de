"""Which schemas of PyTorch bind, and results that are no tensors: in NumPy, JAX and PyTorch."""

import collections
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from polyop.core.errors import GradientError, InferError, UnsupportedError  # noqa: E402
from polyop.core.parse import parse  # noqa: E402
from polyop.providers.aten import aten, listing  # noqa: E402
from polyop.providers.aten.schema import signature  # noqa: E402

X = np.linspace(-1.0, 1.5, 6, dtype=np.float32).reshape(2, 3)
ONE = np.ones(1, np.float32)

REFUSED = {  # a type that only PyTorch has: what the reason says
    "Storage": "does not know the type 'Storage'",
    "Stream": "does not know the type 'Stream'",
    "__torch__": "has __torch__.torch.classes.rnn.CellParamsBase, a class of TorchScript",
    "Dict(": "returns Dict",
    "QScheme": "returns QScheme",
}


@pytest.mark.slow
def test_what_does_not_bind_of_pytorchs_registry():
    dispatched = set(torch._C._dispatch_get_all_op_names())
    every = [s for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::")]
    names = {f"{s.name}.{s.overload_name}".rstrip(".") for s in every}
    rows = listing()
    assert {name for name in dispatched if name.startswith("aten::")} <= names
    reasons = collections.Counter()
    for schema, problem in rows:
        if problem:
            expected = [says for kind, says in REFUSED.items() if kind in schema]
            assert expected, (schema, problem)
            assert expected[0] in problem
            reasons[expected[0]] += 1
    print(f"{len(rows) - reasons.total()} of {len(rows)} bind; {dict(reasons)}")
    assert reasons.total() <= 20 or len(rows) > 3110  # another version of PyTorch has other operators
    assert reasons.total() < 0.01 * len(rows)


def test_a_name_with_an_implementation_alone_is_not_listed():
    library = torch.library.Library("undeclared", "IMPL")
    library.impl("f", lambda x: x, "CPU")
    assert "undeclared::f" in torch._C._dispatch_get_all_op_names()
    assert listing("undeclared") == []
    assert "aten::relu(Tensor self) -> Tensor" in dict(listing())
    library._destroy()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "ns::f(Tensor! x, Tensor(a!) y, Tensor! z) -> ()",
            "ns::f(Tensor(b!) x, Tensor(a!) y, Tensor(c!) z) -> ()",
        ),
        ("ns::f(Tensor x, int k=0.0) -> Tensor", "ns::f(Tensor x, int k=0) -> Tensor"),
        ("ns::f(Tensor x) -> Tensor?", "ns::f(Tensor x) -> Tensor"),
        ("ns::f(Tensor x) -> (Tensor, int n)", "ns::f(Tensor x) -> Tensor"),
        ("ns::f(Tensor x) -> (Tensor a, Tensor[] b)", "ns::f(Tensor x) -> Tensor[]"),
        ("ns::f(Tensor x) -> int[]", "ns::f(Tensor x) -> int[]"),
        ("ns::f(Tensor x) -> bool", "ns::f(Tensor x) -> bool"),
        ("ns::f(Tensor x) -> float", "ns::f(Tensor x) -> float"),
        ("ns::f(Tensor x) -> Scalar", "ns::f(Tensor x) -> Scalar"),
    ],
)
def test_schemas_as_pytorch_prints_them(text, expected):
    printed = torch._C.parse_schema(text)
    assert str(signature(printed).schema) == expected


def test_names_that_pytorch_does_not_print():
    kinds = torch._C.parse_schema("ns::f(Tensor x, int[2] k=[1, 2], *, float y=1.0) -> Tensor")

    class Schema:
        arguments = tuple(types.SimpleNamespace(name=name) for name in ("x", "", ""))
        name, overload_name = "ns::f", ""

        def __str__(self):
            return str(kinds).replace(" k=[1, 2]", " ").replace(" y=1.", " ")

    assert str(signature(Schema()).schema) == "ns::f(Tensor x, int[] arg1, *, float arg3) -> Tensor"


def test_a_written_argument_without_a_name_in_polyops_grammar():
    schema = parse("ns::f(Tensor! b, Tensor(a!) y) -> Tensor(a!)")
    assert str(schema) == "ns::f(Tensor(c!) b, Tensor(a!) y) -> Tensor(a!)"
    assert parse(str(schema)) == schema


def test_classes_of_torchscript_are_refused_by_name():
    with pytest.raises(UnsupportedError, match=r"__torch__.torch.classes.rnn.CellParamsBase, a class of"):
        aten("quantized_gru.input")


VALUES = [  # operator, arguments, whether the result depends on data
    ("allclose", (X, X + 1), True),
    ("equal", (X, X.copy()), True),
    ("is_nonzero", (ONE,), True),
    ("item", (ONE,), True),
    ("_choose_qparams_per_tensor", (X,), True),
    ("is_floating_point", (X,), False),
    ("is_same_size", (X, ONE), False),
    ("numel", (X,), False),
    ("size.int", (X, 1), False),
    ("stride.int", (X, 0), False),
    ("sym_size.int", (X, 0), False),
    ("dim", (X,), False),
]


def in_pytorch(name, args):
    return aten(name)(*(torch.tensor(a) if isinstance(a, np.ndarray) else a for a in args))


@pytest.mark.parametrize(("name", "args", "reads"), VALUES, ids=lambda v: v if type(v) is str else "")
def test_values_are_those_of_pytorch(name, args, reads):
    expected = aten(name).torch(*(torch.tensor(a) if isinstance(a, np.ndarray) else a for a in args))
    assert in_pytorch(name, args) == expected
    got = aten(name)(*args)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.slow(4)
@pytest.mark.parametrize(("name", "args", "reads"), VALUES, ids=lambda v: v if type(v) is str else "")
def test_values_in_jax(name, args, reads):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    arrays = [jax.numpy.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    expected = in_pytorch(name, args)
    assert aten(name)(*arrays) == expected
    results = []

    def program(*tensors):
        results.append(aten(name)(*tensors, *arrays[len(tensors) :]))
        return tensors[0]

    tensors = arrays[: sum(isinstance(a, np.ndarray) for a in args)]
    if reads:
        with pytest.raises(InferError, match=f"{name}: returns a Python value that depends on data"):
            jax.jit(program)(*tensors)
    else:
        jax.jit(program)(*tensors)
        assert results == [expected]


def test_dtypes_come_as_names():
    assert aten("result_type.Tensor")(X, X.astype(np.float64)) == "float64"
    assert aten("promote_types")("int8", "float16") == "float16"
    assert aten("can_cast")("float32", "int8") is False


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("name", "rule"),
    [("equal", "Data dependent operator"), ("is_floating_point", "returned non-Tensor"), ("item", "")],
)
def test_torch_compile_of_a_value(name, rule):
    op, x = aten(name), torch.ones(1)
    args = (x, x) if name == "equal" else (x,)
    program = torch.compile(lambda *args: args[0] + op(*args), fullgraph=True, backend="aot_eager")
    if rule:
        with pytest.raises(Exception, match=rule):
            program(*args)
    else:
        assert program(*args).tolist() == [2.0]


MIXED = [
    ("histogramdd", (X, [2, 2, 2])),
    ("histogramdd.TensorList_bins", (X[:, :1], [np.array([-1.0, 0.0, 2.0], np.float32)])),
    (
        "_batch_norm_impl_index",
        (X, ONE.repeat(3), ONE.repeat(3), ONE.repeat(3), ONE.repeat(3), False, 0.1, 1e-5, False),
    ),
]


def parts(value):
    return [item for one in value for item in parts(one)] if isinstance(value, (list, tuple)) else [value]


@pytest.mark.parametrize(("name", "args"), MIXED, ids=lambda v: v if type(v) is str else "")
def test_lists_and_values_beside_tensors(name, args):
    def tensors(value):
        if isinstance(value, (list, tuple)):
            return [tensors(item) for item in value]
        return torch.tensor(value) if isinstance(value, np.ndarray) else value

    expected = aten(name).torch(*tensors(args))
    got = aten(name)(*args)
    assert [type(item) is list for item in got] == [isinstance(item, (list, tuple)) for item in expected]
    for one, other in zip(parts(got), parts(expected), strict=True):
        assert isinstance(one, np.ndarray) == isinstance(other, torch.Tensor)
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_the_gradient_beside_a_value():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    name, args = MIXED[2]
    rest = [jax.numpy.asarray(a) if isinstance(a, np.ndarray) else a for a in args[1:]]
    grad = jax.grad(lambda x: aten(name)(x, *rest)[0].sum())(jax.numpy.asarray(X))
    np.testing.assert_allclose(grad, np.full_like(X, 1 / np.sqrt(1 + 1e-5)), rtol=1e-5)
    with pytest.raises(GradientError, match="aten::numel: returns no tensor"):
        aten("numel").vjp(X)


@pytest.fixture(scope="module")
def bump():
    library = torch.library.Library("aten_values", "DEF")
    library.define("bump(Tensor(a!) x) -> (Tensor, int)")
    library.define("draw(Tensor x) -> (Tensor, float)")
    library.impl("bump", lambda x: (x.add_(1).clone(), int(x[0])), "CPU")
    library.impl("draw", _draw, "CPU")
    yield
    library._destroy()


def _draw(x):
    drawn = torch.rand_like(x)
    return drawn, float(drawn[0])


def test_an_operator_with_tensors_and_values_runs_once(bump):
    x = np.zeros(2, np.float32)
    _, value = aten("aten_values::bump")(x)
    assert (x.tolist(), value) == ([1, 1], 1)
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    for array in (x, jax.numpy.asarray(x)):
        drawn, first = aten("aten_values::draw")(array)
        assert drawn[0] == first


@torch.library.custom_op("written_in_python::increase", mutates_args=("x",))
def increase(x: torch.Tensor, y: torch.Tensor, by: float) -> torch.Tensor:
    x.add_(by)
    return y * by


increase.register_fake(lambda x, y, by: torch.empty_like(y))


def test_an_operator_of_custom_op_that_writes():
    """PyTorch names what it writes (a0!), and so on."""
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    operator = aten("written_in_python::increase")
    x = np.zeros(3, np.float32)
    np.testing.assert_array_equal(operator(x, ONE, 2.0), 2 * ONE)
    np.testing.assert_array_equal(x, 2)
    for call in (operator, jax.jit(operator, static_argnums=2)):
        result, written = call(jax.numpy.zeros(3), jax.numpy.asarray(ONE), 2.0)
        np.testing.assert_array_equal(written, [2, 2, 2])
        np.testing.assert_array_equal(result, 2 * ONE)
