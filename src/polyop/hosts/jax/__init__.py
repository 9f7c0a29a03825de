"""JAX arrays: jit, grad, vjp, jvp, vmap, scan, export, sharding; one handler runs every operator."""

from .host import HOST

__all__ = ["HOST"]
