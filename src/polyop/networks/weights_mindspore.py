"""PyTorch's layers -> the names and layouts of ``mindspore.nn``: ``gamma``, ``beta``, ``moving_mean``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .weights_rules import Array, Rule, Tensors, as_they_are, named


def _of_two_dimensions(layer: Any, value: Array) -> Array:
    """(out, in, size) -> (out, in, 1, size): MindSpore computes it as a convolution of height 1."""
    return value[:, :, None]


_UNUSED = {  # name in MindSpore -> PyTorch's, and the value that changes nothing
    "gamma": ("weight", 1),
    "beta": ("bias", 0),
    "moving_mean": ("running_mean", 0),
    "moving_variance": ("running_var", 1),
}


def _filled(prefix: str = "") -> Rule:
    """Return the rule of a norm that in MindSpore has all four tensors, whether they are used or not."""
    rule = named(weight="gamma", bias="beta", running_mean="moving_mean", running_var="moving_variance")

    def convert(layer: Any, tensors: Tensors) -> Tensors:
        found = dict(rule.convert(layer, tensors))
        for name, (own, fill) in _UNUSED.items():
            if getattr(layer, own) is None:
                found[name] = np.full(layer.num_features, fill, np.float32)
        return {prefix + name: value for name, value in found.items()}

    return Rule(convert, fills=True)


_NORM = named(weight="gamma", bias="beta")
_SAME = Rule(as_they_are)
_CONVOLUTION_1D = named(weight=("weight", _of_two_dimensions), bias="bias")

MINDSPORE: Mapping[str, Rule] = {
    "Linear": _SAME,
    **dict.fromkeys(("Conv1d", "ConvTranspose1d"), _CONVOLUTION_1D),
    **dict.fromkeys(("Conv2d", "Conv3d", "ConvTranspose2d", "ConvTranspose3d"), _SAME),
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "SyncBatchNorm"), _filled()),
    "BatchNorm3d": _filled("bn2d."),
    **dict.fromkeys(("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"), _filled()),
    **dict.fromkeys(("LayerNorm", "GroupNorm"), _NORM),
    "Embedding": named(weight="embedding_table"),
    "PReLU": named(weight="w"),
    **dict.fromkeys(("RNNCell", "LSTMCell", "GRUCell", "RNN", "LSTM", "GRU"), _SAME),
    "MultiheadAttention": _SAME,
}
"""PyTorch's type -> its rule."""
