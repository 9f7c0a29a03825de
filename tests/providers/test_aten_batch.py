"""``jax.vmap`` of PyTorch's operators: one call of the batch, by the batching rules of ``torch.vmap``."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
jax = pytest.importorskip("jax", reason="JAX is not installed")

import jax.numpy as jnp  # noqa: E402

import polyop  # noqa: E402
from polyop.call.explain import explain  # noqa: E402
from polyop.core.errors import FallbackWarning  # noqa: E402

draw = np.random.default_rng(0)
x, y, square = (draw.uniform(0.5, 1.5, shape).astype(np.float32) for shape in ((3, 4), (4,), (3, 2, 2)))

CASES = {  # operator, its other arguments, the tensors, their batch dimensions
    "one tensor": ("softmax.int", (0,), (x,), (0,)),
    "the last axis": ("softmax.int", (0,), (x.T,), (1,)),
    "one of two": ("mul.Tensor", (), (x, y), (0, None)),
    "matrices": ("mm", (), (square, square[0]), (0, None)),
    "several results": ("var_mean.correction", ([0],), (x,), (0,)),
}


@pytest.fixture(autouse=True)
def no_loops(monkeypatch):
    monkeypatch.setattr("polyop.call.batching._warned", set())  # by tests that ran before
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        yield


def torch_vmap(name, others, tensors, dims):
    operator = polyop.aten(name).torch
    return torch.vmap(lambda *xs: operator(*xs, *others), dims)(*map(torch.tensor, tensors))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("jit", [False, True])
def test_values(case, jit):
    name, others, tensors, dims = CASES[case]
    f = jax.vmap(lambda *xs: polyop.aten(name)(*xs, *others), dims)
    results = (jax.jit(f) if jit else f)(*map(jnp.asarray, tensors))
    expected = torch_vmap(*CASES[case])
    for one, other in zip(jax.tree.leaves(results), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_gradients_of_samples_and_of_the_whole(case):
    name, others, tensors, dims = CASES[case]

    def loss(*xs):
        return sum((out**2).sum() for out in jax.tree.leaves(polyop.aten(name)(*xs, *others)))

    def torch_loss(*xs):
        results = polyop.aten(name).torch(*xs, *others)
        return sum((out**2).sum() for out in (results if isinstance(results, tuple) else (results,)))

    arguments = tuple(range(len(tensors)))
    grads = jax.vmap(jax.grad(loss, arguments), dims)(*tensors)
    expected = torch.vmap(torch.func.grad(torch_loss, arguments), dims)(*map(torch.tensor, tensors))
    for one, other in zip(grads, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    whole = jax.grad(lambda *xs: jax.vmap(loss, dims)(*xs).sum(), arguments)(*tensors)
    leaves = [torch.tensor(tensor, requires_grad=True) for tensor in tensors]
    torch.vmap(torch_loss, dims)(*leaves).sum().backward()
    for one, other in zip(whole, leaves, strict=True):
        np.testing.assert_allclose(one, other.grad, rtol=1e-5, atol=1e-6)


def test_batches_of_batches():
    sine = jax.vmap(jax.vmap(polyop.aten("sin")))
    np.testing.assert_allclose(sine(x), np.sin(x), rtol=1e-6)
    slopes = jax.vmap(jax.vmap(jax.grad(polyop.aten("sin"))))
    np.testing.assert_allclose(slopes(x), np.cos(x), rtol=1e-6)


def test_lists_of_tensors():
    joined = jax.vmap(lambda a, b: polyop.aten("cat")([a, b], 0), (0, None))(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_array_equal(joined, np.concatenate([x, np.broadcast_to(y, x.shape)], 1))


def test_operators_with_a_rule_of_their_package(torch_library):
    outputs = jax.vmap(lambda v: polyop.aten("aten_batch::doubled")(v))(x)
    np.testing.assert_array_equal(outputs, 2 * x)
    assert torch_library == [(3, 4)]  # one call, of the package's rule


@pytest.fixture
def torch_library():
    calls = []

    @torch.library.custom_op("aten_batch::doubled", mutates_args=())
    def doubled(v: torch.Tensor) -> torch.Tensor:
        return 2 * v

    doubled.register_fake(torch.empty_like)

    @doubled.register_vmap
    def rule(info, in_dims, v):
        if not v.is_meta:
            calls.append(tuple(v.shape))
        return 2 * v, in_dims[0]

    return calls


def test_what_pytorch_cannot_batch_runs_once_per_sample():
    operator = polyop.aten("softmax.int")

    def loss(v):
        return (operator(v, 0) ** 2).sum()

    with pytest.warns(FallbackWarning, match="softmax.*: vmap runs one call per sample"):
        hessian = jax.hessian(loss)(jnp.asarray(y))
    expected = torch.func.hessian(lambda v: (torch.softmax(v, 0) ** 2).sum())(torch.tensor(y))
    np.testing.assert_allclose(hessian, expected, rtol=1e-4, atol=1e-6)


def key(sample):
    return polyop.aten("dropout")(sample, 0.5, True, generator=jax.random.key(0))


def gru(sample):
    weights = [np.ones((6, 4)), np.ones((6, 2)), np.ones(6), np.ones(6)]
    arrays = [jnp.asarray(w, np.float32) for w in weights]
    hidden = jnp.zeros((1, 1, 2))
    return polyop.aten("gru.input")(
        sample.reshape(1, 1, 4), hidden, arrays, True, 1, 0.0, False, False, False
    )[0]


LOOPS = {  # functions of a sample that torch.vmap refuses
    "key": key,
    "size": lambda v: polyop.aten("masked_select")(v, v > 1, size=3),
    "mask": lambda v: polyop.aten("index_put")(v, [v > 1], jnp.float32(1)),
    "gru": gru,
}


@pytest.mark.slow(3)
@pytest.mark.parametrize("case", LOOPS)
def test_gradients_of_what_pytorch_cannot_batch(case):
    slope = jax.grad(lambda v: (LOOPS[case](v) ** 2).sum())
    with pytest.warns(FallbackWarning, match="vmap runs one call per sample"):
        rows = jax.vmap(slope)(jnp.asarray(x))
    np.testing.assert_allclose(rows, [slope(row) for row in jnp.asarray(x)], rtol=1e-5)


def test_results_that_pytorch_gives_other_shapes_without_data():
    table, indices = jnp.asarray(x), jnp.array([[0, 2, 1], [1, 1, 0]])
    bags = jax.vmap(lambda i: polyop.aten("embedding_bag")(table, i, jnp.array([0, 2]))[0])(indices)
    expected = [[x[0] + x[2], x[1]], [x[1] + x[1], x[0]]]
    np.testing.assert_allclose(bags, expected, rtol=1e-6)


def test_explain_says_so():
    assert "one call of torch.vmap; where PyTorch has no batching rule, it loops itself" in explain(
        polyop.aten("sin")
    )


def test_random_draws_differ_between_samples():
    kept = jax.vmap(lambda v: polyop.aten("native_dropout")(v, 0.5, True)[1])(jnp.ones((2, 64)))
    assert (kept[0] != kept[1]).any()
