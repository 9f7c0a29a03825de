"""The infer rule of ``dims=``, with numbers and with the symbols of tracers."""

import operator

import pytest

from polyop.core.dims.dims import Dims
from polyop.core.dims.infer import infer_from_dims
from polyop.core.errors import InferError
from polyop.core.parse import parse
from polyop.core.spec import Spec

LINEAR = "ns::f(Tensor x, Tensor w) -> Tensor"


def rule_of(schema, text, infer=None):
    parsed = parse(schema)
    return infer_from_dims(Dims.parse(text, parsed), parsed, infer)


def test_outputs_have_the_dtype_and_the_device_of_the_first_tensor():
    rule = rule_of(LINEAR, "b i, i o -> b o")
    arguments = (Spec((2, 3), "float32", "cuda"), Spec((3, 4), "float64", "cuda"))
    assert rule(arguments) == (Spec((2, 4), "float32", "cuda"),) and rule.repeatable


def test_an_absent_tensor_has_no_dtype():
    rule = rule_of("ns::f(Tensor? w, Tensor[] xs, int k) -> Tensor", "k, ... n* -> n-k")
    assert rule((None, (Spec((2, 9), "int8"), Spec((2, 9), "float32")), 2)) == (Spec((7,), "int8"),)
    rule = rule_of("ns::f(Tensor? w, int k) -> Tensor", "k -> k")
    with pytest.raises(InferError) as caught:
        rule((None, 2))
    assert str(caught.value).startswith(
        "ns::f: dims: the dtype of the output cannot be derived, because w is absent\n  beside dims=, infer="
    )
    rule = rule_of("ns::f(int k) -> Tensor", "-> k")
    with pytest.raises(InferError, match="cannot be derived, because there is no tensor argument"):
        rule((2,))


@pytest.mark.parametrize(
    ("infer", "dtypes"),
    [
        (None, ("float32", "float32")),
        ("w", ("int8", "int8")),
        ("float64", ("float64", "float64")),
        (("x", "int64"), ("float32", "int64")),
        ([None, "w"], ("float32", "int8")),
    ],
)
def test_infer_gives_the_dtypes(infer, dtypes):
    rule = rule_of("ns::f(Tensor x, Tensor w) -> (Tensor, Tensor)", "n, m -> n, m", infer)
    specs = rule((Spec((2,), "float32"), Spec((3,), "int8")))
    assert specs == (Spec((2,), dtypes[0]), Spec((3,), dtypes[1]))


@pytest.mark.parametrize(
    ("infer", "message"),
    [
        (
            lambda x, w: x,
            r"ns::f: infer: must give a dtype or name a tensor argument, one of \['x', 'w'\], but got <",
        ),
        ("q", r"ns::f: infer: must give a dtype or name a tensor argument, one of \['x', 'w'\], but got 'q'"),
        (("x", "w"), r"ns::f: infer: must give 1 dtypes, one per output, but got \('x', 'w'\)"),
    ],
)
def test_shapes_are_not_given_twice(infer, message):
    with pytest.raises(InferError, match=message + "(.|\n)*a function of specs goes without dims="):
        rule_of(LINEAR, "b i, i o -> b o", infer)


def test_an_operator_without_new_outputs_checks_its_shapes():
    rule = rule_of("ns::f(Tensor(a!) y, Tensor x) -> Tensor(a!)", "n, n ->")
    assert rule((Spec((2,), "float32"), Spec((2,), "float32"))) == ()
    with pytest.raises(InferError, match="dimension n is 3 in argument x and 2 in argument y"):
        rule((Spec((2,), "float32"), Spec((3,), "float32")))


def test_an_output_is_within_the_limits():
    rule = rule_of("ns::f(Tensor x, int k) -> Tensor", "n -> n*k")
    with pytest.raises(InferError, match=r"ns::f: dims: an output has at most 2\*\*62 bytes"):
        rule((Spec((2**32,), "float32"), 2**31))


class Symbol:
    """A size without a value: it raises if it is compared, or made an int."""

    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text

    def _with(self, other, sign):
        return Symbol(f"({self}{sign}{other})")

    def __add__(self, other):
        return self._with(other, "+")

    def __sub__(self, other):
        return self._with(other, "-")

    def __mul__(self, other):
        return self._with(other, "*")

    def __floordiv__(self, other):
        return self._with(other, "//")

    def _refuse(self, *_):
        raise AssertionError(f"{self} was specialised")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = __bool__ = __index__ = __int__ = _refuse


def test_symbols_are_compared_by_the_function_of_the_caller_alone():
    dims = Dims.parse("n k, k, 3 -> n-k+1 n*2//k n/2", parse("ns::f(Tensor x, Tensor y, Tensor z) -> Tensor"))
    n, k, other, three = map(Symbol, ("n", "k", "j", "t"))
    compared = []

    def same(left, right):
        compared.append((str(left), str(right)))
        return True

    sizes = dims.match([(n, k), (other,), (three,)], same=same)
    (shape,) = dims.output_shapes(sizes, same=same)
    assert list(map(str, shape)) == ["((n-k)+1)", "((n*2)//k)", "(n//2)"]
    assert compared == [("j", "k"), ("t", "3"), ("((n//2)*2)", "n")]


def in_torch_trace(function, *tensors):
    """Call a function with tensors whose sizes are symbols; return its result and the symbols' conditions."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from torch.fx.experimental.proxy_tensor import make_fx

    results = []

    def traced(*arguments):
        results.append(function(*(argument.shape for argument in arguments)))
        return arguments[0] + 0

    graph = make_fx(traced, tracing_mode="symbolic")(*map(torch.empty, tensors))
    return results[0], graph.shape_env


def test_sizes_stay_symbols_in_torch():
    dims = Dims.parse("... n, k -> ... n-k+1 n//2", parse("ns::f(Tensor x, Tensor w) -> Tensor"))

    def shapes(x, w):
        return dims.output_shapes(dims.match([x, w]))[0]

    shape, env = in_torch_trace(shapes, (5, 9), (3,))
    assert all(type(size).__name__ == "SymInt" for size in shape)
    assert not env.replacements and not env.guards


def test_equal_sizes_become_one_symbol_in_torch():
    dims = Dims.parse("b i, i o -> b o", parse(LINEAR))

    def shapes(x, w):
        return dims.output_shapes(dims.match([x, w]))[0]

    shape, env = in_torch_trace(shapes, (5, 9), (9, 7))
    assert [type(size).__name__ for size in shape] == ["SymInt", "SymInt"]
    assert not any(value.is_number for value in env.replacements.values())
    with pytest.raises(InferError, match="dimension i is 8 in argument w and 9 in argument x"):
        in_torch_trace(shapes, (5, 9), (8, 7))


def test_a_size_that_depends_on_data_is_checked_later_in_torch():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    env = ShapeEnv()
    b, i, j = (env.create_unbacked_symint() for _ in range(3))
    dims = Dims.parse("b i, i o -> b o-1", parse(LINEAR))
    (shape,) = dims.output_shapes(dims.match([(b, i), (j, 4)]))
    assert shape[0] is b and shape[1] == 3
    assert not any(value.is_number for value in env.replacements.values())


def test_jax_symbols():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    from jax import export

    rule = rule_of("ns::f(Tensor x, Tensor w, int k) -> Tensor", "... i, i o -> ... o*k-1 i//2")
    b, i, o = export.symbolic_shape("b, i, o")
    arguments = (Spec((b, i), "float32"), Spec((i, o), "float32"), 2)
    assert rule(arguments)[0].shape == (b, 2 * o - 1, i // 2)
    with pytest.raises(InferError, match="dimension i is o in argument w and i in argument x"):
        rule((arguments[0], Spec((o, o), "float32"), 2))

    def of_shapes(x, w):
        (spec,) = rule((Spec(x.shape, "float32"), Spec(w.shape, "float32"), 2))
        return jax.numpy.ones(spec.shape)

    exported = export.export(jax.jit(of_shapes))(
        jax.ShapeDtypeStruct((b, i), "float32"), jax.ShapeDtypeStruct((i, o), "float32")
    )
    result = exported.call(jax.numpy.ones((3, 4)), jax.numpy.ones((4, 5)))
    assert result.shape == (3, 9, 2) and operator.index(result.ndim) == 3
