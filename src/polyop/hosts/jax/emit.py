"""An operator in an XLA program: one custom call, whose attribute says which operator it is."""

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
from ...core.errors import FallbackWarning
from .. import foreign
from . import tensors
from .site import Site

TARGET = "polyop_call"


def emit(site: Site, *flat: Any) -> tuple[Any, ...]:
    """Return the outputs of the call in the program that is being made, or at once."""
    operator = site.operator
    outputs = tensors.structs(operator, site.outputs(flat))
    aliases = site.aliases(flat)
    if not handler():
        return _callback(site, outputs, aliases, flat)
    effect = not outputs  # nobody reads it: it must not be left out
    call = jax.ffi.ffi_call(TARGET, outputs, input_output_aliases=aliases, has_side_effect=effect)
    return tuple(call(*flat, call=site.text))


@functools.cache
def handler() -> bool:
    """Register the handler with XLA; return whether XLA takes it, warning once where it does not."""
    major, _, minor = os.environ.get("POLYOP_XLA_FFI_VERSION", "").partition(".")
    if major:
        _core.pretend_xla_version(int(major), int(minor or 0))
    try:
        for platform in ("cpu", "CUDA"):
            jax.ffi.register_ffi_target(TARGET, _core.xla_handler(platform), platform=platform)
    except Exception as problem:  # noqa: BLE001 - jaxlib's own error type differs between versions
        words = str(problem).strip().splitlines()[0]
        text = f"polyop: this jaxlib does not take the native handler ({words}); every call goes"
        warnings.warn(f"{text} through Python, several times slower", FallbackWarning, stacklevel=2)
        return False
    return True


def export_checks() -> list[Any]:
    """Return what ``jax.export.export(..., disabled_checks=)`` needs to take operators.

    An exported program names its operators with a digest of their content: it runs where the same
    definitions are imported.
    """
    return [jax.export.DisabledSafetyCheck.custom_call(TARGET)]


def _callback(site: Site, outputs: list[Any], aliases: dict[int, int], flat: tuple[Any, ...]) -> Any:
    def run(context: Any, made: Any, *given: Any) -> None:
        del context
        arrays = [np.asarray(buffer) for buffer in (*given, *jax.tree.leaves(made))]
        for i, k in aliases.items():
            if not np.shares_memory(arrays[i], arrays[len(given) + k]):
                arrays[len(given) + k][...] = arrays[i]
        foreign.run_arrays(site.text, arrays, len(given))

    call = jax.experimental.buffer_callback.buffer_callback(
        run, outputs, input_output_aliases=aliases or None, has_side_effect=not outputs
    )
    return tuple(call(*flat))
