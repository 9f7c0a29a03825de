"""Which of JAX's ways carries an operator's rules, chosen by what this JAX has."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from typing import Any

from .site import Site

_NEEDED = ("vjp_fwd", "vjp_bwd", "jvp", "batch", "expand")


def _has_hijax() -> bool:
    if os.environ.get("POLYOP_JAX_HIJAX") == "0":
        return False
    if importlib.util.find_spec("jax.experimental.hijax") is None:
        return False
    from jax.experimental import hijax

    kind = getattr(hijax, "VJPHiPrimitive", None)
    return kind is not None and all(hasattr(kind, name) for name in _NEEDED)


HIJAX = _has_hijax()
"""Whether operators are hijax primitives; else they are ``custom_vjp`` over ``custom_vmap``.

POLYOP_JAX_HIJAX=0 chooses the second way, which has no forward mode.
"""

_module = importlib.import_module(".primitive" if HIJAX else ".custom", __package__)
call: Callable[[Site, Sequence[Any]], tuple[Any, ...]] = _module.call
