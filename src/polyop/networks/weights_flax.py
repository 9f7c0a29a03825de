"""PyTorch's layers -> the names and layouts of Flax: ``kernel`` as (in, out) and (height, width, in, out)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import UnsupportedError
from .weights_rules import Array, Rule, Tensors, as_they_are, named, only, transposed, with_zeros


def _convolution(layer: Any, value: Array) -> Array:
    """(out, in / groups, *sizes) -> (*sizes, in / groups, out)."""
    return np.moveaxis(value, (0, 1), (-1, -2))


def _transposed_convolution(layer: Any, value: Array) -> Array:
    """(in, out / groups, *sizes) -> (*sizes, in / groups, out), the sizes reversed.

    PyTorch's is the gradient of a convolution. Flax's is a convolution of the spread input, so the kernel is
    read backwards.
    """
    groups, (inputs, outputs, *sizes) = layer.groups, value.shape
    value = value.reshape(groups, inputs // groups, outputs, *sizes)
    value = np.moveaxis(value, (1, 0, 2), (-3, -2, -1))  # (*sizes, in / groups, groups, out / groups)
    value = value.reshape(*sizes, inputs // groups, groups * outputs)
    return np.flip(value, tuple(range(len(sizes))))


def _gates(names: str, tensors: Tensors, suffix: str) -> tuple[list[tuple[Array, ...]], list[str]]:
    """Return for each gate its two kernels and its two biases, and the gates' letters."""
    w_input, w_hidden = tensors[f"weight_ih{suffix}"], tensors[f"weight_hh{suffix}"]
    biases = [with_zeros(tensors.get(f"bias_{k}{suffix}"), len(w_input), w_input) for k in ("ih", "hh")]
    parts = [np.split(value, len(names)) for value in (w_input, w_hidden, *biases)]
    return list(zip(*parts, strict=True)), list(names)


def _lstm(tensors: Tensors, suffix: str) -> dict[str, Array]:
    found = {}
    for (w_input, w_hidden, b_input, b_hidden), name in zip(*_gates("ifgo", tensors, suffix), strict=True):
        found[f"i{name}.kernel"], found[f"h{name}.kernel"] = w_input.T, w_hidden.T
        found[f"h{name}.bias"] = b_input + b_hidden
    return found


def _gru(tensors: Tensors, suffix: str) -> dict[str, Array]:
    found = {}
    for (w_input, w_hidden, b_input, b_hidden), name in zip(*_gates("rzn", tensors, suffix), strict=True):
        found[f"i{name}.kernel"], found[f"h{name}.kernel"] = w_input.T, w_hidden.T
        found[f"i{name}.bias"] = b_input if name == "n" else b_input + b_hidden
        if name == "n":  # the reset gate multiplies it
            found["hn.bias"] = b_hidden
    return found


def _rnn(tensors: Tensors, suffix: str) -> dict[str, Array]:
    [(w_input, w_hidden, b_input, b_hidden)], _ = _gates("h", tensors, suffix)
    return {"i.kernel": w_input.T, "h.kernel": w_hidden.T, "i.bias": b_input + b_hidden}


_CELLS = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}
_PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def _cell(kind: str) -> Rule:
    """Return the rule of a cell, whose two biases are added where that is the same function: Flax has one."""

    def convert(layer: Any, tensors: Tensors) -> Tensors:
        only(*_PARTS, tensors=tensors)
        return _CELLS[kind](tensors, "")

    return Rule(convert)


def _layers(kind: str) -> Rule:
    """Return the rule of a recurrent network: its cells are ``l0``, ``l0_reverse``, ``l1`` ..."""

    def convert(layer: Any, tensors: Tensors) -> Tensors:
        ends = [name.removeprefix("weight_ih") for name in tensors if name.startswith("weight_ih")]
        only(*[part + end for part in _PARTS for end in ends], tensors=tensors)
        return {f"{end[1:]}.{n}": v for end in ends for n, v in _CELLS[kind](tensors, end).items()}

    return Rule(convert)


def _attention(layer: Any, tensors: Tensors) -> Tensors:
    """Return kernels (in, heads, features) of query, key and value, and (heads, features, out)."""
    heads, size = layer.num_heads, layer.head_dim
    separate = [f"{name}_proj_weight" for name in "qkv"]
    only("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias", *separate, tensors=tensors)
    together = tensors.get("in_proj_weight")
    weights = [tensors[n] for n in separate] if together is None else np.split(together, 3)
    found = {}
    for name, weight in zip(("query", "key", "value"), weights, strict=True):
        found[f"{name}.kernel"] = weight.T.reshape(-1, heads, size)
    out = tensors["out_proj.weight"]
    found["out.kernel"] = out.T.reshape(heads, size, -1)
    if "in_proj_bias" in tensors:
        for name, bias in zip(("query", "key", "value"), np.split(tensors["in_proj_bias"], 3), strict=True):
            found[f"{name}.bias"] = bias.reshape(heads, size)
    if "out_proj.bias" in tensors:
        found["out.bias"] = tensors["out_proj.bias"]
    if layer.add_zero_attn:
        raise UnsupportedError("add_zero_attn", "attention of Flax has no such setting")
    return found


_NORM = named(weight="scale", bias="bias")
_NORM_WITH_STATISTICS = named(weight="scale", bias="bias", running_mean="mean", running_var="var")
_CONVOLUTION = named(weight=("kernel", _convolution), bias="bias")
_TRANSPOSED_CONVOLUTION = named(weight=("kernel", _transposed_convolution), bias="bias")

FLAX: Mapping[str, Rule] = {
    "Linear": named(weight=("kernel", transposed), bias="bias"),
    **dict.fromkeys(("Conv1d", "Conv2d", "Conv3d"), _CONVOLUTION),
    **dict.fromkeys(("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"), _TRANSPOSED_CONVOLUTION),
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"), _NORM_WITH_STATISTICS),
    **dict.fromkeys(("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"), _NORM),
    **dict.fromkeys(("LayerNorm", "GroupNorm", "RMSNorm"), _NORM),
    "Embedding": named(weight="embedding"),
    **{f"{kind}Cell": _cell(kind) for kind in _CELLS},
    **{kind: _layers(kind) for kind in _CELLS},
    "MultiheadAttention": Rule(_attention, whole=True),
    **dict.fromkeys(("ParameterList", "ParameterDict"), Rule(as_they_are)),
}
"""PyTorch's type -> its rule."""
