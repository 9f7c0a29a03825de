"""Functions of the array API in Paddle, beside NumPy's: what a gradient rule for every framework calls."""

import numpy as np
import pytest

import polyop

paddle = pytest.importorskip("paddle", reason="not run: paddle is not installed")

A = np.array([[0.5, -0.75, 2.5], [1.0, 3.0, -0.5]])
B = np.array([[1.0, 2.0, -3.0], [0.25, 1.5, 0.5]])

ROWS = {
    **{
        name: lambda xp, a, b, name=name: getattr(xp, name)(a)
        for name in (
            *(
                "abs",
                "ceil",
                "cos",
                "exp",
                "expm1",
                "floor",
                "isfinite",
                "log1p",
                "negative",
                "round",
                "sign",
            ),
            *("sin", "square", "tan", "tanh", "trunc", "all", "any", "max", "mean", "min", "prod", "sum"),
            *("std", "var", "zeros_like", "ones_like", "matrix_transpose", "triu"),
        )
    },
    **{
        f"{name}, keepdims": lambda xp, a, b, name=name: getattr(xp, name)(a, axis=-1, keepdims=True)
        for name in ("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var")
    },
    **{
        name: lambda xp, a, b, name=name: getattr(xp, name)(a, b)
        for name in (
            *("add", "atan2", "divide", "equal", "greater", "greater_equal", "less", "less_equal", "maximum"),
            *("minimum", "multiply", "not_equal", "remainder", "subtract"),
        )
    },
    "sum of axes": lambda xp, a, b: xp.sum(a, axis=(0, 1)),
    "var, correction": lambda xp, a, b: xp.var(a, axis=0, correction=1),
    "where": lambda xp, a, b: xp.where(a > 0, a, b),
    "where, a number": lambda xp, a, b: xp.where(a > 0, a, 0.1),
    "where, a whole number first": lambda xp, a, b: xp.where(a > 0, 0, b),
    "astype": lambda xp, a, b: xp.astype(a > 0, a.dtype) * b,
    "astype, a name": lambda xp, a, b: xp.astype(a, xp.float32),
    "clip": lambda xp, a, b: xp.clip(a, -1.0, 1.0),
    "expand_dims": lambda xp, a, b: xp.squeeze(xp.expand_dims(a, axis=1), axis=1),
    "permute_dims": lambda xp, a, b: xp.permute_dims(a, axes=(1, 0)),
    "moveaxis": lambda xp, a, b: xp.moveaxis(a, 0, -1),
    "broadcast_to": lambda xp, a, b: xp.broadcast_to(a, (2, 2, 3)),
    "concat": lambda xp, a, b: xp.concat([a, b], axis=1),
    "stack": lambda xp, a, b: xp.stack([a, b], axis=-1),
    "flip": lambda xp, a, b: xp.flip(a, axis=-1),
    "repeat": lambda xp, a, b: xp.repeat(a, 2, axis=0),
    "take": lambda xp, a, b: xp.take(a, xp.asarray([2, 0]), axis=1),
    "tensordot": lambda xp, a, b: xp.tensordot(a, b, axes=2),
    "cumulative_sum": lambda xp, a, b: xp.cumulative_sum(a, axis=1),
    "argsort": lambda xp, a, b: xp.argsort(a, axis=-1),
    "logical_not": lambda xp, a, b: xp.logical_not(a > 0),
}


@pytest.mark.parametrize("name", ROWS)
def test_it_is_that_of_the_array_api(name):
    expected = ROWS[name](polyop.array_namespace(A), A, B)
    tensors = [paddle.to_tensor(x) for x in (A, B)]
    value = ROWS[name](polyop.array_namespace(tensors[0]), *tensors).numpy()
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)


def test_kinds_of_dtypes():
    xp = polyop.array_namespace(paddle.ones([1]))
    assert xp.isdtype(xp.float32, "real floating") and not xp.isdtype(xp.int64, "real floating")


@pytest.mark.parametrize("name", ["sum", "var"])
def test_no_axes_are_an_error(name):
    x = paddle.ones([2])
    with pytest.raises(ValueError, match="at least one axis"):
        getattr(polyop.array_namespace(x), name)(x, axis=())


def test_the_first_rule_of_the_readme():
    def rule(x, slope, out, dout):
        return polyop.array_namespace(x).where(x > 0, dout, slope * dout), None

    op = polyop.operator(
        "paddle_namespace::leaky(Tensor x, float slope) -> Tensor",
        lambda x, slope: np.where(x > 0, x, slope * x),
        batch="elementwise",
        gradient=rule,
    )
    x = paddle.to_tensor([-1.0, 2.0], dtype="float64", stop_gradient=False)
    op(x, 0.5).sum().backward()
    assert x.grad.tolist() == [0.5, 1.0]
