"""The stand-in for ``torch_npu`` in rehearsal: the NPU is the CPU.

``x.npu()`` copies a tensor, as it does on Ascend, and the device ``"npu"`` is the CPU. Operators are those of
the project, with the NPU's dispatch keys, which polyop's ``pytorch_npu_helper.hpp`` registers for the CPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from polyop.providers.aclnn.rehearsal import ascend

from . import npu, testing, utils

__all__ = ["npu", "testing", "utils"]

_FACTORIES = (
    "arange", "as_tensor", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones", "ones_like",
    "rand", "rand_like", "randint", "randn", "randn_like", "randperm", "tensor", "zeros", "zeros_like",
)  # fmt: skip


def _is_npu(device: Any) -> bool:
    return str(device).partition(":")[0] == "npu" and isinstance(device, (str, torch.device))


def _factory(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(function)
    def on_cpu(*args: Any, **kwargs: Any) -> torch.Tensor:
        if _is_npu(kwargs.get("device")):
            kwargs["device"] = "cpu"
        return function(*args, **kwargs)

    return on_cpu


_to = torch.Tensor.to


@functools.wraps(_to)
def _to_device(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    places = [*args, *kwargs.values()]
    if not any(_is_npu(place) for place in places):
        return _to(self, *args, **kwargs)
    given = ["cpu" if _is_npu(place) else place for place in args]
    named = {key: "cpu" if _is_npu(place) else place for key, place in kwargs.items()}
    return _to(self, *given, **{**named, "copy": True})


def _copy(self: torch.Tensor, device: Any = None, non_blocking: bool = False, **_: Any) -> torch.Tensor:
    """Return a copy, as a tensor on the NPU is one."""
    del device, non_blocking
    return self.clone()


def _module(self: torch.nn.Module, device: Any = None) -> torch.nn.Module:
    """Return the module itself: its parameters are where they are."""
    del device
    return self


def _install() -> None:
    ascend(above=2)  # warns once that the CPU runs what is meant for Ascend
    torch.utils.rename_privateuse1_backend("npu")
    torch._register_device_module("npu", npu)  # noqa: SLF001 - how a backend gets its name in torch
    torch.accelerator.is_available = lambda: False  # else PyTorch's compiler asks the device for its stream
    changed: Any = torch.Tensor
    changed.npu, changed.to = _copy, _to_device
    changed.is_npu = property(lambda tensor: tensor.is_cpu)
    changed = torch.nn.Module
    changed.npu = _module
    for name in _FACTORIES:
        setattr(torch, name, _factory(getattr(torch, name)))


_install()
