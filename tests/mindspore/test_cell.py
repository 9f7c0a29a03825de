"""Cells: parameters, names, ``bprop``; each rule in PyNative and as a graph."""

import copy

import numpy as np
import pytest
import torch

import polyop.mindspore as ms
from polyop.mindspore import Parameter, Tensor, nn, ops

# PyTorch's own, of its tracing of an autograd.Function
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])


class Inner(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([1.0, 2.0]))
        self.fixed = Parameter(3.0, name="kept", requires_grad=False)

    def construct(self, x):
        return x * self.w + self.fixed


class Outer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a = Inner()
        self.list = nn.CellList([nn.ReLU(), Inner()])

    def construct(self, x):
        for cell in self.list:
            x = cell(x)
        return self.a(x)


def test_parameters():
    net = Outer()
    names = ["a.w", "a.fixed", "list.1.w", "list.1.fixed"]
    assert [p.name for p in net.get_parameters()] == names
    assert list(net.parameters_dict()) == names
    assert [p.name for p in net.trainable_params()] == ["a.w", "list.1.w"]
    assert [p.name for p in net.untrainable_params()] == ["a.fixed", "list.1.fixed"]
    assert [name for name, _ in net.parameters_and_names()] == ["a.w", "a.fixed", "list.1.w", "list.1.fixed"]
    assert list(net.get_parameters(expand=False)) == []
    assert list(net.name_cells()) == ["a", "list"]
    assert len(list(net.cells())) == 2
    assert [name for name, _ in net.cells_and_names()] == ["", "a", "list", "list.0", "list.1"]


def test_without_prefix():
    class Plain(nn.Cell):
        def __init__(self):
            super().__init__(auto_prefix=False)
            self.a = Inner()

    assert [p.name for p in Plain().get_parameters()] == ["w", "kept"]


def test_insert_child_and_parameter():
    net = nn.Cell()
    net.insert_child_to_cell("child", Inner())
    net.insert_param_to_cell("p", Parameter(1.0))
    assert sorted(p.name for p in net.get_parameters()) == ["child.fixed", "child.w", "p"]


def test_modes_and_switches():
    net = Outer()
    assert net.set_train() is net
    assert net.a.training
    assert net.set_grad() is net
    net.set_train(False)
    assert not net.a.training
    with pytest.raises(NotImplementedError, match="Cell has no method construct"):
        nn.Cell()(Tensor(1.0))


@MODES
def test_call(mode):
    ms.set_context(mode=mode)
    out = Outer()(Tensor([-1.0, 1.0]))
    assert type(out) is Tensor
    assert out.asnumpy().tolist() == [6.0, 13.0]


class Custom(nn.Cell):
    """A cell whose bprop returns wrong gradients, so that they can be told from PyTorch's."""

    def __init__(self, bprop_of=None):
        super().__init__()
        self.w = Parameter(3.0)
        self.answer = bprop_of

    def construct(self, x, n):
        return x * self.w + n

    def bprop(self, x, n, out, dout):
        return (dout.astype(ms.float32) * 10 + x, None), {self.w: dout * 7}


@pytest.mark.slow
@MODES
def test_bprop_with_a_parameter(mode):
    ms.set_context(mode=mode)
    net = Custom()
    value, (dx, dw) = ms.value_and_grad(net, 0, [net.w])(Tensor(2.0), 1.0)
    assert (float(value), float(dx), float(dw[0])) == (7.0, 12.0, 7.0)


class Within(nn.Cell):
    def __init__(self):
        super().__init__()
        self.custom = Custom()
        self.scale = Parameter(2.0)

    def construct(self, x):
        return self.custom(x * self.scale, 1.0) * 5


@pytest.mark.slow
@MODES
def test_bprop_within_a_cell(mode):
    ms.set_context(mode=mode)
    net = Within()
    dx, (dw, dscale) = ms.grad(net, 0, [net.custom.w, net.scale])(Tensor(2.0))
    # the inner gradient is 5 * 10 + 4, by the value that the inner cell is given
    assert (float(dx), float(dw), float(dscale)) == (108.0, 35.0, 108.0)


class Several(nn.Cell):
    def construct(self, x, y):
        return x + y, x * y

    def bprop(self, x, y, out, dout):
        assert len(out) == len(dout) == 2
        return dout[0] * 2 + out[1], dout[1] * 3


@pytest.mark.slow
@MODES
def test_bprop_with_several_outputs(mode):
    ms.set_context(mode=mode)
    net = Several()
    result = ms.grad(lambda x, y: net(x, y)[0], (0, 1))(Tensor(2.0), Tensor(5.0))
    assert [float(g) for g in result] == [12.0, 0.0]  # of the output that is not used, zeros are given


OTHER = Parameter(1.0, name="other")


def cell(result):
    """Return a cell with two inputs whose bprop returns this."""

    class Mine(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, x, y, out, dout):
            return result(dout)

    return Mine()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda d: d, "Mine.bprop: must return a tuple with one gradient for each input, even for one"),
        (lambda d: (d,), "Function backward return a wrong number of gradients, expect: 2 but: 1"),
        (lambda d: (d, d, d), "Function backward return a wrong number of gradients, expect: 2 but: 3"),
        (lambda d: (d, 3), "gradient 1: Gradient should be none or tensor, but got int"),
        (lambda d: (d, ops.ones((2, 3))), "grad tensor should be broadcast to input shape"),
        (
            lambda d: ((d, d), {OTHER: d}),
            r"must be of this cell's \(none\), but got other",
        ),
    ],
)
@MODES
def test_what_bprop_must_return(mode, result, message):
    ms.set_context(mode=mode)
    with pytest.raises(RuntimeError, match=message):
        ms.grad(cell(result))(Tensor([1.0, 2.0]), Tensor([3.0, 4.0]))


@MODES
@pytest.mark.parametrize(
    ("bprop", "arguments"),
    [
        (lambda self, x: (x,), "1"),
        (lambda self, x, y, out: (x, y), "3"),
        (lambda self, x, y, out, dout, more: (x, y), "5"),
        (lambda self, *, x: (x,), "0"),
        (lambda self, x=1: (x,), "0 to 1"),
        (lambda self, a, b, c, d, e, *more: (a, b), "at least 5"),
    ],
)
def test_the_arguments_of_bprop(mode, bprop, arguments):
    ms.set_context(mode=mode)
    net = type("Mine", (nn.Cell,), {"construct": lambda self, x, y: x * y, "bprop": bprop})()
    message = f"Mine.bprop: is called with 2 inputs, out and dout, but got a bprop of {arguments} arguments"
    with pytest.raises(RuntimeError, match=message):
        ms.grad(net)(Tensor([1.0, 2.0]), Tensor([3.0, 4.0]))


@pytest.mark.slow
@MODES
def test_a_bprop_of_any_number_of_arguments(mode):
    class Mine(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, *args):
            *_, dout = args
            return dout * 3, dout * 4

    ms.set_context(mode=mode)
    result = ms.grad(Mine(), (0, 1))(Tensor(2.0), Tensor(5.0))
    assert [float(g) for g in result] == [3.0, 4.0]


@MODES
def test_errors_of_a_parameter_s_gradient(mode):
    class Mine(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(3.0)

        def construct(self, x):
            return x * self.w

        def bprop(self, x, out, dout):
            return (dout, dout, dout), {self.w: dout}

    ms.set_context(mode=mode)
    net = Mine()
    with pytest.raises(RuntimeError, match="Mine.bprop.*expect: 1 but: 3"):
        ms.grad(net, None, net.trainable_params())(Tensor(2.0))


def test_gradients_of_bprop_are_cast_and_summed():
    net = cell(lambda d: (ops.ones((3, 2), ms.float64), None))
    result = ms.grad(net, (0, 1))(Tensor([1.0, 2.0]), Tensor([3.0, 4.0]))
    assert [g.asnumpy().tolist() for g in result] == [[3.0, 3.0], [0.0, 0.0]]
    assert result[0].dtype == ms.float32


def test_internal_params_chooses():
    class Chosen(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a, self.b = Parameter(1.0), Parameter(2.0)
            self.internal_params = [self.a]

        def construct(self, x):
            return x * self.a * self.b

        def bprop(self, x, out, dout):
            return (dout,), {self.a: dout * 4}

    net = Chosen()
    result = ms.grad(net, None, [net.a, net.b])(Tensor(1.0))
    assert [float(g) for g in result] == [4.0, 0.0]


def test_copies_compute_with_their_own_parameters():
    net = Within()
    net(Tensor(1.0))
    other = copy.deepcopy(net)
    other.custom.w.set_data(Tensor(0.0))
    assert [float(n(Tensor(1.0))) for n in (net, other)] == [35.0, 5.0]
    result = ms.grad(other, None, [other.custom.w, net.custom.w])(Tensor(1.0))
    assert [float(g) for g in result] == [35.0, 0.0]


def test_a_cell_is_a_module_of_pytorch():
    net = nn.SequentialCell(nn.Dense(2, 1, weight_init="ones", bias_init="zeros"), nn.ReLU())
    wrapped = torch.nn.Sequential(net)
    assert [name for name, _ in wrapped.named_parameters()] == ["0.0.weight", "0.0.bias"]
    assert wrapped(torch.ones(1, 2)).tolist() == [[2.0]]
    assert np.array_equal(net.state_dict()["0.weight"].numpy(), np.ones((1, 2)))
