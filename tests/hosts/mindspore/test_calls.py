"""Arguments and results of calls: attributes, several outputs, lists, optional tensors, in place."""

import subprocess
import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

import polyop

X, Y = np.array([0.5, -1.25, 2.0], np.float32), np.array([3.0, 4.0, -5.0], np.float32)

SCALED = polyop.operator(
    "ms_calls::scaled(Tensor x, float a=2.0, *, bool half=False, int[] more=[], str name='') -> Tensor",
    lambda x, a, half, more, name: (x * (a / 2 if half else a) + sum(more) + len(name)).astype(x.dtype),
    infer="x",
)
BOTH = polyop.operator(
    "ms_calls::both(Tensor x, Tensor y) -> (Tensor, Tensor)",
    lambda x, y: (x + y, np.flatnonzero(x > y)[:1].astype(np.int64) * 0 + 7),
    infer=lambda x, y: (x, polyop.Spec((1,), polyop.dtype("int64"), "cpu")),
)
LISTED = polyop.operator(
    "ms_calls::listed(Tensor[] xs, Tensor? bias=None, float a=1.0) -> Tensor",
    lambda xs, bias, a: (sum(xs) * np.float32(a) + (0 if bias is None else bias)).astype(np.float32),
    infer=lambda xs, bias, a: xs[0],
    gradient=lambda xs, bias, a, out, dout: (
        [dout * a] * len(xs),
        None if bias is None else dout,
        None,
    ),
)
NAMED = polyop.operator(
    "ms_calls::named(Tensor one, Tensor[] flat, float a, float shown=1.0) -> Tensor",
    lambda one, flat, a, shown: ((one + sum(flat)) * a * shown).astype(np.float32),
    infer=lambda one, flat, a, shown: one,
)


def _add_(x, y):
    x += y


ADD_ = polyop.operator("ms_calls::add_(Tensor(a!) x, Tensor y) -> Tensor(a!)", _add_)
ADD_ONLY = polyop.operator("ms_calls::add_only(Tensor(a!) x, Tensor y) -> ()", _add_)


def same(tensor, expected):
    assert isinstance(tensor, Tensor)
    np.testing.assert_allclose(tensor.asnumpy(), expected, rtol=1e-6)


def test_attributes(mode):
    @mode
    def default(x):
        return SCALED(x)

    @mode
    def positional(x):
        return SCALED(x, 0.1)

    @mode
    def named(x):
        return SCALED(x, a=3.0, half=True, more=[1, 2], name="ab")

    same(default(Tensor(X)), 2 * X)
    same(positional(Tensor(X)), (X * 0.1).astype(np.float32))
    same(named(Tensor(X)), 1.5 * X + 5)


def test_one_graph_distinguishes_attributes(mode):
    @mode
    def call(x):
        return SCALED(SCALED(x, 3.0), 5.0) - SCALED(x, 7.0)

    same(call(Tensor(X)), 8 * X)


def test_long_lists_and_strange_texts(mode):
    long, strange = list(range(3000)), "\0tensor"

    @mode
    def call(x):
        return SCALED(x, more=long), SCALED(x, name=strange)

    first, second = call(Tensor(X))
    same(first, (2 * X.astype(np.float64) + sum(range(3000))).astype(np.float32))
    same(second, 2 * X + 7)


def test_names_that_arguments_may_have(mode):
    @mode
    def call(x, y):
        return NAMED(x, [y, x], 2.0, shown=3.0)

    same(call(Tensor(X), Tensor(Y)), 6 * (2 * X + Y))


def test_an_attribute_of_a_network(context):
    class Net(nn.Cell):
        def __init__(self, slope):
            super().__init__()
            self.slope = slope

        def construct(self, x):
            return SCALED(x, self.slope)

    same(Net(3.5)(Tensor(X)), 3.5 * X)
    same(Net(-1.0)(Tensor(X)), -X)


def test_several_outputs(mode):
    @mode
    def call(x, y):
        total, index = BOTH(x, y)
        return total * 2, index

    total, index = call(Tensor(Y), Tensor(X))
    same(total, (X + Y) * 2)
    assert index.dtype == ms.int64 and index.asnumpy().tolist() == [7]


def test_lists_and_optional_tensors(mode):
    @mode
    def without(x, y):
        return LISTED([x, y, x], a=0.5)

    @mode
    def with_bias(x, y):
        return LISTED((x, y), x)

    same(without(Tensor(X), Tensor(Y)), 0.5 * (2 * X + Y))
    same(with_bias(Tensor(X), Tensor(Y)), 2 * X + Y)


def test_gradients_of_lists_and_optional_tensors(mode):
    @mode
    def call(x, y):
        return (LISTED([x, y, x], y, 0.5) * x).sum()

    dx, dy = ms.grad(call, (0, 1))(Tensor(X), Tensor(Y))
    same(dx, 2 * 0.5 * X + 0.5 * (2 * X + Y) + Y)
    same(dy, 0.5 * X + X)


def test_a_list_of_outputs(mode):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    unbind = polyop.aten("unbind.int")

    @mode
    def call(x):
        result = unbind(x)
        return result[0] * len(result) + result[1]

    same(call(Tensor(np.stack([X, Y]))), 2 * X + Y)


@pytest.mark.parametrize("op", [ADD_, ADD_ONLY], ids=["returned", "not returned"])
def test_in_place(op, mode):
    @mode
    def call(x, y):
        op(x, y)
        return x * 2

    x = Tensor(X.copy())
    same(call(x, Tensor(Y)), 2 * (X + Y))
    same(x, X + Y)


def test_in_place_is_returned_itself():
    x = Tensor(X.copy())
    assert ADD_(x, Tensor(Y)) is x
    same(x, X + Y)


def test_a_parameter_is_written(context):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.total = Parameter(Tensor(np.zeros(3, np.float32)), name="total", requires_grad=False)

        def construct(self, x):
            ADD_(self.total, x)
            return self.total * 2

    net = Net()
    same(net(Tensor(X)), 2 * X)
    same(net(Tensor(X)), 4 * X)
    same(net.total.value(), 2 * X)


def test_operators_between_mindspore_s_own(context):
    # MindSpore's own weights are random: a sum of them that is nearly 0 is no more exact than its terms
    weight = np.arange(-6, 6, dtype=np.float32).reshape(4, 3)
    bias = np.array([1, -2, 3, -4], np.float32)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(3, 4, weight_init=Tensor(weight), bias_init=Tensor(bias))
            self.scaled = SCALED

        def construct(self, x):
            return ops.relu(self.scaled(self.dense(x), 0.5))

    net = Net()
    x = Tensor(np.stack([X, Y]))
    same(net(x), np.maximum(0, 0.5 * (x.asnumpy() @ weight.T + bias)).astype(np.float32))


def test_a_loop_of_calls_in_a_graph(mode):
    @mode
    def call(x):
        for _ in range(3):
            x = SCALED(x, 2.0)
        return x

    same(call(Tensor(X)), 8 * X)


def test_one_graph_for_every_shape(mode):
    @mode
    def call(x):
        return SCALED(x, 3.0)

    for shape in ((3,), (2, 3), (1, 1, 4), ()):
        data = np.ones(shape, np.float32)
        same(call(Tensor(data)), 3 * data)


def test_too_many_positional_arguments_and_unknown_names():
    with pytest.raises(TypeError, match="has no argument 'b'"):
        SCALED(Tensor(X), b=1.0)
    with pytest.raises(TypeError, match="takes 2 positional arguments"):
        SCALED(Tensor(X), 1.0, True)


def test_between_mindspore_s_python_operators():
    def plus(x):
        return x + 1

    theirs = ops.Custom(plus, lambda x: x, lambda x: x, "pyfunc")  # runs later, and needs Python's lock
    x = Tensor(X)
    for _ in range(20):
        x = SCALED(theirs(x), 1.0)
    same(x, X + 20)


def test_calls_in_graph_mode_outside_of_a_graph(context):
    same(SCALED(Tensor(X), 3.0), 3 * X)


@pytest.mark.parametrize("how", ["ast", "bytecode"])
def test_ways_to_capture_a_graph(how):
    @ms.jit(capture_mode=how)
    def call(x, y):
        ADD_ONLY(x, y)
        return SCALED(x, 3.0) * 2

    for first in (X, Y):
        x = Tensor(first.copy())
        same(call(x, Tensor(Y)), 6 * (first + Y))
        same(x, first + Y)


TRACED = """
import os
import mindspore as ms
import numpy as np
from mindspore import Tensor
import polyop

square = polyop.operator(
    "demo::square(Tensor x) -> Tensor", lambda x: x * x, infer="x", gradient=lambda x, out, dout: (2 * x * dout,)
)
add_ = polyop.operator("demo::add_(Tensor(a!) x) -> ()", lambda x: x.__iadd__(1))

@ms.jit(capture_mode="trace")
def call(x):
    return square(x) * 2

@ms.jit(capture_mode="trace")
def written(x):
    add_(x)
    return x

for value in (1.0, 3.0):  # the second call runs what the first one traced
    assert call(Tensor([value, value], ms.float32)).asnumpy().tolist() == [2 * value**2] * 2
    assert ms.grad(call)(Tensor([value, value], ms.float32)).asnumpy().tolist() == [4 * value] * 2
try:
    written(Tensor([1.0], ms.float32))
except polyop.PolyopError as problem:
    assert 'capture_mode="trace" cannot record' in str(problem), problem
    print("refused", flush=True)
os._exit(0)  # after any error within a trace MindSpore aborts when Python ends
"""


def test_a_function_without_inputs(mode):
    op = polyop.Custom(lambda: np.arange(3.0), (3,), "float64", "pyfunc")

    @mode
    def call(x):
        return op() + x

    np.testing.assert_array_equal(np.asarray(call(Tensor(np.ones(3)))), [1, 2, 3])


def test_a_traced_graph(tmp_path):
    path = tmp_path / "traced.py"  # MindSpore's tracer needs every frame to have a text
    path.write_text(TRACED)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "refused" in done.stdout, done.stderr
