"""What a batch rule answers, and what one elementwise call on a whole batch gives, on both hosts that have vmap."""

import itertools

import numpy as np
import pytest

import polyop
from polyop.core.errors import GradientError

X = np.arange(6.0).reshape(2, 3)
COUNT = itertools.count()


def of_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    return jax.vmap, lambda x: jax.numpy.asarray(x, "float32")


def of_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return torch.vmap, lambda x: torch.from_numpy(np.asarray(x, np.float32))


hosts = pytest.mark.parametrize("host", [of_jax, of_torch], ids=["jax", "torch"])


def define(kernel, schema, infer, batch):
    return polyop.operator(f"batching::o{next(COUNT)}{schema}", kernel, infer=infer, batch=batch)


def two(batch):
    return define(lambda x: (x + 1, x * 2), "(Tensor x) -> (Tensor, Tensor)", lambda x: (x, x), batch)


WRONG = [
    # name, what the rule returns for x of shape (2, 3), the message
    ("no pair", lambda x: (x, x, 0), r"batch= must return \(outputs, their batch dimensions\), but got a tuple of 3"),
    ("a tensor", lambda x: x, r"batch= must return \(outputs, their batch dimensions\), but got \w+"),
    ("too few", lambda x: ((x,), (0,)), "batch= must return 2 outputs, but got 1"),
    ("too many", lambda x: ((x, x, x), (0, 0, 0)), "batch= must return 2 outputs, but got 3"),
    ("too few dims", lambda x: ((x, x), (0,)), "batch= must return 2 batch dimensions, one per output, but got 1"),
    ("a number", lambda x: ((x, 1.0), (0, 0)), "output 1: batch= must return tensors, but got float"),
    ("a text", lambda x: ((x, x), (0, "0")), "output 1: the batch dimension must be an int, or None, but got str"),
    ("a bool", lambda x: ((x, x), (0, True)), "output 1: the batch dimension must be an int, or None, but got bool"),
    ("far", lambda x: ((x, x), (2, 0)), r"output 0: the batch dimension must be one of the 2 of shape \(2, 3\), but got 2"),
    ("far back", lambda x: ((x, x), (0, -3)), r"output 1: the batch dimension must be one of the 2 of .* got -3"),
    ("size", lambda x: ((x, x), (0, 1)), r"output 1: dimension 1, where batch= says .*, must have size 2, but got shape \(2, 3\)"),
]  # fmt: skip


@hosts
@pytest.mark.parametrize(("answer", "message"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_wrong_answer(host, answer, message):
    vmap, array = host()
    op = two(lambda dims, inputs: answer(inputs[0]))
    with pytest.raises(
        GradientError, match=rf"(?s)batching::o\d+.*{message}.*defined at .*test_batching.py:\d+"
    ):
        vmap(op)(array(X))


@hosts
def test_dimensions_from_the_end_and_none(host):
    vmap, array = host()

    def rule(dims, inputs):
        (x,) = inputs
        first = op(x if dims[0] == 0 else x.T)
        return (first[0].T, first[1][0]), (-1, None)

    op = two(rule)
    outputs = vmap(op)(array(X))
    np.testing.assert_array_equal(outputs[0], X + 1)
    np.testing.assert_array_equal(outputs[1], np.stack([X[0] * 2, X[0] * 2]))  # the same for each sample


@hosts
def test_one_output_needs_no_tuple(host):
    vmap, array = host()
    op = define(lambda x: x + 1, "(Tensor x) -> Tensor", "x", lambda dims, inputs: (op(inputs[0]), dims[0]))
    np.testing.assert_array_equal(vmap(op)(array(X)), X + 1)


@hosts
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (1, 1)], ids=str)
def test_outputs_of_other_ranks(host, axes):
    vmap, array = host()
    op = define(
        lambda x, y: (x + y, y * 2),
        "(Tensor x, Tensor y) -> (Tensor, Tensor)",
        lambda x, y: (x, y),
        "elementwise",
    )
    x, y = np.arange(24.0).reshape(2, 3, 4), np.arange(8.0).reshape(2, 4)
    batched = np.moveaxis(x, 0, axes[0]), y[0] if axes[1] is None else np.moveaxis(y, 0, axes[1])
    outputs = (
        vmap(op, in_dims=axes)(*map(array, batched))
        if host is of_torch
        else vmap(op, axes)(*map(array, batched))
    )
    ys = np.stack([y[0], y[0]]) if axes[1] is None else y
    np.testing.assert_array_equal(outputs[0], x + ys[:, None])
    np.testing.assert_array_equal(outputs[1], ys * 2)


@hosts
def test_an_operator_that_is_not_elementwise(host):
    vmap, array = host()
    op = define(
        lambda x: x.reshape(len(x), -1).sum(1),
        "(Tensor x) -> Tensor",
        lambda x: polyop.Spec(x.shape[:1], x.dtype),
        "elementwise",
    )
    message = (
        r"output 0: batch=\"elementwise\" must give one call on 2 samples the shape \(2, 3\), but got \(2,\)"
    )
    with pytest.raises(GradientError, match=message):
        vmap(op)(array(np.ones((2, 3, 4))))
