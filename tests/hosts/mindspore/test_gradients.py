"""Gradients in both modes: MindSpore's functions, rules of every form, and errors."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore._c_expression import PyNativeExecutor_

import polyop
from polyop.core.errors import GradientError

X, Y = np.array([0.5, -1.25, 2.0], np.float32), np.array([3.0, 4.0, -5.0], np.float32)


def cube_rule(x, a, out, dout):
    return 3 * a * x * x * dout, None


CUBE = polyop.operator(
    "ms_gradients::cube(Tensor x, float a=1.0) -> Tensor",
    lambda x, a: (a * x**3).astype(x.dtype),
    infer="x",
    gradient=cube_rule,
)
SQUARE_GRADIENT = polyop.operator(
    "ms_gradients::square_gradient(Tensor x, Tensor dout) -> Tensor",
    lambda x, dout: 2 * x * dout,
    infer="x",
    gradient=lambda x, dout, out, ddout: (2 * dout * ddout, 2 * x * ddout),
)
SQUARE = polyop.operator(
    "ms_gradients::square(Tensor x) -> Tensor",
    lambda x: x * x,
    infer="x",
    gradient=lambda x, out, dout: (SQUARE_GRADIENT(x, dout),),
)
PAIR = polyop.operator(
    "ms_gradients::pair(Tensor x, Tensor y) -> (Tensor, Tensor)",
    lambda x, y: (x * y, x + y),
    infer=lambda x, y: (x, x),
    gradient=lambda x, y, outs, grads: (grads[0] * y + grads[1], grads[0] * x + grads[1]),
)
OUTPUT = polyop.operator(  # the rule reads the output
    "ms_gradients::exponential(Tensor x) -> Tensor",
    lambda x: np.exp(x),
    infer="x",
    gradient=lambda x, out, dout: (out * dout,),
)
NONE = polyop.operator("ms_gradients::none(Tensor x) -> Tensor", lambda x: x + 1, infer="x")
INDEX = polyop.operator(
    "ms_gradients::index(Tensor x) -> (Tensor, Tensor)",
    lambda x: (x * 2, np.argsort(x)),
    infer=lambda x: (x, polyop.Spec(x.shape, polyop.dtype("int64"), x.device)),
    gradient=lambda x, outs, grads: (grads[0] * 2,),
)


def close(tensor, expected):
    assert isinstance(tensor, Tensor)
    np.testing.assert_allclose(tensor.asnumpy(), expected, rtol=1e-5)


def cube_total(x):
    return CUBE(x, 2.0).sum()


def test_ms_grad(mode):
    close(ms.grad(mode(cube_total))(Tensor(X)), 6 * X**2)


def test_grad_operation(mode):
    @mode
    def call(x):
        return CUBE(x, 2.0)

    close(ops.GradOperation(sens_param=True)(call)(Tensor(X), Tensor(Y)), 6 * X**2 * Y)


def test_in_a_network_with_weights(context):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(Tensor(Y), name="weight")

        def construct(self, x):
            return (CUBE(x * self.weight, 0.5)).sum()

    net = Net()
    value, (dx, (dw,)) = ms.value_and_grad(net, 0, net.trainable_params())(Tensor(X))
    close(value, 0.5 * ((X * Y) ** 3).sum())
    close(dx, 1.5 * (X * Y) ** 2 * Y)
    close(dw, 1.5 * (X * Y) ** 2 * X)


def test_several_outputs_and_an_unused_one(mode):
    @mode
    def both(x, y):
        first, second = PAIR(x, y)
        return (first * first).sum() + second.sum()

    @mode
    def one(x, y):
        return PAIR(x, y)[1].sum()

    dx, dy = ms.grad(both, (0, 1))(Tensor(X), Tensor(Y))
    close(dx, 2 * X * Y * Y + 1)
    close(dy, 2 * X * Y * X + 1)
    dx, dy = ms.grad(one, (0, 1))(Tensor(X), Tensor(Y))
    close(dx, np.ones(3))
    close(dy, np.ones(3))


def test_a_rule_that_reads_the_output(mode):
    @mode
    def call(x):
        return OUTPUT(x).sum()

    close(ms.grad(call)(Tensor(X)), np.exp(X))


def test_integer_outputs(mode):
    @mode
    def call(x):
        values, order = INDEX(x)
        return (values * order).sum()

    close(ms.grad(call)(Tensor(X)), 2 * np.argsort(X))


def first_derivative(x):
    return ms.grad(cube_total)(x).sum()


def square_total(x):
    return (SQUARE(x) * x).sum()


def square_derivative(x):
    return ms.grad(square_total)(x).sum()


def test_second_order_where_the_rule_is_differentiable(mode):
    close(ms.grad(mode(first_derivative))(Tensor(X)), 12 * X)
    close(ms.grad(mode(square_derivative))(Tensor(X)), 6 * X)


def test_no_rule_is_an_error(mode):
    @mode
    def call(x):
        return NONE(x).sum()

    close(call(Tensor(X)), (X + 1).sum())
    with pytest.raises(
        RuntimeError, match="GradientError: ms_.*has no gradient|::none: has no gradient rule"
    ):
        ms.grad(call)(Tensor(X))


def test_no_rule_does_not_matter_where_no_gradient_passes(mode):
    @mode
    def call(x):
        return (ops.stop_gradient(NONE(x)) * x).sum()

    close(ms.grad(call)(Tensor(X)), X + 1)


WRONG = {
    "not a tuple": (lambda x, out, dout: dout, "must return a tuple of 1"),
    "too many": (lambda x, out, dout: (dout, dout), "must return a tuple of 1"),
    "shape": (lambda x, out, dout: (dout.sum(),), r"must have the input's shape \(3,\)"),
}


@pytest.mark.parametrize(("rule", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_rule(rule, message, mode):
    op = polyop.operator(
        f"ms_gradients::wrong_{abs(hash((message, rule, mode)))}(Tensor x) -> Tensor",
        lambda x: x + 1,
        infer="x",
        gradient=rule,
    )

    @mode
    def call(x):
        return op(x).sum()

    with pytest.raises(GradientError, match=message):
        ms.grad(call)(Tensor(X))


def test_a_rule_of_numpy_arrays_in_a_graph():
    op = polyop.operator(
        "ms_gradients::sine(Tensor x) -> Tensor",
        lambda x: np.sin(x),
        infer="x",
        gradient=lambda x, out, dout: (np.cos(x) * dout,),
    )

    @ms.jit
    def call(x):
        return op(x).sum()

    with pytest.warns(polyop.FallbackWarning, match="cannot read the gradient rule: it uses numpy"):
        close(ms.grad(call)(Tensor(X)), np.cos(X))
    with pytest.raises(GradientError, match="must be a mindspore"):
        ms.grad(lambda x: op(x).sum())(Tensor(X))


def test_a_rule_of_numpy_arrays_gets_the_outputs_of_the_graph():
    draws = np.random.default_rng(0)

    def dropped(x, call):
        mask = draws.integers(0, 2, x.shape).astype(x.dtype)
        return x * mask, mask

    op = polyop.operator(
        "ms_gradients::dropout(Tensor x, int call) -> (Tensor, Tensor)",
        dropped,
        infer=lambda x, call: (x, x),
        gradient=lambda x, call, outs, grads: (grads[0] * np.asarray(outs[1]), None),
    )

    @ms.jit
    def call(x):
        out, mask = op(x, 1)
        return out.sum(), mask

    with pytest.warns(polyop.FallbackWarning, match="it uses numpy"):
        (_, mask), grad = ms.value_and_grad(call, has_aux=True)(Tensor(np.ones(64, np.float32)))
    close(grad, mask.asnumpy())


def test_lambdas_of_one_line_are_distinguished():
    scale = 5.0
    # fmt: off
    rules = [lambda x, out, dout: (2 * dout,), lambda x, out, dout: (scale * dout,), lambda x, out, dout: (3 * dout,)]
    for number, (rule, expected) in enumerate(zip(rules, (2, 5, 3), strict=True)):
        op = polyop.operator(
            f"ms_gradients::line_{number}(Tensor x) -> Tensor", lambda x: x, infer="x", gradient=rule
        )

        @ms.jit
        def call(x, op=op):
            return op(x).sum()

        close(ms.grad(call)(Tensor(X)), np.full(3, expected))


def test_vjp():
    out, pull = CUBE.vjp(Tensor(X), 2.0)
    close(out, 2 * X**3)
    dx, da = pull(Tensor(Y))
    close(dx, 6 * X**2 * Y)
    assert da is None
    outs, pull = PAIR.vjp(Tensor(X), Tensor(Y))
    assert len(outs) == 2
    close(pull((Tensor(Y), Tensor(X)))[1], X * Y + X)
    with pytest.raises(GradientError, match="has no gradient rule"):
        NONE.vjp(Tensor(X))


def test_vjp_of_a_module(module):
    out, pull = module.square.vjp(Tensor(X))
    close(out, X * X)
    close(pull(Tensor(Y))[0], 2 * X * Y)


def test_gradients_after_one_that_failed(module, mode):
    """After an error inside ms.grad MindSpore still records, so gradients of gradients are needed."""
    square = module.square

    def fails(x):
        raise ValueError(f"{x.shape}")

    @mode
    def call(x):
        return (square(x) + CUBE(x)).sum()

    with pytest.raises(ValueError, match="3,"):
        ms.grad(fails)(Tensor(X))
    try:
        close(ms.grad(call)(Tensor(X)), 2 * X + 3 * X**2)
        close(NONE(Tensor(X)), X + 1)
    finally:
        PyNativeExecutor_.get_instance().clear_res()


def test_a_module_that_writes_its_argument(module):
    def call(x, y):
        first, second = module.two_in_place(x * 1, y * 1)[:2]
        return (first * second).sum()

    with pytest.raises(GradientError, match="is written in place, so no gradient can be recorded"):
        ms.grad(call)(Tensor(X), Tensor(Y))
    PyNativeExecutor_.get_instance().clear_res()


def test_written_arguments_and_gradients():
    op = polyop.operator("ms_gradients::add_(Tensor(a!) x, Tensor y) -> ()", lambda x, y: x.__iadd__(y))

    def written(x):
        op(x, Tensor(Y))
        return x.sum()

    def kept(x, other):
        product = x * other
        op(other, Tensor(Y))
        return product.sum()

    with pytest.raises(GradientError, match="is written in place, so no gradient can be recorded"):
        ms.grad(written)(Tensor(X))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        ms.grad(lambda x: kept(x, Tensor(Y.copy())))(Tensor(X))


def test_a_step_of_training(context):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(Tensor(np.ones(3, np.float32)), name="weight")

        def construct(self, x):
            return SQUARE(x * self.weight - 1).sum()

    net = Net()
    optimizer = nn.SGD(net.trainable_params(), 0.05)
    step = ms.value_and_grad(net, None, net.trainable_params())
    losses = []
    for _ in range(5):
        loss, grads = step(Tensor(X))
        optimizer(grads)
        losses.append(float(loss.asnumpy()))
    weight = np.ones(3)
    for expected in losses:
        assert expected == pytest.approx(((X * weight - 1) ** 2).sum(), rel=1e-4)
        weight = weight - 0.05 * 2 * (X * weight - 1) * X


@pytest.mark.parametrize("kind", ["operator", "loop kernel"])
def test_the_operator_itself_is_differentiated(mode, kind):
    @polyop.kernel
    def squares(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821 - a word of the language
        for i in range(x.shape[0]):
            y[i] = x[i] * x[i]
        return y

    square = SQUARE if kind == "operator" else squares
    for values in (X, Y):
        close(mode(ms.grad(square))(Tensor(values)), 2 * values)
        output, gradient = mode(ms.value_and_grad(square))(Tensor(values))
        close(output, values * values)
        close(gradient, 2 * values)
    close(mode(ms.grad(CUBE))(Tensor(X)), 3 * X * X)  # it is not taken for the other
