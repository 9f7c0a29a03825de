"""``mindspore.runtime``: waiting for the device."""

from __future__ import annotations

import torch


def synchronize() -> None:
    """Return when the device has done what it was given; the CPU always has."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
