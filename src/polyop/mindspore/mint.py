"""``mindspore.mint``: PyTorch's functions with PyTorch's arguments, whose results are ``Tensor``."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from .nearest import missing
from .ops import creation
from .ops.arguments import Function, wrapped
from .ops.elementwise import FUNCTIONS as _ELEMENTWISE

_NAMES = (
    "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "bmm", "broadcast_to", "cat", "chunk",
    "concat", "cumsum", "diff", "dot", "einsum", "flatten", "flip", "gather", "index_select", "isclose",
    "logsumexp", "masked_select", "matmul", "max", "mean", "median", "min", "mm", "movedim", "narrow",
    "nonzero", "norm", "outer", "permute", "prod", "repeat_interleave", "reshape", "roll", "scatter", "sort",
    "split", "squeeze", "stack", "std", "sum", "swapaxes", "tile", "topk", "transpose", "tril", "triu",
    "unbind", "unique", "unsqueeze", "var", "where", "select", "softmax", "log_softmax",
)  # fmt: skip

FUNCTIONS: dict[str, Function] = {
    **{name: function for name, function in _ELEMENTWISE.items() if hasattr(torch, name)},
    **{name: wrapped(getattr(torch, name)) for name in _NAMES},
    **{name: function for name, function in creation.FUNCTIONS.items() if hasattr(torch, name)},
}


class _Functional:
    """``mint.nn.functional``: PyTorch's, by name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not callable(getattr(functional, name, None)):
            raise missing(f"{__name__}.nn.functional", name, dir(functional))
        return wrapped(getattr(functional, name))


class nn:  # noqa: N801 - a module in MindSpore
    """``mint.nn``: its functions."""

    functional = _Functional()


def __getattr__(name: str) -> Any:
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    raise missing(__name__, name, FUNCTIONS)
