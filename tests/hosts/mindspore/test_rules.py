"""Gradient rules in graphs: those that MindSpore compiles, those that run on arrays, and the checks."""

import functools
import re

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

import polyop
from polyop.core.errors import GradientError

X, Y = np.array([0.5, -1.25, 2.0], np.float32), np.array([3.0, 4.0, -5.0], np.float32)
_count = iter(range(1000))


def doubled(rule):
    @functools.wraps(rule)
    def inner(x, out, dout):
        return (2 * rule(x, out, dout)[0],)

    return inner


@doubled
def decorated(x, out, dout):
    return (dout * 3,)


@doubled
def decorated_too(x, out, dout):
    return (dout * 5,)


@doubled
@doubled
def decorated_twice(x, out, dout):
    return (dout * 3,)


def of_a_decorated(x, out, dout):
    return (decorated(x, out, dout)[0] * 1,)


def default(x, out, dout, scale=4.0):
    return (dout * scale,)


def keyword(x, out, dout, *, scale=4.0):
    return (dout * scale,)


def scaled(scale, x, out, dout):
    return (dout * scale,)


def cosine(x):
    return np.cos(x)


def of_a_helper(x, out, dout):
    return (cosine(x) * dout,)


class Rules:
    scale = 3.0

    def method(self, x, out, dout):
        return (ops.cos(x) * dout * self.scale,)

    def __call__(self, x, out, dout):
        return (dout * self.scale,)


def operator_with(rule):
    return polyop.operator(
        f"ms_rules::identity_{next(_count)}(Tensor x) -> Tensor", lambda x: x * 1, infer="x", gradient=rule
    )


def derivative(rule, mode):
    op = operator_with(rule)

    @mode
    def call(x):
        return op(x).sum()

    return ms.grad(call)(Tensor(X))


def close(tensor, expected):
    np.testing.assert_allclose(tensor.asnumpy(), np.broadcast_to(expected, tensor.shape), rtol=1e-5)


READ = {
    "wraps": (decorated, 6),
    "default": (default, 4),
    "keyword": (keyword, 4),
    "lambda with a default": (lambda x, out, dout, scale=4.0: (dout * scale,), 4),
    "lambda with a keyword": (lambda x, out, dout, *, scale=4.0: (dout * scale,), 4),
    "method": (Rules().method, 3 * np.cos(X)),
    "object": (Rules(), 3),
    "partial": (functools.partial(scaled, 7.0), 7),
    "partial by name": (functools.partial(default, scale=7.0), 7),
    "partial of a lambda": (functools.partial(lambda scale, x, out, dout: (dout * scale,), 7.0), 7),
}


@pytest.mark.parametrize(("rule", "expected"), READ.values(), ids=READ)
def test_rules_that_are_read(rule, expected, mode):
    close(derivative(rule, mode), expected)


def test_two_decorated_rules_in_one_graph():
    first, second = operator_with(decorated), operator_with(decorated_too)

    @ms.jit
    def call(x):
        return (first(x) + second(x)).sum()

    close(ms.grad(call)(Tensor(X)), 6 + 10)


ON_ARRAYS = {
    "wraps twice": (decorated_twice, 12, "it calls decorated_twice, whose text is not what runs"),
    "decorated helper": (of_a_decorated, 6, "it calls decorated, whose text is not what runs"),
    "helper": (of_a_helper, np.cos(X), "it uses numpy"),
    "partial": (
        functools.partial(lambda k, x, out, dout: (np.cos(x) * dout * k,), 2.0),
        2 * np.cos(X),
        "numpy",
    ),
    "any arguments": (lambda *arguments: (arguments[2] * 3,), 3, "its source text cannot be found"),
}


@pytest.mark.parametrize(("rule", "expected", "why"), ON_ARRAYS.values(), ids=ON_ARRAYS)
def test_rules_that_run_on_arrays(rule, expected, why):
    with pytest.warns(polyop.FallbackWarning, match=f"cannot read the gradient rule: .*{why}"):
        close(derivative(rule, ms.jit), expected)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32"])
def test_a_gradient_has_its_input_s_dtype(dtype, mode):
    result = derivative(lambda x, out, dout: ((dout * 2).astype(getattr(ms, dtype)),), mode)
    assert result.dtype == ms.float32
    close(result, 2)


LISTS = {
    "too long": (
        lambda xs, out, dout: ((dout, dout, dout),),
        "gradient of xs: must be a list of 2 gradients.*3",
    ),
    "no list": (lambda xs, out, dout: (dout,), "gradient of xs: must be a list of 2 gradients"),
    "shape": (lambda xs, out, dout: ((dout, dout.sum()),), r"of xs\[1\]: must have the input's shape \(3,\)"),
    "number": (lambda xs, out, dout: ((dout, 2.0),), r"of xs\[1\]: must be a mindspore.*, but got float"),
}


def listed(rule):
    return polyop.operator(
        f"ms_rules::listed_{next(_count)}(Tensor[] xs) -> Tensor",
        lambda xs: xs[0] + 2 * xs[1],
        infer=lambda xs: xs[0],
        gradient=rule,
    )


@pytest.mark.parametrize(("rule", "message"), LISTS.values(), ids=LISTS)
def test_wrong_gradients_of_a_list(rule, message, mode):
    op = listed(rule)

    @mode
    def call(x, y):
        return op([x, y]).sum()

    with pytest.raises(GradientError, match=re.compile(message, re.DOTALL)):
        ms.grad(call, (0, 1))(Tensor(X), Tensor(Y))


def test_a_gradient_must_be_a_tensor(mode):
    message = r"gradient of x: must be a mindspore\..*Tensor or None, but got "
    with pytest.raises(GradientError, match=message + "float"):
        derivative(lambda x, out, dout: (2.0,), mode)
    with pytest.raises(GradientError, match=message + "(tuple|something else)"):
        derivative(lambda x, out, dout: ((dout, dout),), mode)


def test_absent_gradients_of_a_list(mode):
    one, none = listed(lambda xs, out, dout: ((None, dout * 2),)), listed(lambda xs, out, dout: (None,))

    @mode
    def call(x, y):
        return one([x, y]).sum() + none([x, y]).sum()

    dx, dy = ms.grad(call, (0, 1))(Tensor(X), Tensor(Y))
    close(dx, 0)
    close(dy, 2)


def test_vjp_in_a_function_that_is_differentiated(module):
    square = polyop.operator(
        "ms_rules::square(Tensor x) -> Tensor",
        lambda x: x * x,
        infer="x",
        gradient=lambda x, out, dout: (2 * x * dout,),
    )
    for op in (square, module.square):
        close(ms.grad(lambda x, op=op: op.vjp(x)[0].sum())(Tensor(X)), 2 * X)
    close(ms.grad(lambda x: square.vjp(x)[1](ops.ones_like(x))[0].sum())(Tensor(X)), 2)
    close(ms.grad(lambda x: ms.grad(lambda y: square.vjp(y)[0].sum())(x).sum())(Tensor(X)), 2)
    with pytest.raises(RuntimeError, match="its Backward has no gradient: it runs square_grad"):
        ms.grad(lambda x: module.square.vjp(x)[1](ops.ones_like(x))[0].sum())(Tensor(X))
