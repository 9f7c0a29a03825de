"""``batch="elementwise"`` of an operator whose own function gives the shapes: one call, by one rule for all hosts."""

import numpy as np
import pytest

import polyop
from polyop.call.batching import BatchedCall, answer
from polyop.call.explain import explain
from polyop.core.errors import InferError
from polyop.rules.dims import DimsBatch
from polyop.rules.elementwise import ElementwiseBatch


def broadcast(x, y):
    try:
        return polyop.Spec(np.broadcast_shapes(x.shape, y.shape), x.dtype)
    except ValueError as problem:
        raise InferError("y", str(problem)) from None


ADD = polyop.operator(
    "elementwise_rule::add(Tensor x, Tensor y) -> Tensor",
    lambda x, y: x + y,
    infer=broadcast,
    batch="elementwise",
)
TOTAL = polyop.operator(
    "elementwise_rule::total(Tensor[] xs, Tensor? y=None) -> Tensor",
    lambda xs, y: sum(xs) if y is None else sum(xs) + y,
    infer=lambda xs, y: polyop.Spec(
        np.broadcast_shapes(*(x.shape for x in xs), *([] if y is None else [y.shape])), xs[0].dtype
    ),
    batch="elementwise",
)


def batched(op, in_dims, *inputs):
    """Return the output of the rule, and the shapes of the tensors of its only call."""
    calls = []

    def run(arguments):
        calls.append(arguments)
        return (op(*arguments),)

    outputs, axes = answer(BatchedCall(op.operator, run), in_dims, inputs)
    (call,) = calls
    assert axes == [0]
    return outputs[0], call


@pytest.mark.parametrize(
    ("axes", "shapes", "called"),
    [
        ((0, 0), ((5, 2, 3), (5, 3)), ((5, 2, 3), (5, 1, 3))),
        ((1, None), ((2, 5, 3), (3,)), ((5, 2, 3), (5, 1, 3))),
        ((None, 0), ((), (5, 4)), ((5, 1), (5, 4))),
        ((None, 1), ((3,), (2, 5)), None),
    ],
)
def test_samples_go_in_front_of_tensors_of_one_rank(axes, shapes, called):
    x, y = (np.arange(float(np.prod(shape))).reshape(shape) for shape in shapes)
    if called is None:
        with pytest.raises(InferError, match="shape mismatch"):
            batched(ADD, axes, x, y)
        return
    out, call = batched(ADD, axes, x, y)
    assert tuple(value.shape for value in call) == called
    samples = [
        [value if axis is None else np.take(value, k, axis) for value, axis in zip((x, y), axes, strict=True)]
        for k in range(5)
    ]
    np.testing.assert_array_equal(out, [a + b for a, b in samples])


def test_lists_and_absent_tensors():
    xs = (np.ones((5, 2)), np.arange(3.0)[:, None])
    out, call = batched(TOTAL, ((0, None), None), xs, None)
    assert [value.shape for value in call[0]] == [(5, 1, 2), (5, 3, 1)]
    np.testing.assert_array_equal(out, np.broadcast_to(1 + xs[1], (5, 3, 2)))


def test_who_has_the_rule():
    equal = polyop.operator(
        "elementwise_rule::equal(Tensor x, Tensor y) -> Tensor",
        lambda x, y: x + y,
        infer="x",
        batch="elementwise",
    )
    assert isinstance(ADD.operator.batch, ElementwiseBatch)
    assert isinstance(equal.operator.batch, DimsBatch)
    assert "batching    elementwise\n" in explain(ADD)
