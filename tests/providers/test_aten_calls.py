"""PyTorch's operators by name: what a call takes for what, in JAX, NumPy and torch.compile, and what it refuses."""

import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402

from polyop.core.errors import (  # noqa: E402
    ArgumentTypeError,
    ArgumentValueError,
    GradientError,
    HostError,
    InferError,
    PolyopError,
    UnsupportedError,
)
from polyop.providers.aten import aten  # noqa: E402

X = np.array([1.0, 2.0, 3.0], np.float32)
BOTH = [np.asarray, jnp.asarray]


@pytest.fixture(scope="module", autouse=True)
def foreign():
    """Operators that write and return Python values; some have no fake kernel, some give lists."""
    library = torch.library.Library("aten_calls", "DEF")

    def define(schema, function, key="CompositeExplicitAutograd"):
        library.define(schema)
        library.impl(schema.partition("(")[0], function, key)

    define("count_(Tensor(a!) x) -> int", lambda x: (x.add_(1), 3)[1])
    define("scaled_(Tensor(a!) x, Tensor y) -> (Tensor, bool)", lambda x, y: (x * y, bool(x.add_(1).dim())))
    define("parts_(Tensor(a!) x) -> (Tensor[], int)", lambda x: ([x * 2, x.add_(1) * 3], 5))
    define("opaque(Tensor x) -> Tensor", lambda x: x * 2, "CPU")
    define("opaque_(Tensor(a!) x) -> ()", lambda x: (x.add_(1), None)[1], "CPU")
    define("opaque_int_(Tensor(a!) x) -> int", lambda x: (x.add_(1), 7)[1], "CPU")
    define("opaque_list(Tensor x) -> Tensor[]", lambda x: [x * 2, x * 3], "CPU")
    yield
    library._destroy()


def plain(value):
    """Return results with lists in the place of arrays and tuples."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


CALLS = [  # a call of an array, its result
    # what is written comes last
    (lambda x: aten("aten_calls::count_")(x), [3, [2, 3, 4]]),
    (lambda x: aten("aten_calls::scaled_")(x, x), [[1, 4, 9], True, [2, 3, 4]]),
    (lambda x: aten("aten_calls::parts_")(x), [[[2, 4, 6], [6, 9, 12]], 5, [2, 3, 4]]),
    # a number for a tensor, and an array without dimensions for a number
    (lambda x: aten("add")(x, 1), [2, 3, 4]),
    (lambda x: aten("add.Tensor")(x, 1, alpha=2), [3, 4, 5]),
    (lambda x: aten("add.Tensor")(2.5, x), [3.5, 4.5, 5.5]),
    (lambda x: aten("maximum")(x, 2), [2, 2, 3]),
    (lambda x: aten("where.self")(x > 1, x, -1.0), [-1, 2, 3]),
    (lambda x: aten("leaky_relu")(-x, np.array(0.5)), [-0.5, -1, -1.5]),
    (lambda x: aten("narrow")(x, 0, np.array(1), 2), [2, 3]),
    (lambda x: aten("tensor_split.indices")(x, np.array([1])), [[1], [2, 3]]),
]


@pytest.mark.parametrize(("call", "want"), CALLS, ids=range(len(CALLS)))
def test_a_call_in_jax_at_once_and_compiled(call, want):
    x, constants = jnp.asarray(X), []

    def is_traced(item):
        return isinstance(item, (jax.Array, list))

    def traced(x):  # a program returns arrays; the other results are known while it is traced
        results = call(x)
        results = results if isinstance(results, (list, tuple)) else [results]
        constants[:] = [item for item in results if not is_traced(item)]
        return [item for item in results if is_traced(item)]

    assert plain(call(x)) == want
    arrays = plain(jax.jit(traced)(x))
    want = want if isinstance(want[0], list) or constants else [want]
    assert arrays == [item for item in want if isinstance(item, list)]
    assert constants == [item for item in want if not isinstance(item, list)]


NO_FAKE = [  # a call of an array by an operator without a fake kernel, its result
    (lambda x: aten("aten_calls::opaque")(x), [2, 4, 6]),
    (lambda x: aten("aten_calls::opaque_")(x), [[2, 3, 4]]),
    (lambda x: aten("aten_calls::opaque_int_")(x), [7, [2, 3, 4]]),
    (lambda x: aten("aten_calls::opaque_list")(x), [[2, 4, 6], [3, 6, 9]]),
    (lambda x: jax.vmap(aten("aten_calls::opaque"))(x[None]), [[2, 4, 6]]),
]


@pytest.mark.parametrize(("call", "want"), NO_FAKE, ids=range(len(NO_FAKE)))
@pytest.mark.filterwarnings("ignore::UserWarning")  # of PyTorch: no batching rule
def test_operators_without_a_fake_kernel_run_on_data(call, want):
    got = plain(call(jnp.asarray(X)))
    assert got in (want, want[0])


def test_a_program_needs_a_fake_kernel():
    for name in ("opaque", "opaque_int_", "opaque_list"):
        with pytest.raises(InferError, match="without running it"):
            jax.jit(aten(f"aten_calls::{name}"))(jnp.asarray(X))


def test_numpy_takes_numbers_and_writes():
    x = X.copy()
    assert aten("aten_calls::count_")(x) == 3
    assert x.tolist() == [2, 3, 4]
    assert aten("add_.Tensor")(x, 1).tolist() == [3, 4, 5]
    assert aten("mul")(X, 2).dtype == np.float32
    assert aten("mul")(np.array([1, 2]), 0.5).dtype == torch.mul(torch.tensor([1, 2]), 0.5).numpy().dtype
    out, pull = aten("mul").vjp(X, 2)
    assert (out.tolist(), pull(np.ones_like(X))[0].tolist()) == ([2, 4, 6], [2, 2, 2])


# gradients by some of the inputs

PARTLY = ["igamma", "igammac"]


@pytest.mark.parametrize("name", PARTLY)
@pytest.mark.parametrize("compiled", [False, True])
def test_the_gradient_that_pytorch_has_when_only_that_is_wanted(name, compiled):
    op, a = aten(name), jnp.asarray(X)
    wrap = jax.jit if compiled else lambda f: f
    dx = wrap(jax.grad(lambda a, x: op(a, x).sum(), 1))(a, a + 0.5)
    leaf = torch.tensor(X + 0.5, requires_grad=True)
    getattr(torch, name)(torch.tensor(X), leaf).sum().backward()
    np.testing.assert_allclose(dx, leaf.grad.numpy(), rtol=1e-5)
    _, tangent = jax.jvp(lambda x: op(a, x), (a + 0.5,), (jnp.ones_like(a),))
    np.testing.assert_allclose(tangent, leaf.grad.numpy(), rtol=1e-5)
    with pytest.raises(
        (GradientError, jax.errors.JaxRuntimeError), match=f"{name}: input. is not implemented"
    ):
        wrap(jax.grad(lambda a, x: op(a, x).sum()))(a, a + 0.5).block_until_ready()
    with pytest.raises(
        GradientError, match=r"(?s)is not implemented.*ask for the gradient by its other inputs"
    ):
        op.vjp(X, X)[1](X)


def test_gradients_of_lists_and_second_derivatives_are_those_that_are_wanted():
    x = jnp.asarray(X)
    dx = jax.grad(lambda x: (aten("stack")([x, x * x]) ** 2).sum())(x)
    np.testing.assert_allclose(dx, 2 * X + 4 * X**3)
    product = aten("mul")
    second = jax.grad(lambda a: jax.grad(lambda b: (product(a, b) ** 2).sum())(x).sum())(x)
    np.testing.assert_allclose(second, 4 * X * X)


# torch.compile

WHOLE = {  # functions that torch.compile takes as one graph
    "name": lambda x: aten("relu")(x) + 1,
    "object": lambda x: aten(torch.ops.aten.relu.default)(x) + 1,
    "size": lambda x: aten("nonzero")(x, size=4, fill_value=-1),
    "key": lambda x: aten("rand_like")(x, generator=torch.tensor([1, 2])),
    "generated": lambda x: aten("randn")([3], generator=torch.tensor([7])) + x,
    "host": lambda x: aten("arange")(3, host="torch") + x,
    "like": lambda x: aten("arange")(3, like=x) + x,
}
FOUND = {name: aten(name) for name in ("nonzero", "rand_like", "arange", "masked_select")}
WHOLE |= {
    "size of an object": lambda x: FOUND["nonzero"](x, size=2),
    "key of an object": lambda x: FOUND["rand_like"](x, generator=torch.tensor([3])),
    "host of an object": lambda x: FOUND["arange"](3, host="torch") + x,
}


@pytest.mark.parametrize("name", WHOLE)
def test_torch_compile_takes_options_in_one_graph(name):
    x = torch.tensor(X)
    compiled = torch.compile(WHOLE[name], fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), WHOLE[name](x))
    assert torch.equal(compiled(x + 1), WHOLE[name](x + 1))


def test_torch_compile_differentiates_a_padded_call():
    def total(x):
        return (FOUND["masked_select"](x, x > 1, size=3) ** 2).sum()

    x = torch.tensor(X, requires_grad=True)
    torch.compile(total, fullgraph=True, backend="aot_eager")(x).backward()
    assert x.grad.tolist() == [0, 4, 6]


# batch=


def test_a_batch_rule_counts_for_what_is_written_too():
    seen = []

    def rule(dims, inputs):
        seen.append(dims)
        return aten("add_.Tensor")(*inputs[:2]), 0

    add = aten("add_.Tensor", batch=rule)
    assert jax.vmap(add)(jnp.ones((2, 3)), jnp.ones((2, 3))).tolist() == [[2, 2, 2]] * 2
    assert seen


def test_what_returns_what_is_written_is_pickled_as_part_of_its_operator():
    functional = aten("add_.Tensor")._functionals.at((0,))
    assert pickle.loads(pickle.dumps(functional)) is functional


# errors

KEYS = [jnp.ones((3, 4)), jax.random.split(jax.random.key(0), 3), np.array(0.5), np.arange(3), 3, "seed"]
REFUSED = [  # a call, its error, what the error says
    *(
        (
            lambda key=key: aten("randn")([2], generator=key),
            PolyopError,
            "aten::randn: generator: must be a key: one of jax.random.key.0., or an array of one or two integers",
        )
        for key in KEYS
    ),
    (
        lambda: aten("add")(torch.ones(3), jnp.ones(3)),
        HostError,
        "(?s)other is a tensor of jax, and self one of torch",
    ),
    (
        lambda: aten("add")(jnp.ones(3), torch.ones(3)),
        HostError,
        "(?s)is a tensor of torch, .*convert one of them",
    ),
    (
        lambda: aten("add_")(1.0, jnp.ones(())),
        HostError,
        "add_.Tensor: writes self, which must be a tensor of jax, .* got a value of type float",
    ),
    (
        lambda: aten("add_")(1.0, np.ones(())),
        ArgumentTypeError,
        "add_.Tensor: argument self: must be a tensor of numpy .* but got builtins.float",
    ),
    (
        lambda: aten("masked_select")(torch.ones(3), jnp.ones(3) > 0, size=2),
        HostError,
        "mask is a tensor of jax, and self one of torch",
    ),
    (
        lambda: aten("masked_select", batch="elementwise")(X, X > 0, size=2),
        UnsupportedError,
        r'(?s)batch= of its own, which says nothing of a call with size=.*polyop.aten\("aten::masked_select"\)',
    ),
    (
        lambda: aten("rand_like", batch="elementwise")(X, generator=np.array([1])),
        UnsupportedError,
        "says nothing of a call with a key",
    ),
    (
        lambda: jax.jit(lambda x: aten("size.int")(x, 5) * x)(X),
        InferError,
        "aten::size.int: PyTorch raised IndexError: Dimension out of range",
    ),
    (lambda: jax.jit(lambda x: aten("item")(x[0]) * x)(X), InferError, "a Python value that depends on data"),
    (
        lambda: aten("nonzero")(X, fill_value=3),
        ArgumentTypeError,
        "(?s)aten::nonzero: takes fill_value= only beside size=.*pass size= too",
    ),
    *(
        (lambda name=name: aten(name), ArgumentValueError, rf"(?s)aten\('{name}'\).*write aten\('{want}'\)")
        for name, want in (
            ("torch.relu", "relu"),
            ("aten.relu.default", "relu"),
            ("aten.add.Tensor", "add.Tensor"),
            ("torch.ops.aten.relu", "relu"),
            ("torch.nn.functional.relu", "relu"),
            ("aten_calls.opaque.default", "aten_calls::opaque"),
        )
    ),
    (lambda: aten("__contains__.int"), ArgumentValueError, "of this name\n  the nearest names are "),
    (lambda: aten("no.such.thing"), ArgumentValueError, "must be of the form name, name.overload"),
    (lambda: aten("leaky_relu")(X, np.array([0.5, 1])), ArgumentTypeError, "negative_slope: must be Scalar"),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED, ids=range(len(REFUSED)))
def test_errors_name_what_was_given_and_the_way_out(call, kind, message):
    with pytest.raises(PolyopError, match=message) as seen:
        call()
    assert isinstance(seen.value, kind)


@pytest.mark.parametrize(
    "key", [np.array(3), np.array([1, 2], np.uint32), jax.random.key(0)], ids=["0-d", "two", "key"]
)
def test_keys(key):
    first, second = (aten("randn")([4], generator=key) for _ in range(2))
    np.testing.assert_array_equal(first, second)
