"""Call an XLA FFI handler from JAX by a custom call of its own, as ``jax.ffi.ffi_call`` does.

An exported program uses polyop's custom call: it names the operator and its digest, so that another process
finds it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ...call.choose import takes
from ...call.foreign import content_of
from ...call.host import specs
from ...call.operator import Kernel
from ...call.prepare import AttributeValues
from ...core import locks
from ...core.errors import HostError
from ...core.texts import first_line
from ...kernels.xla_ffi import XlaHandler
from . import tensors
from .site import Site

_PLATFORMS = {"cpu": "cpu", "cuda": "CUDA"}


def handler_by_device(site: Site, flat: Sequence[Any]) -> dict[str, XlaHandler] | None:
    """Return the handler for each device, or None if on some device another kind of kernel comes first."""
    operator = site.operator
    if not any(isinstance(kernel, XlaHandler) for kernel in operator.kernels):
        return None
    arguments = specs(tensors, operator, site.unflatten(flat))
    inputs = tuple(arguments[i] for i in operator.schema.tensor_positions)
    outputs = tuple(site.kernel_outputs(flat))
    chosen: dict[str, Kernel] = {}
    for kernel in operator.kernels:
        if kernel.device not in chosen and takes(operator, kernel, inputs, outputs):
            chosen[kernel.device] = kernel
    handled = {device: kernel for device, kernel in chosen.items() if isinstance(kernel, XlaHandler)}
    return handled if handled and len(handled) == len(chosen) else None


def call(site: Site, by_device: dict[str, XlaHandler], outputs: list[Any], flat: Sequence[Any]) -> Any:
    """Call the handlers through XLA and return the results; raises ``HostError`` if jaxlib refuses one."""
    operator = site.operator
    kernel_indices = [operator.kernels.index(kernel) for kernel in by_device.values()]
    target = f"{operator.name} {content_of(operator)} {' '.join(map(str, kernel_indices))}"
    encoded = {}
    for device, kernel in by_device.items():
        with locks.define:  # concurrent first calls register it once
            _register(target, device, kernel)
        values = AttributeValues.of(operator).of_call(operator.schema, device, site.unflatten(flat))
        encoded[device] = kernel.encode(values)
    custom_call = jax.ffi.ffi_call(target, outputs)
    with jax.named_scope(operator.name):
        if len(set(map(_as_text, encoded.values()))) == 1:
            return custom_call(*flat, **next(iter(encoded.values())))
        calls = {device: functools.partial(custom_call, **values) for device, values in encoded.items()}
        return jax.lax.platform_dependent(*flat, **calls)


def _as_text(attributes: Mapping[str, Any]) -> str:
    """Return attributes, with their dtypes, as a text that tells whether they are equal."""
    arrays = {name: np.asarray(value) for name, value in attributes.items()}
    return repr([(name, array.dtype.str, array.tolist()) for name, array in sorted(arrays.items())])


@functools.cache
def _register(target: str, device: str, kernel: XlaHandler) -> None:
    import ctypes

    function = ctypes.c_void_p(kernel.address)
    try:
        jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(function), platform=_PLATFORMS[device])
    except Exception as problem:  # noqa: BLE001 - jaxlib's own error type differs between versions
        reason = first_line(problem)
        raise HostError(kernel, "jaxlib does not take it", reason) from None
