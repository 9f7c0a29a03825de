"""``mindspore.runtime``: waiting for the device."""

from __future__ import annotations

import torch


def synchronize() -> None:
    """Wait until the device has finished its work; the CPU runs nothing in the background."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
