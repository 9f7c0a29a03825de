"""An operator in an XLA program: one custom call.

    custom_call("polyop_call", x, y)  call = <the operator's name, digest and attributes, as a text>

The native handler finds the operator by that text when the program runs. A jaxlib that does not
accept the handler gets a callback into Python instead.
"""

from __future__ import annotations

import functools
import os
import warnings
from typing import Any

import jax
import jax.experimental.buffer_callback
import jax.export
import numpy as np

from ... import _core
from ...call import foreign
from ...core import locks
from ...core.errors import FallbackWarning
from ...core.texts import first_line
from . import handlers, tensors
from .site import Site

TARGET = "polyop_call"

_VERSIONS = ("0.3", "0.2", "0.1")  # of XLA's FFI; the part that the handler uses is the same in all of them


class Alive:
    """Keeps an operator alive as long as a compiled program; a pickled program refers to it by name."""

    def __init__(self, bound: Any = None) -> None:
        self.bound = bound

    def __reduce__(self) -> Any:
        return Alive, ()


def keep_alive(context: Any, site: Site) -> None:
    """Keep the operator alive as long as the program that is being compiled.

    The program finds the operator by its name. An exported program has only the name.
    """
    module = context.module_context
    if not module.lowering_parameters.for_export:
        module.add_keepalive(Alive(site.bound))


def emit(site: Site, *flat: Any, exported: bool = False) -> tuple[Any, ...]:
    """Return the outputs of the call: tracers while a program is traced, else arrays.

    An XLA FFI handler is called by itself, except in an ``exported`` program, and where JAX has its results
    in fewer bits.
    """
    operator = site.operator
    outputs = tensors.structs(site.outputs(flat))
    own = exported or not outputs or site.narrows(flat)
    by_device = None if own else handlers.handler_by_device(site, flat)
    if by_device is not None:
        return tuple(handlers.call(site, by_device, outputs, flat))
    aliases = site.aliases(flat)
    if not handler():
        return _callback(site, outputs, aliases, flat)
    call = jax.ffi.ffi_call(TARGET, outputs, input_output_aliases=aliases, **_kind(outputs))
    with jax.named_scope(operator.name):  # what JAX's profiler shows
        return tuple(call(*flat, call=site.text))


def _kind(outputs: list[Any]) -> dict[str, Any]:
    # A call without outputs is not traced as operator_p, so JAX sees this custom call itself. XLA would
    # remove one without side effects as dead code, and vmap needs to be told how to batch it.
    return {} if outputs else {"has_side_effect": True, "vmap_method": "sequential"}


@functools.cache
def refusal() -> str:
    """Register the handler with XLA; return why XLA refuses it, or an empty text."""
    jax.devices()  # without a backend, a refusal would come later, as an error of the backend
    with locks.define:  # of several first calls one registers it
        return _registered()


@functools.cache
def _registered() -> str:
    forced = os.environ.get("POLYOP_XLA_FFI_VERSION", "")
    reason = ""
    for version in [forced] if forced else _VERSIONS:
        major, _, minor = version.partition(".")
        _core.pretend_xla_version(int(major), int(minor or 0))
        try:
            for platform in ("cpu", "CUDA"):
                jax.ffi.register_ffi_target(TARGET, _core.xla_handler(platform), platform=platform)
        except Exception as problem:  # noqa: BLE001 - jaxlib's own error type differs between versions
            reason = reason or first_line(problem)
        else:
            return ""
    return reason


@functools.cache
def handler() -> bool:
    """Whether calls go to the native handler; warns once if they do not."""
    if refusal():
        text = f"polyop: this jaxlib does not take the native handler ({refusal()}); every call goes"
        warnings.warn(f"{text} through Python, several times slower", FallbackWarning, stacklevel=2)
    return not refusal()


def export_checks() -> list[Any]:
    """Return the ``disabled_checks=`` with which ``jax.export.export`` accepts operators.

    An exported program names each operator with a digest of its content, so it runs in any process
    that has imported the same definitions. A process that only runs such a program must call this
    function too, because it registers the handler with XLA.
    """
    handler()
    return [jax.export.DisabledSafetyCheck.custom_call(TARGET)]


def _callback(
    site: Site, outputs: list[Any], aliases: dict[int, int], flat: tuple[Any, ...]
) -> tuple[Any, ...]:
    def run(context: Any, outputs: Any, *inputs: Any) -> None:
        del context
        arrays = [np.asarray(buffer) for buffer in (*inputs, *jax.tree.leaves(outputs))]
        for i, k in aliases.items():
            if not np.shares_memory(arrays[i], arrays[len(inputs) + k]):
                arrays[len(inputs) + k][...] = arrays[i]
        foreign.run_arrays(site.text, arrays, len(inputs))

    call = jax.experimental.buffer_callback.buffer_callback(
        run, outputs, input_output_aliases=aliases or None, **_kind(outputs)
    )
    return tuple(call(*flat))
