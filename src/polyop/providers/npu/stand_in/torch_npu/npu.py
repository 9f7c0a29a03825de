"""``torch.npu`` in rehearsal: one device, which is the CPU; streams and settings have no effect."""

from __future__ import annotations

import types
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.cpu import Event, Stream, current_stream, stream

__all__ = ["Event", "Stream", "current_stream", "stream"]

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


def device(device: Any) -> AbstractContextManager[None]:
    """Return a context that does nothing: there is one device."""
    del device
    return nullcontext()


def empty_cache() -> None:
    """Do nothing: PyTorch frees memory of the CPU at once."""


def synchronize(device: Any = None) -> None:
    """Do nothing: operators have run when their calls return."""


def manual_seed(seed: int) -> None:
    """Seed PyTorch's generator, which draws the numbers of the CPU."""
    torch.manual_seed(seed)


manual_seed_all = manual_seed


def __getattr__(name: str) -> Any:
    offered = (__name__, "torch.cpu")
    names = (key for key, value in globals().items() if getattr(value, "__module__", None) in offered)
    has = ", ".join(sorted(name for name in names if name[0] != "_"))
    raise AttributeError(
        f"torch.npu.{name}: rehearsal (POLYOP_ASCEND=rehearse) does not have it\n  it has {has}"
    )
