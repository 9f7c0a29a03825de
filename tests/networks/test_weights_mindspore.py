"""Weights from PyTorch to MindSpore, through a file: each cell computes what PyTorch's layer computes."""

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("mindspore", reason="MindSpore is not installed")
pytest.importorskip("safetensors", reason="safetensors is not installed")

import mindspore
import numpy as np
import torch
from mindspore import nn

from polyop import PolyopError
from polyop.networks import weights

ROWS = (2, 5, 4)
PADDED = {"pad_mode": "pad", "has_bias": True}
BOTH_WAYS = {"batch_first": True, "bidirectional": True}
HEADS = {"kdim": 3, "vdim": 6, "batch_first": True}


def same(name, sizes, shapes, theirs=None, **settings):
    """Return a row: a layer that both frameworks call by one name, with the same sizes and settings."""
    return (
        name,
        getattr(torch.nn, name)(*sizes, **settings),
        (theirs or getattr(nn, name)(*sizes, **settings)),
        shapes,
    )


CASES = [
    ("Linear", torch.nn.Linear(4, 3), nn.Dense(4, 3), [ROWS]),
    ("Linear without bias", torch.nn.Linear(4, 3, bias=False), nn.Dense(4, 3, has_bias=False), [ROWS]),
    ("LayerNorm", torch.nn.LayerNorm(4), nn.LayerNorm((4,), epsilon=1e-5), [ROWS]),
    same("GroupNorm", (2, 4), [(2, 4, 5, 5)]),
    ("PReLU", torch.nn.PReLU(4), nn.PReLU(4), [(2, 4, 5, 5)]),
    same("RNN", (4, 4, 2), [ROWS], **BOTH_WAYS),
    same("LSTM", (4, 4, 2), [ROWS], **BOTH_WAYS),
    same("GRU", (4, 4, 2), [ROWS], **BOTH_WAYS),
    same("RNNCell", (4, 3), [(2, 4), (2, 3)]),
    same("GRUCell", (4, 3), [(2, 4), (2, 3)]),
    same("MultiheadAttention", (4, 2), [ROWS, (2, 3, 3), (2, 3, 6)], **HEADS),
    same("MultiheadAttention", (4, 2), [ROWS, (2, 3, 4), (2, 3, 4)], batch_first=True),
]
for dims, shape in enumerate([(2, 4, 7), (2, 4, 7, 6), (2, 4, 5, 6, 7)], 1):
    conv, back, norm = f"Conv{dims}d", f"ConvTranspose{dims}d", f"BatchNorm{dims}d"
    groups = 1 if dims == 3 else 2  # MindSpore has no groups in three dimensions
    theirs = getattr(nn, conv)(4, 6, 3, stride=2, group=groups, **PADDED)
    CASES += [
        same(conv, (4, 6, 3), [shape], theirs, stride=2, groups=groups),
        same(
            back, (4, 6, 3), [shape], getattr(nn, f"{conv}Transpose")(4, 6, 3, stride=2, **PADDED), stride=2
        ),
        same(norm, (4,), [shape]),
        same(norm, (4,), [shape], affine=False),
    ]


@pytest.mark.parametrize(("layer", "cell", "shapes"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_cell_computes_the_same(layer, cell, shapes, tmp_path):
    for value in (*layer.parameters(), *layer.buffers()):
        if value.is_floating_point():
            value.data.uniform_(0.3, 1.0)
    inputs = [torch.rand(shape) for shape in shapes]
    expected = layer.eval()(*inputs)
    weights.save(weights.to_mindspore(layer, like=cell), tmp_path / "w.safetensors")
    read = weights.load(tmp_path / "w.safetensors", like=cell)
    for name, parameter in cell.parameters_and_names():
        parameter.set_data(mindspore.Tensor(read[name]))
    found = cell.set_train(False)(*[mindspore.Tensor(x.numpy()) for x in inputs])
    found, expected = (y[0] if isinstance(y, tuple) else y for y in (found, expected))
    np.testing.assert_allclose(found.asnumpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("settings", [{}, {"affine": True}, {"track_running_stats": True}], ids=str)
def test_an_instance_norm_has_the_names_of_the_cell(settings):
    """MindSpore does not compute it on a CPU; its cell has four tensors, whatever it uses."""
    found = weights.to_mindspore(torch.nn.InstanceNorm2d(4, **settings), like=nn.InstanceNorm2d(4))
    np.testing.assert_array_equal(found["gamma"], np.ones(4))
    np.testing.assert_array_equal(found["moving_mean"], np.zeros(4))


def test_what_is_left_out_is_not_filled():
    net = torch.nn.Sequential(torch.nn.BatchNorm2d(4), torch.nn.BatchNorm2d(4, affine=False))
    found = weights.to_mindspore(net, leave_out=["0.weight", "0.running_mean", "1.running_var"])
    assert sorted(found) == ["0.beta", "0.moving_variance", "1.beta", "1.gamma", "1.moving_mean"]


def test_an_embedding_and_the_cells_of_an_lstm():
    layer, cell = torch.nn.Embedding(5, 3), nn.Embedding(5, 3)
    found = weights.to_mindspore(layer, like=cell)
    np.testing.assert_array_equal(found["embedding_table"], layer.weight.detach())
    layer, cell = torch.nn.LSTMCell(3, 4), nn.LSTMCell(3, 4)
    for name, value in weights.to_mindspore(layer, like=cell).items():
        getattr(cell, name).set_data(mindspore.Tensor(value))
    x, h, c = torch.rand(2, 3), torch.rand(2, 4), torch.rand(2, 4)
    ours = cell(*[mindspore.Tensor(x.numpy()), tuple(mindspore.Tensor(v.numpy()) for v in (h, c))])
    for one, other in zip(ours, layer(x, (h, c)), strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.detach().numpy(), rtol=1e-5, atol=1e-5)


def test_a_network_in_a_cell_and_what_differs():
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    weights.to_mindspore(net, like=nn.SequentialCell(nn.Dense(4, 3), nn.BatchNorm1d(3)))
    with pytest.raises(PolyopError) as caught:
        weights.to_mindspore(net, like=nn.SequentialCell(nn.Dense(3, 4), nn.LayerNorm((3,))))
    assert set(str(caught.value).splitlines()[1:]) == {
        "  0.weight: (3, 4) float32, where the network has (4, 3) float32",
        "  0.bias: (3,) float32, where the network has (4,) float32",
        "  1.moving_mean: left over",
        "  1.moving_variance: left over",
    }


@pytest.mark.parametrize(
    ("layer", "cell", "line"),
    [
        (torch.nn.LayerNorm(3), nn.LayerNorm((3,)), "0: epsilon 1e-05, where the network has 1e-07"),
        (torch.nn.BatchNorm1d(3, eps=0.5), nn.BatchNorm1d(3), "0: epsilon 0.5, where the network has 1e-05"),
        (torch.nn.BatchNorm3d(3, eps=0.5), nn.BatchNorm3d(3), "0: epsilon 0.5, where the network has 1e-05"),
        (
            torch.nn.GroupNorm(1, 3, eps=0.5),
            nn.GroupNorm(1, 3),
            "0: epsilon 0.5, where the network has 1e-05",
        ),
        (torch.nn.InstanceNorm2d(3, eps=0.5), nn.InstanceNorm2d(3), "0: epsilon 0.5, where .* 1e-05"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_another_epsilon_is_an_error(layer, cell, line):
    with pytest.raises(PolyopError, match=line):
        weights.to_mindspore(torch.nn.Sequential(layer), like=nn.SequentialCell(cell))


def test_what_has_no_rule_is_refused_by_name():
    with pytest.raises(PolyopError, match=r"0 \(RMSNorm\): no rule says .* in MindSpore"):
        weights.to_mindspore(torch.nn.Sequential(torch.nn.RMSNorm(3)))
