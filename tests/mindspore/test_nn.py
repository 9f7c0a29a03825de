"""Layers, losses and optimizers, against NumPy."""

from collections import OrderedDict

import numpy as np
import pytest
import torch

import polyop.mindspore as ms
from polyop.mindspore import Parameter, Tensor, nn
from polyop.mindspore.common.initializer import initializer

X = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -2.0]], np.float32)
Y = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], np.float32)
E = np.exp(X) / np.exp(X).sum(1, keepdims=True)

CELLS = [
    (nn.ReLU(), np.maximum(X, 0)),
    (nn.ReLU6(), X.clip(0, 6)),
    (nn.Sigmoid(), 1 / (1 + np.exp(-X))),
    (nn.Tanh(), np.tanh(X)),
    (nn.SiLU(), X / (1 + np.exp(-X))),
    (nn.LeakyReLU(), np.where(X > 0, X, 0.2 * X)),
    (nn.LeakyReLU(alpha=0.1), np.where(X > 0, X, 0.1 * X)),
    (nn.ELU(2.0), np.where(X > 0, X, 2 * np.expm1(X))),
    (nn.Softmax(), E),
    (nn.Softmax(axis=0), np.exp(X) / np.exp(X).sum(0)),
    (nn.LogSoftmax(), np.log(E)),
    (nn.GELU(), 0.5 * X * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))),
    (nn.Identity(), X),
    (nn.Flatten(), X),
    (nn.Dropout(p=0.5), X),
    (nn.Dense(3, 2, "ones", "zeros"), X.sum(1, keepdims=True) * [1, 1]),
    (
        nn.Dense(3, 2, "ones", has_bias=False, activation="relu"),
        np.maximum(X.sum(1, keepdims=True), 0) * [1, 1],
    ),
    (nn.Dense(3, 1, Tensor([[1.0, 2.0, 3.0]]), 0.5), X @ [[1], [2], [3]] + 0.5),
    (nn.LayerNorm((3,)), (X - X.mean(1, keepdims=True)) / X.std(1, keepdims=True)),
    (nn.SequentialCell(nn.ReLU(), nn.Tanh()), np.tanh(np.maximum(X, 0))),
    (nn.SequentialCell([nn.ReLU()]), np.maximum(X, 0)),
    (nn.SequentialCell(OrderedDict(a=nn.ReLU())), np.maximum(X, 0)),
]


@pytest.mark.parametrize(("cell", "expected"), CELLS, ids=lambda value: type(value).__name__)
def test_value(cell, expected):
    result = cell(Tensor(X))
    assert type(result) is Tensor
    assert np.allclose(result.asnumpy(), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (nn.MSELoss(), ((X - Y) ** 2).mean()),
        (nn.MSELoss("sum"), ((X - Y) ** 2).sum()),
        (nn.L1Loss(reduction="none"), abs(X - Y)),
        (nn.SoftmaxCrossEntropyWithLogits(), -(Y * np.log(E)).sum(1)),
        (nn.SoftmaxCrossEntropyWithLogits(reduction="mean"), -(Y * np.log(E)).sum(1).mean()),
        (nn.CrossEntropyLoss(), -(Y * np.log(E)).sum(1).mean()),
    ],
)
def test_loss(loss, expected):
    assert np.allclose(loss(Tensor(X), Tensor(Y)).asnumpy(), expected, atol=1e-6)


def test_sparse_labels():
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True)
    assert np.allclose(
        loss(Tensor(X), Tensor([0, 2], ms.int32)).asnumpy(), -(Y * np.log(E)).sum(1), atol=1e-6
    )


def convolve(x, w, stride, top, left, size):
    """Return a convolution of one channel, written out."""
    padded = np.zeros((x.shape[0] + 8, x.shape[1] + 8))
    padded[top : top + x.shape[0], left : left + x.shape[1]] = x
    rows, columns = size
    return np.array(
        [
            [
                (padded[i * stride : i * stride + w.shape[0], j * stride : j * stride + w.shape[1]] * w).sum()
                for j in range(columns)
            ]
            for i in range(rows)
        ]
    )


@pytest.mark.parametrize(
    ("options", "margin", "size"),
    [
        ({"pad_mode": "valid"}, (0, 0), (3, 4)),
        ({}, (1, 1), (5, 6)),
        ({"stride": 2}, (1, 0), (3, 3)),
        ({"pad_mode": "pad", "padding": 1}, (1, 1), (5, 6)),
        ({"pad_mode": "pad", "padding": (2, 1, 0, 1)}, (2, 0), (6, 5)),
    ],
)
def test_convolution(options, margin, size):
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    w = np.arange(9, dtype=np.float32).reshape(3, 3)
    cell = nn.Conv2d(1, 1, 3, weight_init=Tensor(w[None, None]), **options)
    result = cell(Tensor(x[None, None])).asnumpy()[0, 0]
    assert np.allclose(result, convolve(x, w, options.get("stride", 1), *margin, size))


def test_embedding_and_dropout():
    table = Tensor(np.arange(6, dtype=np.float32).reshape(3, 2))
    rows = nn.Embedding(3, 2, embedding_table=table)(Tensor([2, 0]))
    assert rows.asnumpy().tolist() == [[4.0, 5.0], [0.0, 1.0]]
    dropout = nn.Dropout(keep_prob=0.25).set_train()
    kept = dropout(Tensor(np.ones(1000, np.float32))).asnumpy()
    assert set(kept.tolist()) == {0.0, 4.0}


def test_lists_of_cells():
    cells = nn.CellList([nn.ReLU(), nn.Tanh(), nn.Sigmoid()])
    assert len(cells) == 3
    assert [type(c).__name__ for c in cells] == ["ReLU", "Tanh", "Sigmoid"]
    assert type(cells[-1]).__name__ == "Sigmoid"
    assert type(cells[:2]) is nn.CellList
    assert len(cells.append(nn.ReLU())) == 4


G = [np.array([0.5, -1.0]), np.array([1.0, 2.0]), np.array([-1.0, 0.25])]


def sgd(p, g, state, step):
    return p - 0.1 * g


def momentum(p, g, state, step):
    state["v"] = 0.9 * state.get("v", 0) + g
    return p - 0.1 * state["v"]


def nesterov(p, g, state, step):
    state["v"] = 0.9 * state.get("v", 0) + g
    return p - 0.1 * (g + 0.9 * state["v"])


def adam(p, g, state, step):
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
    state["v"] = 0.999 * state.get("v", 0) + 0.001 * g * g
    rate = 0.1 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    return p - rate * state["m"] / (np.sqrt(state["v"]) + 1e-8)


def decayed(p, g, state, step):
    return p - 0.1 * (g + 0.01 * p) / 4


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda p: nn.SGD(p, 0.1), sgd),
        (lambda p: nn.SGD(p, learning_rate=lambda step: 0.1), sgd),
        (lambda p: nn.SGD(p, 0.1, 0.9), momentum),
        (lambda p: nn.Momentum(p, 0.1, 0.9), momentum),
        (lambda p: nn.SGD(p, 0.1, 0.9, nesterov=True), nesterov),
        (lambda p: nn.Adam(p, 0.1), adam),
        (lambda p: nn.SGD(p, 0.1, weight_decay=0.01, loss_scale=4.0), decayed),
    ],
)
def test_optimizer(make, rule):
    parameter, expected, state = Parameter(Tensor([1.0, -2.0])), np.array([1.0, -2.0]), {}
    optimizer = make([parameter])
    for step, gradient in enumerate(G, 1):
        optimizer((Tensor(gradient.astype(np.float32)),))
        expected = rule(expected, gradient, state, step)
    assert np.allclose(parameter.asnumpy(), expected, rtol=1e-5)
    assert parameter.requires_grad
    assert optimizer.parameters == (parameter,)
    assert list(optimizer.get_parameters()) == [parameter]


PICTURE = np.random.default_rng(0).normal(size=(2, 3, 5, 5)).astype(np.float32)


@pytest.mark.parametrize(  # what the page on moving a network says is the same
    ("ours", "theirs"),
    [
        (nn.Conv2d(3, 4, 3, pad_mode="valid", has_bias=True), torch.nn.Conv2d(3, 4, 3)),
        (nn.Conv2d(3, 4, 3, pad_mode="pad", padding=1, has_bias=True), torch.nn.Conv2d(3, 4, 3, padding=1)),
        (nn.LayerNorm((5, 5), begin_norm_axis=-2, epsilon=1e-5), torch.nn.LayerNorm((5, 5))),
        (nn.GELU(approximate=False), torch.nn.GELU()),
        (nn.LeakyReLU(alpha=0.01), torch.nn.LeakyReLU()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_pytorch_s_defaults(ours, theirs):
    renamed = {"gamma": "weight", "beta": "bias"}
    for name, parameter in ours.parameters_dict().items():
        value = torch.nn.init.normal_(theirs.get_parameter(renamed.get(name, name)))
        parameter.set_data(Tensor(value.detach().numpy()))
    expected = theirs(torch.tensor(PICTURE)).detach().numpy()
    assert np.allclose(ours(Tensor(PICTURE)).asnumpy(), expected, atol=1e-4)


def test_the_settings_of_cross_entropy():
    labels = Tensor(np.array([2, 0], np.int32))
    logs = -np.log(E)[[0, 1], [2, 0]]
    assert np.allclose(nn.CrossEntropyLoss(reduction="sum")(Tensor(X), labels).asnumpy(), logs.sum())
    assert np.allclose(nn.CrossEntropyLoss(ignore_index=0)(Tensor(X), labels).asnumpy(), logs[0])
    weighted = nn.CrossEntropyLoss(Tensor([3.0, 1.0, 1.0]), reduction="none")(Tensor(X), labels)
    assert np.allclose(weighted.asnumpy(), logs * [1, 3])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.Dense(1, 1, activation="nope"), TypeError, "activation: must be one of elu, gelu"),
        (lambda: nn.ReLU(3), TypeError, "nn.ReLU: takes no arguments"),
        (lambda: nn.MSELoss("all"), ValueError, "nn.MSELoss: reduction must be one of mean, sum, none"),
        (lambda: nn.Conv2d(1, 1, 1, pad_mode="full"), ValueError, "pad_mode must be one of same, valid, pad"),
        (
            lambda: nn.Conv2d(1, 1, 3, padding=1),
            ValueError,
            "padding must be 0 with pad_mode 'same', but got 1",
        ),
        (lambda: nn.CrossEntropyLoss(reduction="all"), ValueError, "nn.CrossEntropyLoss: reduction must be"),
        (
            lambda: nn.Momentum([Parameter(1.0)], 0.1, 0.9, use_nesterov=True),
            NotImplementedError,
            "nn.Momentum: use_nesterov has no effect in MindSpore on the CPU",
        ),
        (lambda: nn.SGD([Tensor(1.0)]), TypeError, "SGD: params must be a list of Parameter"),
        (
            lambda: nn.SGD([Parameter(1.0)])(()),
            ValueError,
            "SGD: needs one gradient for each of 1 parameters",
        ),
        (lambda: initializer("nope", (2,)), ValueError, "initializer: must be a number or one of zeros"),
        (
            lambda: initializer(Tensor([1.0]), (2,)),
            ValueError,
            r"needs values of shape \(2,\), but got \(1,\)",
        ),
    ],
)
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_initializers():
    assert initializer(3, (2,), ms.int32).asnumpy().tolist() == [3, 3]
    for name in ("normal", "uniform", "xavier_uniform", "xavier_normal", "he_uniform", "he_normal"):
        values = initializer(name, (50, 50)).asnumpy()
        assert values.std() > 0
        assert abs(values.mean()) < 0.05
