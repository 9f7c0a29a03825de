"""Operators whose kernel is an XLA FFI handler: in a program they are the plain custom call of the handler.

An exported program has polyop's own custom call, because that names the operator with its digest.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax

from ...call.choose import takes
from ...call.foreign import content_of
from ...call.host import specs
from ...call.operator import Kernel
from ...call.prepare import AttributeValues
from ...core import locks
from ...core.errors import HostError
from ...kernels.xla_ffi import XlaHandler
from . import tensors
from .site import Site

_PLATFORMS = {"cpu": "cpu", "cuda": "CUDA"}


def handlers(site: Site, flat: Sequence[Any]) -> dict[str, XlaHandler] | None:
    """Return the handler of each device for these arrays; None if any device has a kernel of another kind."""
    operator = site.operator
    if not any(isinstance(kernel, XlaHandler) for kernel in operator.kernels):
        return None
    arguments = specs(tensors, operator, site.unflatten(flat))
    inputs = tuple(arguments[i] for i in operator.schema.tensor_positions)
    outputs = tuple(site.kernel_outputs(flat))
    first: dict[str, Kernel] = {}
    for kernel in operator.kernels:
        if kernel.device not in first and takes(operator, kernel, inputs, outputs):
            first[kernel.device] = kernel
    handled = {device: kernel for device, kernel in first.items() if isinstance(kernel, XlaHandler)}
    return handled if handled and len(handled) == len(first) else None


def call(site: Site, by_device: dict[str, XlaHandler], outputs: list[Any], flat: Sequence[Any]) -> Any:
    """Return the results of XLA's custom call of the handlers; raises ``HostError`` if jaxlib refuses one."""
    operator = site.operator
    numbers = [operator.kernels.index(kernel) for kernel in by_device.values()]
    target = f"{operator.name} {content_of(operator)} {' '.join(map(str, numbers))}"
    for device, kernel in by_device.items():
        with locks.define:  # of several first calls one registers it
            _register(target, device, kernel)
    device, kernel = next(iter(by_device.items()))
    values = AttributeValues.of(operator).of_call(operator.schema, device, site.unflatten(flat))
    with jax.named_scope(operator.name):
        return jax.ffi.ffi_call(target, outputs)(*flat, **kernel.encode(values))


@functools.cache
def _register(target: str, device: str, kernel: XlaHandler) -> None:
    import ctypes

    function = ctypes.c_void_p(kernel.address)
    try:
        jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(function), platform=_PLATFORMS[device])
    except Exception as problem:  # noqa: BLE001 - jaxlib's own error type differs between versions
        reason = str(problem).strip().splitlines()[0]
        raise HostError(kernel, "jaxlib does not take it", reason) from None
