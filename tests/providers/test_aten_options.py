"""PyTorch's operators by name with `size=`, `host=`, `like=` and keys; on the data in JAX, and under jit."""

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
    KernelError,
    PolyopError,
    UnsupportedError,
)
from polyop.providers.aten import aten  # noqa: E402

X = np.array([[3.0, 0.0, -1.0], [0.0, 2.0, 3.0]], np.float32)
COUNTS = np.array([1, 0, 2])


@pytest.fixture(scope="module", autouse=True)
def wide():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="session", autouse=True)
def foreign():
    """Operators as packages register them: with a new size, without a fake kernel, with one that is wrong."""

    @torch.library.custom_op("aten_options::nms", mutates_args=())
    def nms(scores: torch.Tensor, least: float) -> torch.Tensor:
        return torch.nonzero(scores > least)[:, 0]

    nms.register_fake(lambda scores, least: _positions(scores))

    @torch.library.custom_op("aten_options::opaque", mutates_args=())
    def opaque(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() * 2)

    @torch.library.custom_op("aten_options::first", mutates_args=())
    def first(x: torch.Tensor) -> torch.Tensor:
        return x[:1].clone()

    first.register_fake(torch.empty_like)
    return nms, opaque, first


def _positions(scores):
    return scores.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


def to_torch(value):
    return torch.tensor(value) if isinstance(value, np.ndarray) else value


# sizes that depend on data

SIZED = [  # name, arguments, keywords, what jnp or the definition says
    ("nonzero", (X,), {"size": 6}, np.array([[0, 0], [0, 2], [1, 1], [1, 2], [0, 0], [0, 0]])),
    ("nonzero", (X,), {"size": 2, "fill_value": -1}, np.array([[0, 0], [0, 2]])),
    ("nonzero", (X,), {"size": 0}, np.zeros((0, 2), int)),
    ("argwhere", (X,), {"size": 5, "fill_value": 7}, np.array([[0, 0], [0, 2], [1, 1], [1, 2], [7, 7]])),
    ("masked_select", (X, X > 0), {"size": 5, "fill_value": 9}, np.array([3, 2, 3, 9, 9], np.float32)),
    ("nonzero_numpy", (X[0],), {"size": 3, "fill_value": 5}, [np.array([0, 2, 5])]),
    (
        "_unique2",
        (X[1], True, True, True),
        {"size": 4, "fill_value": 8},
        (np.array([0, 2, 3, 8], np.float32), np.array([0, 1, 2]), np.array([1, 1, 1, 0])),
    ),
    ("bincount", (COUNTS,), {"size": 5}, np.array([1, 1, 1, 0, 0])),
    ("repeat_interleave.Tensor", (COUNTS,), {"size": 4, "fill_value": -1}, np.array([0, 2, 2, -1])),
    ("aten_options::nms", (X[1], 1.0), {"size": 3, "fill_value": -1}, np.array([1, 2, -1])),
]


@pytest.mark.slow(6)
@pytest.mark.parametrize(("name", "args", "kwargs", "want"), SIZED, ids=lambda x: x if type(x) is str else "")
def test_a_size_gives_the_same_padded_result_everywhere(name, args, kwargs, want):
    op = aten(name)
    arrays = [x for x in args if isinstance(x, np.ndarray)]

    def call(*arrays):
        rest = iter(arrays)
        return op(*(next(rest) if isinstance(x, np.ndarray) else x for x in args), **kwargs)

    results = [
        call(*arrays),
        call(*map(to_torch, arrays)),
        call(*map(jnp.asarray, arrays)),
        jax.jit(call)(*arrays),
    ]
    for result in results:
        seen = result if isinstance(want, (list, tuple)) else [result]
        for x, y in zip(seen, want if isinstance(want, (list, tuple)) else [want], strict=True):
            np.testing.assert_array_equal(np.asarray(x), y)


def test_without_a_size_jax_runs_on_the_data():
    x = jnp.asarray(X)
    assert aten("nonzero")(x).tolist() == np.argwhere(X).tolist()
    assert isinstance(aten("masked_select")(x, x > 0), jax.Array)
    dx = jax.grad(lambda x: (aten("masked_select")(x, x > 0) ** 2).sum())(x)
    np.testing.assert_array_equal(dx, 2 * X * (X > 0))
    np.testing.assert_array_equal(aten("aten_options::opaque")(x), 2 * X)  # no fake kernel
    for name in ("nonzero", "aten_options::nms"):
        args = () if name == "nonzero" else (1.0,)
        message = "(?s)shapes of its outputs depend on the data.*pass size= .and fill_value=.*cut or filled"
        with pytest.raises(InferError, match=message):
            jax.jit(lambda x, name=name, args=args: aten(name)(x, *args))(x[1])


def test_the_gradient_of_a_padded_result_leaves_the_padding_out():
    def total(x):
        return (aten("masked_select")(x, x > 0, size=5, fill_value=4.0) ** 2).sum()

    want = 2 * X * (X > 0)
    np.testing.assert_array_equal(jax.grad(total)(jnp.asarray(X)), want)
    np.testing.assert_array_equal(jax.jit(jax.grad(total))(X), want)
    x = torch.tensor(X, requires_grad=True)
    total(x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), want)
    _, pull = aten("masked_select").vjp(X, X > 0, size=2)  # cut: the third has no gradient
    assert pull(np.ones(2, np.float32))[0].tolist() == [[1, 0, 0], [0, 1, 0]]


def test_vmap_takes_a_size(not_warned_yet):
    with pytest.warns(Warning, match="aten::masked_select with size=: vmap"):
        rows = jax.vmap(lambda x: aten("masked_select")(x, x > 0, size=2))(X)
    assert rows.tolist() == [[3, 0], [2, 3]]


# no tensor among the arguments


def test_the_caller_says_whose_array_is_returned():
    kinds = {"numpy": np.ndarray, "torch": torch.Tensor, "jax": jax.Array}
    for host, kind in kinds.items():
        result = aten("arange")(3, host=host)
        assert isinstance(result, kind)
        assert result.tolist() == [0, 1, 2]
        assert isinstance(aten("eye")(2, like=result), kind)
    assert jax.jit(lambda x: aten("arange")(3, like=x) + x)(jnp.ones(3)).tolist() == [1, 2, 3]
    assert jax.jit(lambda: aten("full")([2], 1.5, host="jax"))().tolist() == [1.5, 1.5]
    compiled = torch.compile(lambda x: aten("arange")(3, host="torch") + x, backend="eager")
    assert compiled(torch.ones(3)).tolist() == [1, 2, 3]


# random numbers

KEYED = [  # name, arguments, a statement about 1000 draws
    ("randn", ([1000],), lambda x: abs(x.mean()) < 0.2 and 0.9 < x.std() < 1.1),
    ("rand", ([1000],), lambda x: 0 <= x.min() < x.max() < 1),
    ("randint", (5, [1000]), lambda x: set(np.unique(x)) == set(range(5))),
    ("bernoulli", (np.full(1000, 0.5, np.float32),), lambda x: 400 < x.sum() < 600),
    ("dropout", (np.ones(1000, np.float32), 0.5, True), lambda x: set(np.unique(x)) == {0, 2}),
    ("rand_like", (np.ones(1000, np.float32),), lambda x: 0 <= x.min() < x.max() < 1),
]


@pytest.mark.slow(4)
@pytest.mark.parametrize(("name", "args", "holds"), KEYED, ids=lambda x: x if type(x) is str else "")
def test_a_key_gives_the_same_numbers_in_every_mode(name, args, holds):
    key, other = jax.random.key(3), jax.random.key(4)
    op = aten(name)
    args = [jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in args]
    state = torch.get_rng_state()
    drawn = np.asarray(op(*args, generator=key))
    assert torch.equal(torch.get_rng_state(), state)  # PyTorch's own numbers go on as before
    assert holds(drawn)
    np.testing.assert_array_equal(jax.jit(lambda key: op(*args, generator=key))(key), drawn)
    np.testing.assert_array_equal(op(*args, generator=jax.random.PRNGKey(3)), drawn)
    assert not np.array_equal(op(*args, generator=other), drawn)
    with pytest.raises(UnsupportedError, match=f"(?s)aten::{name}: draws random numbers, .*jax.random.key"):
        jax.jit(lambda: op(*args, **({} if op.schema.tensor_positions else {"host": "jax"})))()


def test_the_gradient_with_a_key_has_the_draws_of_the_call():
    x = jnp.ones(100)

    def dropped(x, key):
        return aten("dropout")(x, 0.5, True, generator=key).sum()

    for differentiate in (jax.value_and_grad(dropped), jax.jit(jax.value_and_grad(dropped))):
        value, dx = differentiate(x, jax.random.key(1))
        assert dx.sum() == value
        assert 0 < value < 200
    with pytest.raises(GradientError, match="its gradient would draw others"):
        jax.grad(lambda x: aten("dropout")(x, 0.5, True).sum())(x)
    off = jax.jit(jax.grad(lambda x: aten("dropout")(x, 0.5, False).sum()))
    assert off(x).tolist() == [1] * 100


@pytest.mark.slow
def test_keys_are_mapped(not_warned_yet):
    keys = jax.random.split(jax.random.key(0), 3)
    with pytest.warns(Warning, match="aten::randn with a key: vmap"):
        rows = jax.vmap(lambda key: aten("randn")([2], generator=key))(keys)
    for row, key in zip(rows, keys, strict=True):
        np.testing.assert_array_equal(row, aten("randn")([2], generator=key))


# errors

REFUSED = [  # a call, its error, what the error says
    (lambda: aten("abs")(X, size=3), ArgumentTypeError, "takes no size=, because the shapes"),
    (lambda: aten("nonzero")(X, size=-1), ArgumentValueError, "argument size: must be 0 or more, but got -1"),
    (
        lambda: aten("unique_dim_consecutive")(X, 0, size=3),
        UnsupportedError,
        "takes no size=, because PyTorch does not say",
    ),
    (
        lambda: aten("nonzero")(X, size=9, fill_value=1.5),
        ArgumentValueError,
        "argument fill_value: must be a value of int64, but got 1.5",
    ),
    (
        lambda: aten("masked_select")(np.ones(2, np.uint8), np.ones(2, bool), size=9, fill_value=-1),
        ArgumentValueError,
        "must be a value of uint8, but got -1",
    ),
    (lambda: aten.search(3), ArgumentTypeError, "aten.search: takes a word, but got 3"),
    (lambda: aten("arange")(3), HostError, 'its schema has none(.|\n)*pass host="jax"'),
    (lambda: aten("arange")(3, host="tensorflow"), ArgumentValueError, "must be one of numpy, torch, jax"),
    (
        lambda: aten("arange")(3, like=2),
        ArgumentValueError,
        "aten::arange: like: must be an array of numpy, torch, jax or mindspore, but got int",
    ),
    (
        lambda: aten("randn")([2], host="numpy", generator=jax.random.key(0)),
        ArgumentValueError,
        "(?s)must be a key of the framework that host= or like= names, .*jax and numpy.*convert the key first",
    ),
    (
        lambda: aten("randn")([2], like=X, generator=jax.random.key(0)),
        ArgumentValueError,
        "must be a key of the framework",
    ),
    (lambda: aten("arange")(3, host="numpy", like=X), ArgumentTypeError, "takes host= or like=, not both"),
    (lambda: aten("abs")(X, host="jax"), ArgumentTypeError, "has no argument 'host'"),
    (
        lambda: aten("index_select")(jnp.asarray(X), 1, jnp.array([7])),
        KernelError,
        "aten::index_select: PyTorch raised RuntimeError: .*out of .* bounds|out of DATA bounds",
    ),
    (
        lambda: jax.grad(lambda x: aten("linalg_cholesky")(x).sum())(jnp.zeros((2, 2))),
        KernelError,
        "aten::linalg_cholesky: PyTorch raised _LinAlgError: .*not positive-definite",
    ),
    (
        lambda: jax.jit(lambda x: aten("mm")(x, x))(X),
        InferError,
        "aten::mm: PyTorch raised RuntimeError: .*reduction dim",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED, ids=lambda x: x if type(x) is str else "")
def test_errors_name_the_operator_and_the_way_out(call, kind, message):
    with pytest.raises(PolyopError, match=message) as seen:
        call()
    assert isinstance(seen.value, kind)


def test_an_error_while_a_program_runs_has_the_operators_name():
    # the class is JAX's, because its runtime takes texts only
    with pytest.raises(jax.errors.JaxRuntimeError, match="KernelError: aten::index_select: PyTorch raised"):
        jax.jit(lambda x, i: aten("index_select")(x, 1, i))(X, np.array([7])).block_until_ready()


def test_variants_are_pickled_as_part_of_their_operator():
    for variant in (aten("nonzero").padded, aten("randn").keyed):
        assert pickle.loads(pickle.dumps(variant)) is variant


def test_an_output_of_another_shape_than_the_fake_kernel_gives_is_an_error():
    with pytest.raises(Exception, match=r"must be float64\[3\], as the program has it, but got float64\[1\]"):
        jax.jit(aten("aten_options::first"))(jnp.ones(3)).block_until_ready()
