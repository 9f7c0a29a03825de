"""``torch.npu`` in rehearsal: one device, which is the CPU; streams and settings have no effect."""

from __future__ import annotations

import types
from typing import Any

config = types.SimpleNamespace(allow_internal_format=False)
"""Settings of the device, which are kept and not used."""


def is_available() -> bool:
    """Whether there is a device: yes, for a rehearsal."""
    return True


def device_count() -> int:
    """Return the number of devices."""
    return 1


def current_device() -> int:
    """Return the device's number."""
    return 0


def get_device_name(device: Any = None) -> str:
    """Return what runs the operators."""
    del device
    return "CPU (polyop's rehearsal of Ascend)"


def set_device(device: Any) -> None:
    """Do nothing: there is one device."""


def set_compile_mode(*, jit_compile: bool = False) -> None:
    """Do nothing: operators of the CPU are compiled."""


def synchronize(device: Any = None) -> None:
    """Do nothing: operators have run when their calls return."""


def manual_seed(seed: int) -> None:
    """Seed PyTorch's generator, which draws the numbers of the CPU."""
    import torch

    torch.manual_seed(seed)


manual_seed_all = manual_seed


def __getattr__(name: str) -> Any:
    has = ", ".join(sorted(key for key, value in globals().items() if callable(value) and key[0] != "_"))
    raise AttributeError(
        f"torch.npu.{name}: rehearsal (POLYOP_ASCEND=rehearse) does not have it\n  it has {has}"
    )
