"""JAX arrays: jit, grad, vjp, jvp, vmap, scan, export, sharding; one handler runs every operator."""

import contextlib
import os

from ...core.origin import PACKAGE
from .host import HOST

if os.environ.get("POLYOP_TRACEBACK") != "full":
    with contextlib.suppress(ImportError, AttributeError):  # JAX has no public name for it
        from jax._src.traceback_util import register_exclusion

        register_exclusion(PACKAGE)  # what takes JAX's own frames out of tracebacks takes these too

__all__ = ["HOST"]
