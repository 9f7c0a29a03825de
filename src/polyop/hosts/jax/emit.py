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
from ...call import foreign
from ...core.errors import FallbackWarning
from . import tensors
from .site import Site

TARGET = "polyop_call"

_VERSIONS = ("0.3", "0.2", "0.1")  # of XLA's interface: what the handler uses of it is the same in all


class Alive:
    """Keeps an operator as long as a compiled program; a program that is pickled has only its name."""

    def __init__(self, bound: Any = None) -> None:
        self.bound = bound

    def __reduce__(self) -> Any:
        return Alive, ()


def keep_alive(context: Any, site: Site) -> None:
    """Keep the operator with the program that is being made, which finds it by its name.

    A program that is exported has nothing but the name.
    """
    module = context.module_context
    if not module.lowering_parameters.for_export:
        module.add_keepalive(Alive(site.bound))


def emit(site: Site, *flat: Any) -> tuple[Any, ...]:
    """Return the outputs of the call in the program that is being made, or at once."""
    operator = site.operator
    outputs = tensors.structs(operator, site.outputs(flat))
    aliases = site.aliases(flat)
    if not handler():
        return _callback(site, outputs, aliases, flat)
    call = jax.ffi.ffi_call(TARGET, outputs, input_output_aliases=aliases, **_kind(outputs))
    return tuple(call(*flat, call=site.text))


def _kind(outputs: list[Any]) -> dict[str, Any]:
    # without outputs nobody reads it, and it must not be left out; such a call is no primitive of ours
    return {} if outputs else {"has_side_effect": True, "vmap_method": "sequential"}


@functools.cache
def refusal() -> str:
    """Register the handler with XLA; return why XLA does not take it, or an empty text."""
    jax.devices()  # before there is a backend the answer would come later, as an error of the backend
    given = os.environ.get("POLYOP_XLA_FFI_VERSION", "")
    words = ""
    for version in [given] if given else _VERSIONS:
        major, _, minor = version.partition(".")
        _core.pretend_xla_version(int(major), int(minor or 0))
        try:
            for platform in ("cpu", "CUDA"):
                jax.ffi.register_ffi_target(TARGET, _core.xla_handler(platform), platform=platform)
        except Exception as problem:  # noqa: BLE001 - jaxlib's own error type differs between versions
            words = words or str(problem).strip().splitlines()[0]
        else:
            return ""
    return words


@functools.cache
def handler() -> bool:
    """Whether calls go to the native handler; warns once where they do not."""
    if refusal():
        text = f"polyop: this jaxlib does not take the native handler ({refusal()}); every call goes"
        warnings.warn(f"{text} through Python, several times slower", FallbackWarning, stacklevel=2)
    return not refusal()


def export_checks() -> list[Any]:
    """Return what ``jax.export.export(..., disabled_checks=)`` needs to take operators.

    An exported program names its operators with a digest of their content: it runs where the same
    definitions are imported. A process that only runs such a program calls this too, as it makes
    operators known to XLA.
    """
    handler()
    return [jax.export.DisabledSafetyCheck.custom_call(TARGET)]


def _callback(
    site: Site, outputs: list[Any], aliases: dict[int, int], flat: tuple[Any, ...]
) -> tuple[Any, ...]:
    def run(context: Any, made: Any, *given: Any) -> None:
        del context
        arrays = [np.asarray(buffer) for buffer in (*given, *jax.tree.leaves(made))]
        for i, k in aliases.items():
            if not np.shares_memory(arrays[i], arrays[len(given) + k]):
                arrays[len(given) + k][...] = arrays[i]
        foreign.run_arrays(site.text, arrays, len(given))

    call = jax.experimental.buffer_callback.buffer_callback(
        run, outputs, input_output_aliases=aliases or None, **_kind(outputs)
    )
    return tuple(call(*flat))
