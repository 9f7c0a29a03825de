"""Weights from PyTorch to JAX: each layer computes what PyTorch computes; what cannot be carried is refused."""

import functools
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("jax", reason="JAX is not installed")
pytest.importorskip("safetensors", reason="safetensors is not installed")

import jax
import torch
from jax import lax
from jax import numpy as jnp

from polyop import PolyopError
from polyop.networks import weights

nn = torch.nn


def ready(layer):
    """Return the layer in evaluation, with random parameters and statistics."""
    for value in (*layer.parameters(), *layer.buffers()):
        if value.is_floating_point():
            value.data.uniform_(0.3, 1.0)
    return layer.eval()


# What layers with Flax's names and layouts compute; x has its channels last.


def dense(p, x):
    y = x @ p["kernel"]
    return y + p["bias"] if "bias" in p else y


def convolution(p, x, stride=2, groups=2):
    letters = "DHW"[: x.ndim - 2]
    layout = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    strides = (stride,) * len(letters)
    y = lax.conv_general_dilated(
        x, p["kernel"], strides, "VALID", dimension_numbers=layout, feature_group_count=groups
    )
    return y + p["bias"]


def transposed_convolution(p, x, stride=2, groups=2):
    letters = "DHW"[: x.ndim - 2]
    layout = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    edge = [(size - 1, size - 1) for size in p["kernel"].shape[:-2]]
    spread = {"lhs_dilation": (stride,) * len(letters), "dimension_numbers": layout}
    ones = (1,) * len(letters)
    y = lax.conv_general_dilated(x, p["kernel"], ones, edge, feature_group_count=groups, **spread)
    return y + p["bias"]


def scaled(p, x, mean, var):
    return (x - mean) / jnp.sqrt(var + 1e-5) * p["scale"] + p.get("bias", 0)


def norm_over(axes):
    return lambda p, x: scaled(p, x, x.mean(axes, keepdims=True), x.var(axes, keepdims=True))


def group_norm(p, x, groups=2):
    parts = x.reshape(*x.shape[:-1], groups, -1)
    axes = (*range(1, x.ndim - 1), x.ndim)
    centred = (parts - parts.mean(axes, keepdims=True)) / jnp.sqrt(parts.var(axes, keepdims=True) + 1e-5)
    return centred.reshape(x.shape) * p["scale"] + p["bias"]


def batch_norm(tree, x):
    statistics = tree["batch_stats"]
    return scaled(tree["params"], x, statistics["mean"], statistics["var"])


def rms_norm(p, x):
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * p["scale"]


def simple_cell(p, state, x):
    h = jnp.tanh(dense(p["i"], x) + dense(p["h"], state))
    return h, h


def lstm_cell(p, state, x):
    h, c = state
    i, f, g, o = (dense(p[f"i{k}"], x) + dense(p[f"h{k}"], h) for k in "ifgo")
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), h


def gru_cell(p, h, x):
    r, z = (jax.nn.sigmoid(dense(p[f"i{k}"], x) + dense(p[f"h{k}"], h)) for k in "rz")
    n = jnp.tanh(dense(p["in"], x) + r * dense(p["hn"], h))
    h = (1 - z) * n + z * h
    return h, h


def recurrent(p, x, cell, layers=2, size=4):
    """Return the outputs of all steps of a network in both directions; x is (batch, time, features)."""
    zeros = jnp.zeros((x.shape[0], size))
    start = (zeros, zeros) if cell is lstm_cell else zeros
    for layer in range(layers):
        both = []
        for end, reverse in (("", False), ("_reverse", True)):
            step = functools.partial(cell, p[f"l{layer}{end}"])
            both.append(lax.scan(step, start, x.swapaxes(0, 1), reverse=reverse)[1].swapaxes(0, 1))
        x = jnp.concatenate(both, -1)
    return x


def attention(p, q, k, v):
    def heads(name, x):
        return jnp.einsum("btf,fhd->bthd", x, p[name]["kernel"]) + p[name].get("bias", 0)

    q, k, v = heads("query", q), heads("key", k), heads("value", v)
    score = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1]), -1)
    out = jnp.einsum("bhqk,bkhd->bqhd", score, v)
    return jnp.einsum("bthd,hdf->btf", out, p["out"]["kernel"]) + p["out"].get("bias", 0)


IMAGES = [(2, 4, *sizes) for sizes in ((7,), (7, 6), (5, 6, 7))]
ROWS = (2, 5, 4)
HEADS = {"batch_first": True}
BOTH_WAYS = {"batch_first": True, "bidirectional": True}

CASES = [
    ("linear", nn.Linear(4, 3), dense, [ROWS]),
    ("linear without bias", nn.Linear(4, 3, bias=False), dense, [ROWS]),
    ("layer norm", nn.LayerNorm(4), norm_over(-1), [ROWS]),
    ("RMS norm", nn.RMSNorm(4, eps=1e-5), rms_norm, [ROWS]),
    (
        "simple recurrence",
        nn.RNN(4, 4, 2, **BOTH_WAYS),
        functools.partial(recurrent, cell=simple_cell),
        [ROWS],
    ),
    ("LSTM", nn.LSTM(4, 4, 2, **BOTH_WAYS), functools.partial(recurrent, cell=lstm_cell), [ROWS]),
    ("GRU", nn.GRU(4, 4, 2, **BOTH_WAYS), functools.partial(recurrent, cell=gru_cell), [ROWS]),
    ("GRU cell", nn.GRUCell(4, 4), lambda p, x, h: gru_cell(p, h, x)[1], [(2, 4), (2, 4)]),
    ("attention", nn.MultiheadAttention(4, 2, **HEADS), attention, [ROWS, (2, 3, 4), (2, 3, 4)]),
    (
        "attention of other sizes",
        nn.MultiheadAttention(4, 2, kdim=3, vdim=6, bias=False, **HEADS),
        attention,
        [ROWS, (2, 3, 3), (2, 3, 6)],
    ),
]
for dims, shape in enumerate(IMAGES, 1):
    conv, back = getattr(nn, f"Conv{dims}d"), getattr(nn, f"ConvTranspose{dims}d")
    inside = tuple(range(1, dims + 1))
    CASES += [
        (f"convolution {dims}", conv(4, 6, 3, stride=2, groups=2), convolution, [shape]),
        (f"transposed {dims}", back(4, 6, 3, stride=2, groups=2), transposed_convolution, [shape]),
        (f"batch norm {dims}", getattr(nn, f"BatchNorm{dims}d")(4), batch_norm, [shape]),
        (
            f"instance norm {dims}",
            getattr(nn, f"InstanceNorm{dims}d")(4, affine=True),
            norm_over(inside),
            [shape],
        ),
        (f"group norm {dims}", nn.GroupNorm(2, 4), group_norm, [shape]),
    ]


@pytest.mark.parametrize(("layer", "function", "shapes"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_layer_computes_the_same_in_jax(layer, function, shapes):
    inputs = [torch.rand(shape) for shape in shapes]
    expected = ready(layer)(*inputs)
    expected = (expected[0] if isinstance(expected, tuple) else expected).detach().numpy()
    tree = weights.to_jax(layer)
    channels_last = shapes[0] in IMAGES
    arrays = [np.moveaxis(x.numpy(), 1, -1) if channels_last else x.numpy() for x in inputs]
    y = function(tree if function is batch_norm else tree["params"], *map(jnp.asarray, arrays))
    y = np.moveaxis(np.asarray(y), -1, 1) if channels_last else y
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def test_an_embedding_is_its_rows():
    layer = nn.Embedding(5, 3)
    np.testing.assert_array_equal(
        weights.to_jax(layer)["params"]["embedding"][[4, 1]], layer(torch.tensor([4, 1])).detach()
    )


class Decay(nn.Module):
    """A layer of somebody's own."""

    def __init__(self):
        super().__init__()
        self.rate = nn.Parameter(torch.rand(3))
        self.register_buffer("step", torch.tensor(2))
        self.inner = nn.Linear(3, 3)


def test_a_layer_of_ones_own_needs_a_rule():
    net = nn.Sequential(nn.Linear(4, 3), Decay())
    with pytest.raises(PolyopError, match=r"1 \(Decay\): no rule says .* in Flax\n.*rules={Decay: weights"):
        weights.to_jax(net)
    tree = weights.to_jax(net, rules={Decay: weights.as_they_are})
    assert sorted(tree["params"]["1"]) == ["inner", "rate"]
    assert tree["batch_stats"]["1"]["step"].shape == ()
    renamed = weights.to_jax(
        net, rules={Decay: {"rate": "log_rate", "step": "step"}}, names={"1.inner": "out"}
    )
    assert sorted(renamed["params"]) == ["0", "1", "out"]
    np.testing.assert_array_equal(renamed["params"]["1"]["log_rate"], net[1].rate.detach())
    with pytest.raises(PolyopError, match=r"1 \(Decay\): step: the rule .* has no such tensor, only rate"):
        weights.to_jax(net, rules={Decay: {"rate": "rate"}})


def test_pytorchs_layout_is_the_state_dictionary():
    net = nn.Sequential(nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3), Decay())
    tree = weights.to_jax(net, layout="torch")
    for name, value in net.state_dict().items():
        if "num_batches" not in name:
            *path, last = name.split(".")
            collection = "params" if name in dict(net.named_parameters()) else "buffers"
            found = functools.reduce(lambda below, part: below[part], path, tree[collection])[last]
            np.testing.assert_array_equal(found, value)


def test_weights_do_not_share_memory_with_the_module():
    layer = nn.LayerNorm(3)
    tree = weights.to_jax(layer, layout="torch")
    layer.weight.data.zero_()
    np.testing.assert_array_equal(tree["params"]["weight"], np.ones(3))


def test_the_first_of_two_names_of_a_tensor_is_carried_alone():
    net = nn.ModuleDict({"embedding": nn.Embedding(5, 3), "head": nn.Linear(3, 5, bias=False)})
    net["head"].weight = net["embedding"].weight
    with pytest.raises(PolyopError, match=r"head.weight: it is the same tensor as embedding.weight"):
        weights.to_jax(net)
    assert list(weights.to_jax(net, leave_out=["head.weight"])["params"]) == ["embedding"]


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (nn.Bilinear(2, 3, 4), r"the module \(Bilinear\): no rule says"),
        (nn.LSTM(3, 4, proj_size=2), r"LSTM\): weight_hr_l0: the rule .* has no such tensor"),
        (nn.MultiheadAttention(4, 2, add_bias_kv=True), r"MultiheadAttention\): bias_k: the rule"),
        (nn.MultiheadAttention(4, 2, add_zero_attn=True), r"add_zero_attn: attention of Flax"),
        (nn.utils.parametrizations.weight_norm(nn.Linear(2, 3)), r"parametrizations.weight \(.*no rule says"),
        ({"weight": torch.ones(3)}, r"must be a torch.nn.Module, but got dict"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_rule_is_refused_by_name(layer, words):
    with pytest.raises(PolyopError, match=words):
        weights.to_jax(layer)


@pytest.mark.parametrize(
    ("layer", "name"), [(nn.GRU(3, 4), "weight_hh_l0"), (nn.MultiheadAttention(4, 2), "out_proj.weight")]
)
def test_a_layer_that_is_carried_whole_needs_its_tensors(layer, name):
    with pytest.raises(PolyopError, match=rf"its rule needs the tensor '{name}', which is not carried"):
        weights.to_jax(layer, leave_out=[name])


def test_all_differences_from_the_network_are_said_at_once():
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    like = jax.eval_shape(lambda: weights.to_jax(net))
    weights.to_jax(net, like=like)
    like["params"]["0"]["kernel"] = jax.ShapeDtypeStruct((3, 4), np.float32)
    like["params"]["0"]["bias"] = jax.ShapeDtypeStruct((3,), np.float16)
    like["params"]["2"] = like["params"].pop("1")
    with pytest.raises(PolyopError) as caught:
        weights.to_jax(net, like=like)
    assert set(str(caught.value).splitlines()[1:]) == {
        "  params.2.bias: missing",
        "  params.2.kernel: missing",
        "  params.0.kernel: (4, 3) float32, where the network has (3, 4) float32",
        "  params.0.bias: (3,) float32, where the network has (3,) float16",
        "  params.1.kernel: left over",
        "  params.1.bias: left over",
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"layout": "keras"}, 'layout: must be "flax" or "torch", but got \'keras\''),
        ({"leave_out": ["wight"]}, "the state dictionary has no, but got 'wight'"),
        ({"names": {"layers": "x"}}, "there is no layer, but got 'layers'"),
    ],
)
def test_wrong_arguments_are_errors(arguments, words):
    with pytest.raises(PolyopError, match=words):
        weights.to_jax(nn.Linear(2, 3), **arguments)


def test_two_layers_cannot_become_one():
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(4, 3))
    with pytest.raises(PolyopError, match=r"x.kernel: two tensors would have this name"):
        weights.to_jax(net, names={"0": "x", "1": "x"})


DTYPES = [
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.int64,
    torch.bool,
    torch.complex64,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_file_keeps_structure_dtypes_and_bits(dtype, tmp_path):
    net = nn.Module()
    net.register_buffer("table", torch.tensor([[0.0, 1.0], [-0.5, 3.0]]).to(dtype))
    net.register_buffer("one", torch.tensor(1).to(dtype))
    tree = weights.to_jax(net, layout="torch")
    weights.save(tree, tmp_path / "w.safetensors")
    read = weights.load(tmp_path / "w.safetensors", like=tree)
    for name in ("table", "one"):
        ours, theirs = read["buffers"][name], getattr(net, name)
        assert ours.shape == tuple(theirs.shape)
        assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
        assert ours.tobytes() == bytes(theirs.reshape(-1).view(torch.uint8).numpy())


def test_a_file_of_another_program_is_a_dictionary_of_names(tmp_path):
    import safetensors.torch

    net = nn.Sequential(nn.Linear(2, 3, dtype=torch.bfloat16))
    safetensors.torch.save_file(net.state_dict(), tmp_path / "w.safetensors")
    read = weights.load(tmp_path / "w.safetensors")
    assert sorted(read) == ["0.bias", "0.weight"]
    np.testing.assert_array_equal(read["0.weight"].astype(np.float32), net[0].weight.detach().float())


def test_a_layout_in_memory_is_not_that_of_the_file(tmp_path):
    turned = np.arange(6.0).reshape(2, 3).T
    weights.save({"turned": turned}, tmp_path / "w.safetensors")
    np.testing.assert_array_equal(weights.load(tmp_path / "w.safetensors")["turned"], turned)


def test_a_dtype_that_files_do_not_have_is_refused(tmp_path):
    four = np.zeros(2, ml_dtypes.float4_e2m1fn)
    with pytest.raises(PolyopError, match=r"a.b: files of safetensors do not have its dtype"):
        weights.save({"a": {"b": four}}, tmp_path / "w.safetensors")


def test_no_framework_is_imported():
    program = "import sys; from polyop.networks import weights; print([n for n in ('torch', 'jax') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
