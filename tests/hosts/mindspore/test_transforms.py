"""Forward mode and second derivatives: ``ms.jvp``, ``ms.jacfwd``, ``ms.grad`` of ``ms.grad``; MindSpore derives them
from the gradient rule, so that has to be differentiable itself."""
# ruff: noqa: F821 - the words of the loop language

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor

import polyop

RNG = np.random.default_rng(5)
X, V = RNG.standard_normal(5).astype(np.float32), RNG.standard_normal(5).astype(np.float32)


@polyop.kernel
def scanned(x):
    y = output_tensor(x.shape, x.dtype)
    total = 0.0
    for i in range(x.shape[0]):
        total = total * 0.5 + x[i] * x[i]
        y[i] = total
    return y


CUBE = polyop.operator(
    "ms_transforms::cube(Tensor x, float a=1.0) -> Tensor",
    lambda x, a: (a * x**3).astype(x.dtype),
    infer="x",
    gradient=lambda x, a, out, dout: (3 * a * x * x * dout, None),
)


def scan(x):
    return scanned(x)


def cube(x):
    return CUBE(x, 2.0)


def jacobian_of_scan(x):
    n = len(x)
    return np.array([[2 * x[j] * 0.5 ** (i - j) if j <= i else 0 for j in range(n)] for i in range(n)])


# the function, its Jacobian, the gradient of the sum of its gradient's elements
FUNCTIONS = {
    "a loop kernel": (scan, jacobian_of_scan(X), jacobian_of_scan(np.ones(5)).sum(0)),
    "an author's rule": (cube, np.diag(6 * X**2), 12 * X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_mode(name, mode):
    function, jacobian, _ = FUNCTIONS[name]
    out, tangent = ms.jvp(mode(function), Tensor(X), Tensor(V))
    np.testing.assert_allclose(out.asnumpy(), function(Tensor(X)).asnumpy())
    np.testing.assert_allclose(tangent.asnumpy(), jacobian @ V, rtol=1e-5)
    np.testing.assert_allclose(ms.jacfwd(mode(function))(Tensor(X)).asnumpy(), jacobian, rtol=1e-5)
    np.testing.assert_allclose(ms.jacrev(mode(function))(Tensor(X)).asnumpy(), jacobian, rtol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives(name, mode):
    function, _, second = FUNCTIONS[name]

    def total(x):
        return function(x).sum()

    @mode
    def first(x):
        return ms.grad(total)(x).sum()

    np.testing.assert_allclose(ms.grad(first)(Tensor(X)).asnumpy(), second, rtol=1e-5)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


LABEL = 'a "label" é'
S, E = sigmoid(X), np.exp(X)


def of_sigmoid(ops):
    def call(x):
        return ops.sigmoid(x)

    return call


def of_exp_times(ops):
    def call(x):
        return ops.exp_times(x)

    return call


def of_state(ops):
    def call(x):
        return ops.state(x, 3, [2, 5], LABEL)

    return call


def of_both(ops):
    def call(x):
        return ops.both(x, x * x)[0]

    return call


def of_square(ops):
    def call(x):
        return ops.square(x)

    return call


def of_lost_input(ops):
    def call(x):
        return ops.exp_times(x, False)

    return call


# a function of a C++ module, its first and its second derivative
MODULE = {
    "reads an output": (of_sigmoid, S * (1 - S), S * (1 - S) * (1 - 2 * S)),
    "reads what only Forward has": (of_exp_times, E * (1 + X), E * (2 + X)),
    "has attributes": (of_state, np.full(5, 30), np.zeros(5)),
    "has two outputs": (of_both, 3 * X**2, 6 * X),
}


def derivatives(function):
    def total(x):
        return function(x).sum()

    def first(x):
        return ms.grad(total)(x)

    def first_total(x):
        return ms.grad(total)(x).sum()

    return first, first_total


@pytest.mark.parametrize("name", MODULE)
def test_second_derivatives_of_a_module(name, module, mode):
    of, first_derivative, second_derivative = MODULE[name]
    first, first_total = derivatives(of(module))
    np.testing.assert_allclose(mode(first)(Tensor(X)).asnumpy(), first_derivative, rtol=1e-5)
    second = ms.grad(mode(first_total))(Tensor(X))
    np.testing.assert_allclose(second.asnumpy(), second_derivative, rtol=1e-5, atol=1e-6)


def test_forward_mode_of_a_module(module, mode):
    _, tangent = ms.jvp(mode(of_sigmoid(module)), Tensor(X), Tensor(V))
    np.testing.assert_allclose(tangent.asnumpy(), S * (1 - S) * V, rtol=1e-5)


def test_a_backward_of_its_own_loops_has_no_derivative(module, mode):
    _, first_total = derivatives(of_square(module))
    mode(first_total)(Tensor(X))
    with pytest.raises(RuntimeError, match="its Backward has no gradient: it runs square_grad, a kernel"):
        ms.grad(mode(first_total))(Tensor(X))


def test_an_input_that_forward_does_not_save(module):
    """What Forward saves cannot be computed again without it. A graph has the inputs of all calls."""
    _, first_total = derivatives(of_lost_input(module))
    with pytest.raises(
        RuntimeError, match="it is computed from tensor 0 of the arguments, which is not saved"
    ):
        ms.grad(first_total)(Tensor(X))
    second = ms.grad(ms.jit(first_total))(Tensor(X))
    np.testing.assert_allclose(second.asnumpy(), E * (2 + X), rtol=1e-5)
