"""PyTorch's functions and methods that take a device, with the CPU in the place of the NPU."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch.utils._device import DeviceContext, _device_constructors

_LIKE = ("empty_like", "full_like", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like")
_METHODS = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")


def install(npu: ModuleType) -> None:
    """Change PyTorch; ``npu`` becomes ``torch.npu``."""
    torch.utils.rename_privateuse1_backend("npu")
    torch._register_device_module("npu", npu)  # noqa: SLF001 - how a backend gets its name in torch
    torch.accelerator.is_available = lambda: False  # else PyTorch's compiler asks the device for its stream
    tensor: Any = torch.Tensor
    tensor.npu, tensor.is_npu = _copy, property(lambda self: self.is_cpu)
    tensor.to = _to
    module: Any = torch.nn.Module
    module.npu = _module
    made = [(torch, function.__name__) for function in _device_constructors()]  # of torch.zeros and its like
    places = [*made, *((torch, name) for name in _LIKE), *((tensor, name) for name in _METHODS)]
    for place, name in places:
        if hasattr(place, name):  # some are of torch.fft and torch.nested
            setattr(place, name, _on_cpu(getattr(place, name)))
    context: Any = DeviceContext  # of ``with torch.device("npu")`` and of set_default_device
    context.__init__ = _on_cpu(context.__init__)
    changed: Any = torch
    changed.Generator = Generator


def is_npu(device: Any) -> bool:
    """Whether a value names the NPU."""
    if isinstance(device, torch.device):
        return str(device.type) == "npu"
    return isinstance(device, str) and device.partition(":")[0] == "npu"


def _cpu(value: Any) -> Any:
    return "cpu" if is_npu(value) else value


def _on_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with the CPU for the NPU among its arguments."""

    @functools.wraps(function)
    def on_cpu(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_cpu, args), **{key: _cpu(value) for key, value in kwargs.items()})

    return on_cpu


_plain_to = torch.Tensor.to


@functools.wraps(_plain_to)
def _to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    if any(map(is_npu, (*args, *kwargs.values()))):
        kwargs["copy"] = True  # a tensor on the NPU is another one
    return _on_cpu(_plain_to)(self, *args, **kwargs)


def _copy(self: torch.Tensor, device: Any = None, non_blocking: bool = False, **_: Any) -> torch.Tensor:
    """Return a copy, as a tensor on the NPU is one."""
    del device, non_blocking
    return self.clone()


def _module(self: torch.nn.Module, device: Any = None) -> torch.nn.Module:
    """Return the module itself: its parameters are where they are."""
    del device
    return self


_PlainGenerator = torch.Generator


class _GeneratorType(type):
    def __call__(cls, device: Any = "cpu") -> Any:
        return _PlainGenerator(_cpu(device))

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, _PlainGenerator)


class Generator(metaclass=_GeneratorType):
    """``torch.Generator`` in rehearsal: PyTorch's own, of the CPU where the NPU is asked for."""
