"""Windows of convolutions and pooling: sizes per dimension, and MindSpore's ``pad_mode``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.errors import ArgumentValueError

PAD_MODES = ("same", "valid", "pad")


def check_pad_mode(subject: str, pad_mode: str) -> str:
    """Return ``pad_mode``; raises ``ArgumentValueError`` for an unknown one."""
    if pad_mode not in PAD_MODES:
        raise ArgumentValueError(subject, f"pad_mode must be one of {', '.join(PAD_MODES)}", repr(pad_mode))
    return pad_mode


def per_dimension(value: Any) -> tuple[int, ...]:
    """Return one size for each of two dimensions."""
    return (value, value) if isinstance(value, int) else tuple(value)


def margins(
    sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int] | None = None
) -> tuple[int, ...]:
    """Return the entries to add before and after each dimension for "same", the last dimension first."""
    added: tuple[int, ...] = ()
    for n, k, s, d in zip(sizes, kernel, stride, dilation or (1,) * len(kernel), strict=True):
        missing = max((math.ceil(n / s) - 1) * s + (k - 1) * d + 1 - n, 0)
        added = (missing // 2, missing - missing // 2, *added)
    return added
