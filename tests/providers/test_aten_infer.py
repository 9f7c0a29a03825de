"""``aten(infer=)``: shapes of outputs where PyTorch needs the data to find them."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import polyop
from polyop import Spec, aten
from polyop.core.errors import InferError, UnsupportedError

pytest.importorskip("torch", reason="PyTorch is not installed")

A, B = np.arange(12.0, dtype=np.float32).reshape(4, 3) ** 2, np.ones((4, 2), np.float32)
PROBABILITIES = np.log(np.full((5, 2, 4), 0.25, np.float32))
LENGTHS = np.array([[1, 2], [2, 3]]), np.array([5, 5]), np.array([2, 2])


def solution(self, b, rcond, driver):
    empty = Spec((0,), self.dtype)
    return Spec((self.shape[1], b.shape[1]), self.dtype), empty, Spec((), polyop.dtype("int64")), empty


def loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    return Spec((), log_probs.dtype)


def test_the_hint_names_what_helps():
    for name, arguments in (("linalg_lstsq", (A, B)), ("ctc_loss", (PROBABILITIES, *LENGTHS))):
        operator = aten(name)
        with pytest.raises(InferError, match="PyTorch needs the data") as caught:
            jax.jit(operator)(*map(jnp.asarray, arguments))
        assert f'polyop.aten("{operator.name}", infer=rule)' in str(caught.value)
        assert "size=" not in str(caught.value)
        with pytest.raises(UnsupportedError, match="takes no size=") as caught:
            operator(*map(jnp.asarray, arguments), size=3)
        assert f'polyop.aten("{operator.name}", infer=rule)' in str(caught.value)
    with pytest.raises(InferError, match=r"depend on the data.*\n.*pass size="):
        jax.jit(aten("nonzero"))(jnp.asarray(A))


def test_a_least_squares_solution_in_a_compiled_program():
    solve = aten("linalg_lstsq", infer=solution)
    expected = np.linalg.lstsq(A, B)[0]
    for result in (solve(A, B), solve(jnp.asarray(A), jnp.asarray(B)), jax.jit(solve)(A, B)):
        np.testing.assert_allclose(result[0], expected, rtol=1e-3, atol=1e-5)
    assert aten("linalg_lstsq") is not solve
    assert aten("linalg_lstsq") is aten("linalg_lstsq")


def test_a_loss_with_lengths_as_tensors_and_its_gradient():
    ctc = aten("ctc_loss", infer=loss)
    value, gradient = jax.jit(jax.value_and_grad(ctc))(jnp.asarray(PROBABILITIES), *LENGTHS)
    expected, pull = aten("ctc_loss").vjp(PROBABILITIES, *LENGTHS)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(gradient, pull(np.float32(1))[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("many", [False, True])
def test_shapes_of_an_operator_that_writes_and_is_not_known_without_data(many):
    """A rule gives the new outputs alone; what is written has its own shape."""
    import torch

    result, name = ("(Tensor, Tensor(a!), Tensor)", "take_more") if many else ("Tensor", "take")
    library = torch.library.Library("infer_writes", "FRAGMENT")
    library.define(f"{name}(Tensor(a!) pool, Tensor rows, Tensor(b!) count, int n) -> {result}")

    def take(pool, rows, count, n):
        taken = torch.stack([pool[int(i)].clone() for i in rows[:n]])  # int() reads the data
        pool[: int(rows[0]) + 1] = -1
        count += n
        return (taken, pool, taken + 1) if many else taken

    library.impl(name, take, "CPU")

    def rule(pool, rows, count, n):
        spec = Spec((n, *pool.shape[1:]), pool.dtype)
        return (spec, spec) if many else spec

    pool, rows, count = A, np.array([1, 3, 0], np.int32), np.zeros(1, np.float32)
    left = np.concatenate([np.full((2, 3), -1, np.float32), A[2:]])
    expected = [A[[1, 3]], left, A[[1, 3]] + 1, count + 2] if many else [A[[1, 3]], left, count + 2]
    arguments = [jnp.asarray(x) for x in (pool, rows, count)]
    with pytest.raises(InferError, match="does not know the shapes of its outputs|infer=rule"):
        jax.jit(lambda *x: aten(f"infer_writes::{name}")(*x, 2))(*arguments)
    operator = aten(f"infer_writes::{name}", infer=rule)
    for call in (operator, jax.jit(operator, static_argnums=3)):
        for got, wanted in zip(call(*arguments, 2), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
    taken = operator(*(x.copy() for x in (pool, rows, count)), 2)
    np.testing.assert_array_equal(taken[0] if many else taken, A[[1, 3]])


def test_wrong_rules():
    with pytest.raises(
        InferError, match=r"aten::ctc_loss.Tensor: infer: must name a tensor argument, one of"
    ):
        aten("ctc_loss", infer="other")
    with pytest.raises(InferError, match=r"aten::linalg_lstsq: infer: must return 4 Spec, one per output"):
        jax.jit(aten("linalg_lstsq", infer=lambda self, b, rcond, driver: self))(A, B)


def test_it_is_pickled_with_its_rule():
    again = pickle.loads(pickle.dumps(aten("ctc_loss", infer=loss)))
    np.testing.assert_allclose(
        jax.jit(again)(PROBABILITIES, *LENGTHS), again(PROBABILITIES, *LENGTHS), rtol=1e-6
    )
