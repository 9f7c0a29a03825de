"""dask arrays: one call per chunk, with edges of neighbours, and partial results combined in a tree."""

from .host import HOST

__all__ = ["HOST"]
